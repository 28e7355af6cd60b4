// The form of a prompt, and its row in a list.
import { useSignal } from "@preact/signals";
import { Button, Dialog, Failed, Field, Menu, confirm, toast } from "../components.js";
import { html } from "../html.js";
import { limits } from "../limits.js";
import { texts } from "../texts/en/prompts.js";
import { variablesOf } from "./prompts.js";

const t = texts.prompts;

/**
 * `of`: the prompt, or `{}`; `groups`: the choices of a shared one ([value, text]); `save(body)` stores it.
 */
export function PromptEditor({ of, groups, save, onClose }) {
  const isNew = of.name === undefined,
    busy = useSignal(false),
    error = useSignal(null),
    names = useSignal(variablesOf(of.text ?? ""));
  const told = (name) => (error.value?.param?.split(".").at(-1) === name ? error.value.message : null);
  const onSubmit = async (event) => {
    event.preventDefault();
    const { name, ...given } = /** @type {Record<string, string>} */ (
      Object.fromEntries(new FormData(event.target))
    );
    [busy.value, error.value] = [true, null];
    try {
      await save({ ...given, name: name.trim() });
      toast(texts.common.saved, { kind: "good" });
      onClose();
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  return html`<${Dialog} title=${isNew ? t.create : t.editTitle(of.name)} onClose=${onClose}>
    <form class="stack" onSubmit=${onSubmit}>
      ${
        groups &&
        html`<${Field} label=${t.group} name="group" options=${groups} defaultValue=${of.group ?? ""} />`
      }
      <${Field}
        label=${t.name}
        name="name"
        required
        maxlength=${limits.prompt.name.maxlength}
        autocomplete="off"
        dir="auto"
        defaultValue=${of.name}
        error=${told("name")}
        autofocus
      />
      <${Field}
        label=${t.text}
        name="text"
        required
        rows="8"
        maxlength=${limits.prompt.text.maxlength}
        defaultValue=${of.text}
        hint=${names.value.length ? t.asksFor(names.value) : t.textHint}
        error=${told("text")}
        onInput=${(event) => {
          names.value = variablesOf(event.currentTarget.value);
        }}
      />
      ${error.value && !told("name") && !told("text") && html`<${Failed} manual error=${error.value} />`}
      <div class="actions dialog-foot">
        <${Button} onClick=${onClose}>${texts.common.cancel}<//>
        <${Button} kind="primary" type="submit" busy=${busy.value}>${texts.common.save}<//>
      </div>
    </form>
  <//>`;
}

/** A prompt in a list; with `remove()` it can be changed. */
export function PromptRow({ of, hint, onEdit, remove }) {
  const ask = async () => {
    const title = t.deleteTitle,
      text = t.deleteText(of.name);
    if (!(await confirm({ title, text, action: texts.common.delete, danger: true }))) return;
    try {
      await remove();
      toast(t.deleted(of.name));
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
  };
  return html`<li>
    <div class="grow">
      <p class="item-title" dir="auto">${of.name}</p>
      <p class="quiet small one-line" dir="auto">${hint && html`<b>${hint}</b> · `}${of.text}</p>
    </div>
    ${
      remove &&
      html`<${Menu}
        label=${t.actions(of.name)}
        items=${[
          { label: t.edit, icon: "edit", onSelect: onEdit },
          { label: texts.common.delete, icon: "trash", danger: true, onSelect: ask },
        ]}
      />`
    }
  </li>`;
}
