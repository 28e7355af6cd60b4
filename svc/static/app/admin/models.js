// The GGUF files that the service runs itself: their states, adding one by its address, and removing one.
import { useSignal } from "@preact/signals";
import { Button, confirm, Failed, Field, Notice, Progress, Resource, toast } from "../components.js";
import { bytes } from "../format.js";
import { html } from "../html.js";
import { usePolling } from "../polling.js";
import { resource } from "../state.js";
import { administration } from "./api.js";
import { Table } from "./table.js";
import { adminTexts } from "../texts/en/admin.js";

const t = adminTexts.models,
  EVERY_MS = 1000;
const models = resource(administration.models.list);
const nameOf = (file) => file.replace(/\.gguf$/i, "");

export default function Models() {
  usePolling(models.reload, EVERY_MS);
  return html`<${Resource} of=${models}>
    ${(of) => html`
      <p class="quiet part-intro">${t.intro} <code>${of.folder}</code></p>
      ${!of.installed && html`<${Notice} kind="warn" icon="warning">${t.notInstalled}<//>`}
      ${of.data.length > 0 && html`<${Files} of=${of.data} />`}
      <${Add} download=${of.download} />
    `}
  <//>`;
}

function Files({ of }) {
  return html`<${Table}
    label=${t.title}
    cards
    head=${html`<th>${t.model}</th><th>${t.state}</th><th class="num">${t.size}</th>
      <th class="num">${t.memory}</th><th></th>`}
  >
    ${of.map(
      (one) => html`<tr key=${one.file}>
        <td class="table-name">${one.id}</td>
        <td>${t.states[one.state]}${one.error && html`<pre class="small">${one.error}</pre>`}</td>
        <td class="num">${bytes(one.size_bytes)}</td>
        <td class="num">${one.used_bytes ? bytes(one.used_bytes) : "–"}</td>
        <td><${Button} small kind="danger" onClick=${() => remove(one)}>${t.remove}<//></td>
      </tr>`,
    )}
  <//>`;
}

async function remove({ file, id }) {
  const question = { title: t.removeTitle(id), text: t.removeText, action: t.remove, danger: true };
  if (await confirm(question)) await act(() => administration.models.remove(nameOf(file)));
}

const stop = ({ name }) => administration.models.remove(name);

/** Do something, and show what has changed, or the error. */
async function act(what) {
  try {
    await what();
  } catch (error) {
    toast(error.message, { kind: "bad" });
  }
  await models.reload();
}

function Add({ download }) {
  const url = useSignal(""),
    busy = useSignal(false),
    error = useSignal(null);
  const add = async (event) => {
    event.preventDefault();
    [busy.value, error.value] = [true, null];
    try {
      await administration.models.add({ url: url.value.trim() });
      url.value = "";
      await models.reload();
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  return html`<h2>${t.add}</h2>
    <form class="card stack" onSubmit=${add}>
      <${Field}
        label=${t.address}
        hint=${t.hint}
        type="url"
        required
        value=${url.value}
        onInput=${(event) => {
          url.value = event.currentTarget.value;
        }}
      />
      ${error.value && html`<${Failed} error=${error.value} />`}
      ${download && html`<${Download} of=${download} />`}
      <div class="actions">
        <${Button}
          type="submit"
          kind="primary"
          icon="download"
          busy=${busy.value}
          disabled=${download?.running}
        >
          ${t.start}
        <//>
        ${download?.running && html`<${Button} onClick=${() => act(() => stop(download))}>${t.stop}<//>`}
      </div>
    </form>`;
}

function Download({ of }) {
  if (of.error) return html`<${Notice} kind="bad" icon="warning">${t.failed(of.name, of.error)}<//>`;
  if (!of.running) return html`<${Notice} kind="good" icon="check">${t.added(of.name)}<//>`;
  const label = t.running(of.name, bytes(of.bytes), of.size_bytes && bytes(of.size_bytes));
  return html`<${Progress} label=${label} value=${of.bytes} max=${of.size_bytes ?? undefined} />`;
}
