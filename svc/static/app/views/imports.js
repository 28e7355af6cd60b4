// The import of chats from other applications: the file, its progress, the report and undo.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { api } from "../api.js";
import { Button, confirm, Failed, Notice, Page, Progress, toast } from "../components.js";
import { listAgain } from "../conversation-list.js";
import { bytes } from "../format.js";
import { html } from "../html.js";
import { usePolling } from "../polling.js";
import { projects } from "../state.js";
import { texts } from "../texts.js";
import { importTexts } from "../texts/en/views.js";

const t = importTexts;
const UNDO_MS = 24 * 3_600_000;
const MOST_SHOWN = 200;
const ORDER = ["failed", "imported", "skipped"];

export default function Imports() {
  const newest = useSignal(/** @type {Api.ImportReport | null} */ (null)),
    sent = useSignal(/** @type {[number, number] | null} */ (null)),
    error = useSignal(null);
  const load = async () => {
    try {
      const id = newest.peek()?.id ?? (await api.imports.list({ limit: 1 })).data[0]?.id;
      if (!id) return;
      const before = newest.peek()?.status;
      newest.value = await api.imports.show(id);
      if (before === "reading" && newest.value.status !== "reading") refresh();
    } catch (problem) {
      error.value = problem;
    }
  };
  usePolling(load, 1000, () => newest.peek()?.status === "reading");
  const send = async (file) => {
    [sent.value, error.value] = [[0, file.size], null];
    const type = /\.json$/i.test(file.name) ? "application/json" : "application/zip";
    try {
      newest.value = await api.imports.create(file, {
        type,
        onProgress: (done, all) => {
          sent.value = [done, all];
        },
      });
    } catch (problem) {
      error.value = problem;
    }
    sent.value = null;
  };
  const undo = async () => {
    if (!(await confirm({ title: t.undoTitle, text: t.undoText, action: texts.common.undo, danger: true })))
      return;
    try {
      await api.imports.undo(newest.peek().id);
      refresh();
      await load();
    } catch (problem) {
      toast(problem.message, { kind: "bad" });
    }
  };
  const isBusy = sent.value !== null || newest.value?.status === "reading";
  return html`<${Page} title=${texts.views.imports} intro=${t.intro}><div class="card stack">
    ${
      sent.value &&
      html`<${Progress}
        label=${t.sending(bytes(sent.value[0]))}
        value=${sent.value[0]}
        max=${sent.value[1]}
      />`
    }
    ${error.value && html`<${Failed} error=${error.value} />`}
    ${newest.value && html`<${Report} of=${newest.value} onUndo=${undo} />`}
    <${FileButton} busy=${isBusy} onFile=${send} />
  </div><//>`;
}

function refresh() {
  listAgain();
  projects.reload();
}

function FileButton({ busy, onFile }) {
  const file = useRef(null);
  return html`<div class="actions">
    <input
      ref=${file}
      class="hidden-text"
      type="file"
      accept=".zip,.json"
      tabindex="-1"
      aria-hidden="true"
      onChange=${(event) => {
        const [chosen] = event.currentTarget.files;
        event.currentTarget.value = "";
        if (chosen) onFile(chosen);
      }}
    />
    <${Button} icon="upload" busy=${busy} onClick=${() => file.current.click()}>${t.action}<//>
  </div>`;
}

function Report({ of, onUndo }) {
  if (of.status === "undone") return html`<${Notice}>${t.undone}<//>`;
  const listed = ORDER.flatMap((status) => of.conversations.filter((entry) => entry.status === status));
  const all = of.counts.imported + of.counts.skipped + of.counts.failed;
  const canUndo = Date.now() - Date.parse(of.created_at) < UNDO_MS;
  return html`
    ${
      of.status === "reading"
        ? html`<${Progress} label=${t.reading(all)} />`
        : html`<${Notice} kind=${of.status === "failed" ? "bad" : "info"}>
          ${of.status === "failed" ? of.reason : t.done(t.sources[of.source])}<//>`
    }
    <p>${t.counts(of.counts)}</p>
    ${
      all > 0 &&
      html`<details><summary>${t.details}</summary><ul class="list">
        ${listed.slice(0, MOST_SHOWN).map(
          (entry, place) => html`<li key=${place}>
            <span class="grow" dir="auto">${entry.title ?? texts.conversations.untitled}
              ${entry.reason && html`<br /><span class="quiet small">${entry.reason}</span>`}</span>
            ${
              entry.status === "failed"
                ? html`<strong>${t.statuses.failed}</strong>`
                : html`<span class="quiet">${t.statuses[entry.status]}</span>`
            }
          </li>`,
        )}
      </ul>${all > MOST_SHOWN && html`<p class="quiet">${t.more(all - MOST_SHOWN)}</p>`}</details>`
    }
    ${
      canUndo &&
      html`<div class="actions"><${Button} small icon="retry" onClick=${onUndo}>${t.undo}<//></div>`
    }`;
}
