// A backup now: its button, its progress and its result.
import { useSignal } from "@preact/signals";
import { Button, Failed, Notice, Progress, Time } from "../components.js";
import { bytes } from "../format.js";
import { html } from "../html.js";
import { administration } from "./api.js";
import { adminTexts } from "../texts/en/admin.js";

const t = adminTexts.backup;

/** `of`: `backups` of the status. `onStart` is called when one has begun. */
export function Backup({ of: { folder, last }, onStart }) {
  const error = useSignal(null),
    busy = useSignal(false);
  const start = async () => {
    [busy.value, error.value] = [true, null];
    try {
      await administration.backup();
      await onStart();
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  const running = last?.running;
  return html`
    <h2>${t.title}</h2>
    <div class="card stack">
      <p>${folder ? t.text(folder) : t.noFolder}</p>
      ${running && html`<${Progress} label=${t.running} value=${last.percent} max=${100} />`}
      ${last && !running && html`<${Result} of=${last} />`}
      ${error.value && html`<${Failed} error=${error.value} />`}
      ${
        folder &&
        html`<div class="actions">
          <${Button} icon="download" busy=${busy.value || running} onClick=${start}>${t.start}<//>
        </div>`
      }
    </div>
  `;
}

function Result({ of }) {
  if (of.error) return html`<${Notice} kind="bad" icon="warning">${t.failed(of.error)}<//>`;
  return html`<p class="quiet small">
    <${Time} at=${of.finished_at} /> · ${bytes(of.bytes)} · ${of.file}
  </p>`;
}
