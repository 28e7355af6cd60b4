// The list that / opens in the composer: search, choose a prompt, fill in its variables.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Button, Dialog, Failed, Field, Loading, placeBeside } from "../components.js";
import { html } from "../html.js";
import { Icon } from "../icons.js";
import { insertText } from "../insert-text.js";
import { link } from "../router.js";
import { texts } from "../texts/en/prompts.js";
import { filled, offered, variablesOf } from "./prompts.js";

const t = texts.prompts;
const LIST = "prompts-list";
const PAGE = 8; // entries

const originOf = ({ group }) =>
  group === undefined ? null : group === null ? t.ofEveryone : t.ofGroup(group);

/** `area`: the composer, whose text has a slash `at` that place. `close()` takes the list away. */
export default function PromptMenu({ area, at, close }) {
  const place = useRef(null), // of the slash and of what was typed after it: [start, end]
    typed = useSignal(""),
    filling = useSignal(null);
  useLayoutEffect(() => {
    place.current = [at, area.selectionEnd];
    typed.value = area.value.slice(at + 1, area.selectionEnd);
    offered.reload();
  }, []);
  const insert = (text) => {
    const act = () => {
      const [start, end] = place.current;
      const isThere = area.value.slice(start, end) === text; // a slash that is inserted opens the list again
      area.focus();
      area.setSelectionRange(isThere ? end : start, end);
      if (!isThere) insertText(area, text);
    };
    const isModal = filling.peek() !== null; // then nothing outside of the dialog gets the focus
    if (!isModal) act();
    close();
    if (isModal) setTimeout(act);
  };
  const discard = () => insert("");
  const giveBack = () => insert(`/${typed.peek()}`);
  const choose = (prompt) => {
    if (variablesOf(prompt.text).length) filling.value = prompt;
    else insert(prompt.text);
  };
  if (filling.value) return html`<${Variables} of=${filling.value} onDone=${insert} onCancel=${giveBack} />`;
  return html`<${Choice} ...${{ area, typed, choose, giveBack, discard }} />`;
}

function Choice({ area, typed, choose, giveBack, discard }) {
  const box = useRef(null),
    composes = useRef(false),
    active = useSignal(0);
  const all = offered.data.value,
    error = offered.error.value;
  const found = useComputed(() => {
    const words = typed.value.toLowerCase().split(/\s+/).filter(Boolean);
    return (offered.data.value ?? []).filter(({ name }) =>
      words.every((word) => name.toLowerCase().includes(word)),
    );
  });
  useLayoutEffect(() => {
    placeBeside(box.current, area.form);
    box.current.querySelector("input").focus();
    const outside = (event) => {
      if (!box.current.contains(event.target)) giveBack();
    };
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, [all === undefined]);
  useLayoutEffect(() => {
    // Somebody types something else, such as a path.
    if (all && typed.value && !found.value.length && !composes.current) giveBack();
  }, [all === undefined, typed.value]);
  useEffect(() => {
    box.current.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [active.value]);
  const onKey = (event) => {
    const last = found.value.length - 1;
    const to = {
      ArrowDown: Math.min(last, active.value + 1),
      ArrowUp: Math.max(0, active.value - 1),
      PageDown: Math.min(last, active.value + PAGE),
      PageUp: Math.max(0, active.value - PAGE),
    }[event.key];
    if (event.isComposing) return;
    if (event.key === "Escape" || (event.key === "Backspace" && !typed.value)) {
      event.stopPropagation();
      giveBack();
    } else if (event.key === "Enter" || (event.key === "Tab" && !event.shiftKey && found.value.length)) {
      if (found.value[active.value]) choose(found.value[active.value]);
    } else if (to !== undefined) active.value = to;
    else return;
    event.preventDefault();
  };
  return html`<div class="picker-panel" popover="manual" role="dialog" aria-label=${t.choose} ref=${box}>
    <input
      class="input"
      type="text"
      role="combobox"
      aria-expanded="true"
      aria-autocomplete="list"
      aria-controls=${LIST}
      aria-activedescendant=${found.value.length ? `${LIST}-${active.value}` : undefined}
      aria-label=${t.search}
      placeholder=${t.search}
      autocomplete="off"
      spellcheck="false"
      value=${typed.value}
      onKeyDown=${onKey}
      onInput=${(event) => {
        composes.current = event.isComposing;
        typed.value = event.currentTarget.value;
        active.value = 0;
      }}
    />
    ${
      all === undefined
        ? error
          ? html`<${Failed} error=${error} retry=${offered.reload} />`
          : html`<${Loading} />`
        : html`<ul id=${LIST} role="listbox" aria-label=${t.choose}>
          ${found.value.map(
            (prompt, at) => html`<li
              key=${prompt.id ?? `${prompt.group}/${prompt.name}`}
              id="${LIST}-${at}"
              role="option"
              aria-selected=${String(at === active.value)}
              onClick=${() => choose(prompt)}
              onPointerMove=${() => {
                active.value = at;
              }}
            ><span class="picker-name" dir="auto">${prompt.name}<small class="one-line">
              ${originOf(prompt) && html`<b>${originOf(prompt)}</b> · `}${prompt.text}</small></span></li>`,
          )}
        </ul>
        ${
          !found.value.length &&
          html`<p class="quiet picker-none" role="status">${all.length ? t.noMatch : t.none}</p>`
        }`
    }
    <a class="menu-item" href=${link("prompts")} onClick=${discard}>
      <${Icon} name="settings" size=${18} />${t.manage}
    </a>
  </div>`;
}

/** A form with a field for each variable. */
function Variables({ of, onDone, onCancel }) {
  const submit = (event) => {
    event.preventDefault();
    const values = [...event.target.querySelectorAll("textarea")].map(({ name, value }) => [name, value]);
    onDone(filled(of.text, Object.fromEntries(values)));
  };
  return html`<${Dialog} title=${of.name} onClose=${onCancel}>
    <form class="stack" onSubmit=${submit}>
      ${variablesOf(of.text).map(
        (name, at) => html`<${Field}
          key=${name}
          label=${name}
          name=${name}
          rows="1"
          autofocus=${at === 0}
          onKeyDown=${(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            event.currentTarget.form.requestSubmit();
          }}
        />`,
      )}
      <div class="actions dialog-foot">
        <${Button} onClick=${onCancel}>${texts.common.cancel}<//>
        <${Button} kind="primary" type="submit">${t.insert}<//>
      </div>
    </form>
  <//>`;
}
