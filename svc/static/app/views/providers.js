// The user's own model servers: add, test, edit and delete. Keys are never shown.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api } from "../api.js";
import { Button, confirm, CopyButton, Dialog, Failed, Field, Menu, Notice, toast } from "../components.js";
import { html } from "../html.js";
import { Icon } from "../icons.js";
import { limits } from "../limits.js";
import { go, link } from "../router.js";
import { KeyFields, OwnServers, keyIn, keyText, originOf } from "../server-key.js";
import { models, pagedList } from "../state.js";
import { texts } from "../texts/en/providers.js";

const t = texts.providers;
const providers = pagedList((after) => api.providers.list({ limit: 100, after }));
const edited = signal(null); // a provider, or {} for a new one
const KINDS = ["chat", "image", "speech", "transcription"];
/** Programs whose models the service finds on its own computer: what to run there, and the port. */
const PROGRAMS = {
  ollama: { command: "ollama pull llama3.2", port: 11434 },
  lmstudio: { command: "lms server start", port: 1234 },
};

export default function Providers({ query: { connect } }) {
  useEffect(() => {
    if (connect === "own") edited.value = {};
  }, [connect]);
  return html`<${OwnServers}
    title=${texts.views.providers}
    icon="provider"
    t=${t}
    of=${providers}
    onAdd=${() => {
      edited.value = {};
    }}
    item=${(provider) => html`<${Provider} key=${provider.id} of=${provider} />`}
  >
    ${edited.value && html`<${Editor} of=${edited.value} />`}
    ${Object.hasOwn(PROGRAMS, connect ?? "") && html`<${Connect} program=${connect} />`}
  <//>`;
}

/** Steps to connect a program on the service's computer; on another one, it is a provider. */
function Connect({ program }) {
  const result = useSignal(null),
    name = t.programs[program],
    [install, run, then] = t.connectSteps[program],
    { command, port } = PROGRAMS[program];
  const close = () => go(link("providers"), { replace: true });
  const addElsewhere = () => {
    close();
    edited.value = { name: `my-${program}`, base_url: `http://192.168.1.10:${port}/v1` };
  };
  const check = async () => {
    result.value = { busy: true };
    await models.reload();
    const found = (models.data.value ?? []).filter(({ id }) => id.startsWith(`${program}/`)).length;
    result.value = { found, text: found ? t.found(name, found) : t.notFound(name) };
  };
  return html`<${Dialog}
    title=${t.connectTitle(name)}
    onClose=${close}
    footer=${html`<${Button} onClick=${addElsewhere}>${t.elsewhere}<//>
      <${Button} kind="primary" busy=${result.value?.busy} onClick=${check}>${t.checkAgain}<//>`}
  >
    <ol class="steps">
      <li>${install}</li>
      <li>
        ${run}
        <div class="example"><pre><code>${command}</code></pre><${CopyButton} text=${command} /></div>
      </li>
      <li>${then}</li>
    </ol>
    ${
      result.value?.text &&
      html`<${Notice} kind=${result.value.found ? "good" : "warn"}>${result.value.text}<//>`
    }
  <//>`;
}

function Provider({ of }) {
  const test = useSignal(null); // {busy}, {error} or {models, formats}
  const run = async () => {
    test.value = { busy: true };
    try {
      test.value = await api.providers.test(of.id);
    } catch (error) {
      test.value = { error };
    }
  };
  const remove = async () => {
    if (
      !(await confirm({
        title: t.deleteTitle,
        text: t.deleteText(of.name),
        action: texts.common.delete,
        danger: true,
      }))
    )
      return;
    try {
      await api.providers.remove(of.id);
      providers.drop(of.id);
      models.reload();
      toast(t.deleted(of.name));
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
  };
  const { busy, error, models: listed, formats } = test.value ?? {};
  const answered = Object.entries(t.formats).flatMap(([name, text]) => (formats?.[name] ? text : []));
  return html`<li class="list-tall">
    <div class="list-row">
      <${Icon} name="provider" />
      <div class="grow">
        <p class="item-title">${of.name}</p>
        <p class="quiet small">
          ${of.base_url} · ${keyText(of)} · ${of.models ? t.narrowed(of.models.length) : t.allModels}
        </p>
      </div>
      <${Button} small busy=${busy} onClick=${run}>${t.test}<//>
      <${Menu}
        icon="more"
        label=${t.actions(of.name)}
        items=${[
          {
            label: t.edit,
            icon: "edit",
            onSelect: () => {
              edited.value = of;
            },
          },
          { label: texts.common.delete, icon: "trash", danger: true, onSelect: remove },
        ]}
      />
    </div>
    ${error && html`<${Failed} manual error=${error} retry=${run} />`}
    ${
      listed &&
      html`<${Notice} kind=${listed.length ? "good" : "warn"} icon=${listed.length ? "check" : "warning"}>
        <p>${listed.length ? t.works(listed.length) : t.worksEmpty}</p>
        ${answered.length > 0 && html`<p class="small">${t.answers(answered)}</p>`}
        ${
          listed.length > 0 &&
          html`<p class="small model-names">
            ${listed.slice(0, 12).join(", ")}
            ${listed.length > 12 ? t.andMore(listed.length - 12) : ""}
          </p>`
        }
      <//>`
    }
  </li>`;
}

function Editor({ of }) {
  const isNew = !of.id,
    busy = useSignal(false),
    error = useSignal(null),
    dropsKey = useSignal(false);
  const close = () => {
    edited.value = null;
  };
  const told = (name) => (error.value?.param === name ? error.value.message : null);
  const save = async (event) => {
    event.preventDefault();
    const given = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(event.target)));
    const { name, base_url } = given;
    const format = /** @type {Api.Provider["api"]} */ (given.api);
    const body = {
      name: name.trim(),
      base_url: base_url.trim(),
      api: format,
      models: modelsIn(given.models),
      ...keyIn(given),
    };
    [busy.value, error.value] = [true, null];
    try {
      providers.put(await (isNew ? api.providers.create(body) : api.providers.change(of.id, body)));
      models.reload();
      toast(isNew ? t.added(body.name) : texts.common.saved, { kind: "good" });
      close();
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  const changed = (event) => {
    dropsKey.value =
      Boolean(of.api_key_hint) && originOf(event.currentTarget.value) !== originOf(of.base_url);
  };
  return html`<${Dialog} title=${isNew ? t.add : t.editTitle(of.name)} onClose=${close}>
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
        label=${t.baseUrl}
        name="base_url"
        type="url"
        required
        maxlength=${limits.provider.base_url.maxlength}
        placeholder="https://api.example.com/v1"
        spellcheck="false"
        defaultValue=${of.base_url}
        hint=${t.baseUrlHint}
        error=${told("base_url")}
        onInput=${changed}
      />
      <${Field}
        label=${t.format}
        name="api"
        options=${Object.entries(t.formats)}
        defaultValue=${of.api ?? "chat"}
        hint=${t.formatHint}
      />
      <${KeyFields}
        hint=${of.api_key_hint}
        moved=${dropsKey.value && t.keyDropped}
        error=${told("api_key")}
      />
      <${Field}
        label=${`${t.models} (${texts.signIn.optional})`}
        name="models"
        rows="3"
        spellcheck="false"
        defaultValue=${modelText(of.models)}
        hint=${t.modelsHint}
        error=${error.value?.param?.startsWith("models") ? error.value.message : null}
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

/**
 * Parse one model per line: its name, then a space and its kind unless it is chat. Empty means all models
 * that the server lists.
 */
function modelsIn(text) {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  if (!lines.length) return null;
  return lines.map((line) => {
    const [, id, kind] = line.match(/^(.*?)(?:\s+(\S+))?$/);
    return KINDS.includes(kind) ? (kind === "chat" ? id : { id, kind }) : line;
  });
}

const modelText = (list) =>
  (list ?? []).map((model) => (typeof model === "string" ? model : `${model.id} ${model.kind}`)).join("\n");
