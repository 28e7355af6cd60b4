// API keys: create with a name and a limit, show once with examples, list with spend, edit, delete.
import { signal, useSignal } from "@preact/signals";
import { api } from "../api.js";
import { stepOf } from "../arrows.js";
import {
  Button,
  confirm,
  CopyButton,
  Dialog,
  Empty,
  Failed,
  Field,
  IconButton,
  Money,
  Notice,
  Page,
  Resource,
  Time,
  toast,
} from "../components.js";
import { TERMINAL, examplesOf } from "../examples.js";
import { html } from "../html.js";
import { Icon } from "../icons.js";
import { limits } from "../limits.js";
import { LimitField, limitIn, SpendingBar } from "../spending.js";
import { models, resource, settings } from "../state.js";
import { texts } from "../texts/en/keys.js";

const t = texts.keys;
const keys = resource(async () =>
  (await api.keys.list()).sort((one, other) => (one.created_at < other.created_at ? 1 : -1)),
);
const edited = signal(/** @type {Partial<Api.ApiKey>} */ (null)); // a key, or {} for a new one

export default function Keys() {
  const add = html`<${Button}
    kind="primary"
    icon="plus"
    onClick=${() => {
      edited.value = {};
    }}
  >${t.create}<//>`;
  return html`<${Page} title=${texts.views.keys} intro=${t.intro} actions=${add}>
    <${Resource} of=${keys}>${(list) =>
      list.length
        ? html`<ul class="list">${list.map((key) => html`<${Key} key=${key.id} of=${key} />`)}</ul>`
        : html`<${Empty} icon="key" title=${t.none} text=${t.noneText}>
          <${Button} onClick=${() => {
            edited.value = {};
          }}>${t.create}<//><//>`}<//>
    <section class="stack">
      <h2>${t.use}</h2>
      <p class="quiet">${t.useHint}</p>
      <${Examples} id="any-key" token="YOUR_KEY" />
    </section>
    ${edited.value && html`<${Editor} of=${edited.value} />`}<//>`;
}

function Key({ of }) {
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
      await api.keys.remove(of.id);
      keys.set(keys.data.peek().filter(({ id }) => id !== of.id));
      toast(t.deleted(of.name));
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
  };
  return html`<li>
    <${Icon} name="key" />
    <div class="grow">
      <p class="item-title">${of.name}</p>
      <p class="quiet small">
        <code>${of.key_prefix}…</code> · ${t.made} <${Time} at=${of.created_at} /> · ${
          of.last_used_at ? html`${t.used} <${Time} at=${of.last_used_at} />` : t.neverUsed
        }
        ${of.spent_micros !== undefined && html` · ${t.spent} <${Money} micros=${of.spent_micros} />`}
      </p>
      <${SpendingBar} of=${of} />
    </div>
    <${IconButton}
      icon="edit"
      label=${t.editNamed(of.name)}
      onClick=${() => {
        edited.value = of;
      }}
    />
    <${IconButton} icon="trash" label=${t.deleteNamed(of.name)} onClick=${remove} />
  </li>`;
}

/** The dialog for a key, or with `{}` for a new one. */
function Editor({ of }) {
  const made = useSignal(/** @type {Api.NewApiKey} */ (null)),
    busy = useSignal(false),
    error = useSignal(null);
  const close = () => {
    edited.value = null;
  };
  const save = async (event) => {
    event.preventDefault();
    const form = event.currentTarget;
    const body = { name: String(new FormData(form).get("name")), monthly_limit_micros: limitIn(form) };
    [busy.value, error.value] = [true, null];
    try {
      if (of.id) await api.keys.change(of.id, body);
      else made.value = await api.keys.create(body);
      keys.reload();
      if (of.id) close();
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  if (made.value) return html`<${Made} of=${made.value} onClose=${close} />`;
  const told = error.value?.param === "name";
  return html`<${Dialog} title=${of.id ? t.edit : t.create} onClose=${close}>
    <form class="stack" onSubmit=${save}>
      <${Field}
        label=${t.name}
        name="name"
        required
        maxlength=${limits.key.name.maxlength}
        autofocus
        autocomplete="off"
        hint=${t.nameHint}
        defaultValue=${of.name}
        error=${told ? error.value.message : null}
      />
      <${LimitField} micros=${of.monthly_limit_micros} error=${error.value} />
      ${error.value && !error.value.param && html`<${Failed} error=${error.value} />`}
      <div class="actions dialog-foot"><${Button} onClick=${close}>${texts.common.cancel}<//>
        <${Button} kind="primary" type="submit" busy=${busy.value}>
          ${of.id ? texts.common.save : t.createAction}<//></div>
    </form>
  <//>`;
}

/** Shows the new key. It is shown only once, so only a button closes the dialog. */
function Made({ of, onClose }) {
  return html`<${Dialog} title=${t.madeTitle} wide dismissable=${false} onClose=${onClose}
    footer=${html`<${Button} kind="primary" onClick=${onClose}>${t.kept}<//>`}>
    <${Notice} kind="warn" icon="warning">${t.once}<//>
    <div class="secret">
      <code>${of.key}</code>
      <${CopyButton} text=${of.key} withLabel label=${t.copyKey} />
    </div>
    <${Examples} id="new-key" token=${of.key} />
  <//>`;
}

/** Settings for the programs that people use, with `token` as the key. `id` is unique on the page. */
function Examples({ id, token }) {
  const chosen = useSignal("codex");
  const draw = ({ chat_model, certificate_file }, offered) => {
    const examples = examplesOf({
      origin: location.origin,
      key: token,
      model: chat_model,
      context: offered.find((one) => one.id === chat_model)?.context_length,
      certificate: certificate_file,
    });
    const programs = Object.keys(examples),
      at = programs.indexOf(chosen.value);
    const onKey = (event) => {
      const step = stepOf(event),
        to = step ? at + step : { Home: 0, End: -1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      chosen.value = programs.at(to % programs.length);
      document.getElementById(`${id}-${chosen.value}`).focus();
    };
    return html`<div class="tabs" role="tablist" aria-label=${t.examples} onKeyDown=${onKey}>
        ${programs.map(
          (name) => html`<button
            type="button"
            role="tab"
            class="tab"
            id="${id}-${name}"
            aria-controls="${id}-example"
            aria-selected=${String(name === chosen.value)}
            tabindex=${name === chosen.value ? 0 : -1}
            onClick=${() => {
              chosen.value = name;
            }}
          >${t.programs[name]}</button>`,
        )}
      </div>
      <div
        class="stack"
        id="${id}-example"
        role="tabpanel"
        aria-labelledby="${id}-${chosen.value}"
        tabindex="0"
      >
        ${examples[chosen.value].map(
          ({
            title,
            code,
          }) => html`<p class="quiet small"><bdi>${title === TERMINAL ? t.terminal : title}</bdi></p>
            <div class="example">
              <pre tabindex="0"><code>${code}</code></pre><${CopyButton} text=${code} />
            </div>`,
        )}
        ${certificate_file && html`<p class="quiet small">${t.certificate}</p>`}
      </div>`;
  };
  return html`<${Resource} of=${settings}>${(chosenSettings) =>
    html`<${Resource} of=${models}>${(offered) => draw(chosenSettings, offered)}<//>`}<//>`;
}
