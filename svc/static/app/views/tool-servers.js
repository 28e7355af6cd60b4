// The user's own tool servers (MCP): add, test, edit and delete; which tools ask, and changed ones to accept.
import { signal, useSignal } from "@preact/signals";
import { api } from "../api.js";
import { Button, confirm, Dialog, Failed, Field, Menu, Notice, Switch, toast } from "../components.js";
import { html } from "../html.js";
import { Icon } from "../icons.js";
import { limits } from "../limits.js";
import { KeyFields, OwnServers, keyIn, keyText, originOf } from "../server-key.js";
import { pagedList } from "../state.js";
import { texts } from "../texts/en/providers.js";
import { tools } from "../tools.js";
import { visible } from "../tools/names.js";
import { toolTexts } from "../texts/en/tools.js";

const t = toolTexts.servers,
  own = texts.providers; // the words of both kinds of servers
const servers = pagedList((after) => api.toolServers.list({ limit: 100, after }));
const edited = signal(null); // a server, or {} for a new one
const LOOKS = { ready: "final", failed: "error", changed: "stopped" };

export default function ToolServers() {
  return html`<${OwnServers}
    title=${t.title}
    icon="tools"
    t=${t}
    of=${servers}
    onAdd=${() => {
      edited.value = {};
    }}
    item=${(server) => html`<${Server} key=${server.id} of=${server} />`}
  >
    ${edited.value && html`<${Editor} of=${edited.value} />`}
  <//>`;
}

/** Show a changed server. What chats and runs may use has changed as well. */
function put(server) {
  servers.put(server);
  if (tools.data.peek()) tools.reload();
}

function Server({ of }) {
  const test = useSignal(null); // {busy}, {error} or {found}
  const run = async () => {
    test.value = { busy: true };
    try {
      const { ok, ...server } = await api.toolServers.test(of.id);
      put(server);
      test.value = { found: server.tools.length };
    } catch (error) {
      test.value = { error };
      api.toolServers.show(of.id).then(put, () => {}); // its state
    }
  };
  const change = async (what, said = texts.common.saved) => {
    try {
      put(await api.toolServers.change(of.id, what));
      toast(said, { kind: "good" });
    } catch (error) {
      toast(error.message, { kind: "bad" });
      servers.put({ ...of }); // switches return
    }
  };
  const remove = async () => {
    const text = t.deleteText(of.name);
    if (!(await confirm({ title: t.deleteTitle, text, action: texts.common.delete, danger: true }))) return;
    try {
      await api.toolServers.remove(of.id);
      servers.drop(of.id);
      if (tools.data.peek()) tools.reload();
      toast(own.deleted(of.name));
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
  };
  const { busy, error, found } = test.value ?? {};
  const edit = () => {
    edited.value = of;
  };
  return html`<li class="list-tall">
    <div class="list-row">
      <${Icon} name="tools" />
      <div class="grow">
        <p class="item-title">
          ${of.name} <span class="status status-${LOOKS[of.state]}">${t.states[of.state]}</span>
        </p>
        <p class="quiet small">
          ${of.url} · ${keyText(of)} · ${t.tools(of.tools.length)}
        </p>
      </div>
      <${Button} small busy=${busy} onClick=${run}>${own.test}<//>
      <${Menu}
        icon="more"
        label=${own.actions(of.name)}
        items=${[
          { label: own.edit, icon: "edit", onSelect: edit },
          { label: texts.common.delete, icon: "trash", danger: true, onSelect: remove },
        ]}
      />
    </div>
    ${error && html`<${Failed} manual error=${error} retry=${run} />`}
    ${found !== undefined && html`<${Notice} kind="good" icon="check">${t.works(found)}<//>`}
    ${of.detail && !error && html`<${Notice} kind="warn" icon="warning">${of.detail}<//>`}
    <${Changed} tools=${of.tools} onAccept=${() => change({ accepted: true }, t.accepted)} />
    ${
      of.tools.length > 0 &&
      html`<details class="table-fold">
        <summary>${t.tools(of.tools.length)}</summary>
        <p class="hint">${t.askHead}</p>
        ${of.tools.map(
          (tool) => html`<${Switch}
          key=${tool.name}
          label=${t.ask(tool.name)}
          hint=${[visible(tool.description), !tool.accepted ? t.waiting : !tool.available && t.left]
            .filter(Boolean)
            .join(" · ")}
          checked=${tool.ask}
          onChange=${(ask) => change({ ask: { [tool.name]: ask } })}
        />`,
        )}
      </details>`
    }
  </li>`;
}

/** The tools that wait, with what their owner has accepted before. */
function Changed({ tools: all, onAccept }) {
  const waiting = all.filter(({ accepted }) => !accepted);
  if (!waiting.length) return null;
  return html`<div class="approval">
    <p class="item-title">${t.changed(waiting.length)}</p>
    <p class="quiet small">${t.changedText}</p>
    ${waiting.map(
      ({
        name,
        description,
        accepted_description: before = null,
      }) => html`<div key=${name} class="tool-changed">
        <p class="item-title mono">${name}</p>
        ${
          before !== null &&
          html`<p class="label">${t.before}</p><p class="plain-text">${visible(before)}</p>`
        }
        <p class="label">${t.now}</p><p class="plain-text">${visible(description)}</p>
      </div>`,
    )}
    <div class="actions"><${Button} small kind="primary" onClick=${onAccept}>${t.accept}<//></div>
  </div>`;
}

function Editor({ of }) {
  const isNew = !of.id,
    busy = useSignal(false),
    error = useSignal(null),
    isMoved = useSignal(false);
  const close = () => {
    edited.value = null;
  };
  const told = (name) => (error.value?.param === name ? error.value.message : null);
  const save = async (event) => {
    event.preventDefault();
    const given = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(event.target)));
    const name = given.name.trim(),
      url = given.url.trim();
    const key = keyIn(given);
    [busy.value, error.value] = [true, null];
    try {
      if (isNew) put(await api.toolServers.create({ name, url, ...key }));
      else
        put(
          await api.toolServers.change(of.id, {
            ...(name !== of.name && { name }),
            ...(url !== of.url && { url }),
            ...key,
          }),
        );
      toast(isNew ? t.added(name) : texts.common.saved, { kind: "good" });
      close();
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  return html`<${Dialog} title=${isNew ? t.add : own.editTitle(of.name)} onClose=${close}>
    <form class="stack" onSubmit=${save}>
      <${Field}
        label=${t.name}
        name="name"
        required
        maxlength=${limits.provider.name.maxlength}
        pattern=${limits.provider_name_pattern}
        autocomplete="off"
        spellcheck="false"
        defaultValue=${of.name}
        hint=${t.nameHint}
        error=${told("name")}
        autofocus
      />
      <${Field}
        label=${t.url}
        name="url"
        type="url"
        required
        maxlength=${limits.provider.base_url.maxlength}
        placeholder="https://tools.example.com/mcp"
        spellcheck="false"
        defaultValue=${of.url}
        hint=${t.urlHint}
        error=${told("url")}
        onInput=${(event) => {
          isMoved.value = !isNew && originOf(event.currentTarget.value) !== originOf(of.url);
        }}
      />
      <${KeyFields}
        hint=${of.api_key_hint}
        moved=${isMoved.value && t.keyDropped}
        error=${told("api_key")}
      />
      ${error.value && !error.value.param && html`<${Failed} error=${error.value} />`}
      <div class="actions dialog-foot">
        <${Button} onClick=${close}>${texts.common.cancel}<//>
        <${Button} kind="primary" type="submit" busy=${busy.value}>
          ${isNew ? t.addAction : texts.common.save}
        <//>
      </div>
    </form>
  <//>`;
}
