// The model picker: a button with the model's name, and a list with search and prices.
import { signal, useComputed, useSignal } from "@preact/signals";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { Failed, Loading, placeBeside, toast } from "./components.js";
import { modelName, price } from "./format.js";
import { html } from "./html.js";
import { Icon } from "./icons.js";
import { models, modelsOf, remembered, settings } from "./state.js";
import { texts } from "./texts.js";

const t = texts.models;
/** The model of the next chat, stored by this browser; null uses the default. */
export const chosenModel = remembered("model", null);
/** The models that answer the next question together, or none: then the chosen one answers. */
export const compared = signal(/** @type {string[]} */ ([]));
export const PICKER_ID = "model-picker";
/** Whether a model is one of the service's own, which are for trying out. */
export const isBuiltin = (id) => id.startsWith("builtin/");

/** The chosen model of a kind, or the default: the operator's first, else the built-in one, else an own. */
export function usedModel(of, id) {
  const list = modelsOf(of) ?? [];
  const isDefault = [(model) => !model.byok && !isBuiltin(model.id), (model) => isBuiltin(model.id)];
  return (
    list.find((model) => model.id === id) ?? list.find(isDefault[0]) ?? list.find(isDefault[1]) ?? list[0]
  );
}

/**
 * `value`: an id or null; `onChange(id or null)`; `kind` of models; `optional` allows null. `onCompare` opens
 * the choice of several models, of which `several` are chosen.
 */
export function ModelPicker({
  value,
  onChange,
  kind = "chat",
  optional = true,
  id = PICKER_ID,
  several = 0,
  onCompare,
}) {
  const open = useSignal(false),
    query = useSignal(""),
    active = useSignal(0);
  const box = useRef(null),
    listId = useId();
  useEffect(() => {
    models.ensure();
    if (optional && kind === "chat") settings.ensure();
  }, []);
  const known = modelsOf(kind);
  useEffect(() => {
    if (!value || !known || known.some(({ id: one }) => one === value)) return;
    onChange(null);
    toast(t.gone(value));
  }, [value, models.data.value]);
  const entries = useComputed(() => {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = (modelsOf(kind) ?? []).filter((model) =>
      words.every((word) => model.id.toLowerCase().includes(word)),
    );
    const sorted = [...found.filter(({ id }) => !isBuiltin(id)), ...found.filter(({ id }) => isBuiltin(id))];
    return optional && !words.length ? [null, ...sorted] : sorted;
  });
  useLayoutEffect(() => {
    if (!open.value) return undefined;
    if (known?.some(({ state }) => state)) models.reload(); // of a GGUF file, which changes
    [query.value, active.value] = [
      "",
      Math.max(
        0,
        entries.peek().findIndex((model) => (model?.id ?? null) === value),
      ),
    ];
    const panel = box.current.querySelector(".picker-panel");
    placeBeside(panel, box.current);
    panel.querySelector("input").focus();
    const outside = (event) => {
      if (!box.current.contains(event.target)) open.value = false;
    };
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, [open.value]);
  useEffect(() => {
    box.current.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [active.value, open.value]);
  const close = () => {
    open.value = false;
    box.current.querySelector("button").focus();
  };
  const choose = (model) => {
    close();
    onChange(model?.id ?? null);
  };
  const onKey = (event) => {
    const last = entries.value.length - 1;
    const to = {
      ArrowDown: Math.min(last, active.value + 1),
      ArrowUp: Math.max(0, active.value - 1),
      PageDown: Math.min(last, active.value + 8),
      PageUp: Math.max(0, active.value - 8),
    }[event.key];
    if (event.key === "Escape") {
      event.stopPropagation();
      close();
    } else if (event.key === "Enter") {
      if (entries.value[active.value] !== undefined) choose(entries.value[active.value]);
    } else if (event.key === "Tab") {
      if (!onCompare || event.shiftKey) open.value = false; // else the button below has the focus
      return;
    } else if (to !== undefined) active.value = to;
    else return;
    event.preventDefault();
  };
  const standard = kind === "chat" ? settings.data.value?.chat_model : null;
  const firstBuiltin = entries.value.findIndex((model) => model && isBuiltin(model.id));
  const shown = value ?? standard;
  const name = several ? t.several(several) : (shown ?? t.standard);
  return html`<div class="picker" ref=${box}>
    <button
      type="button"
      id=${id}
      class="picker-button"
      aria-haspopup="dialog"
      aria-expanded=${String(open.value)}
      aria-label=${t.label(name)}
      onClick=${() => {
        open.value = !open.value;
      }}
    ><span>${several || !shown ? name : shortName(shown)}</span><${Icon} name="down" size=${16} /></button>
    ${
      open.value &&
      html`<div class="picker-panel" popover="manual" role="dialog" aria-label=${t.choose}>
        <input
          class="input"
          type="search"
          role="combobox"
          aria-expanded="true"
          aria-controls=${listId}
          aria-activedescendant=${`${listId}-${active.value}`}
          aria-label=${t.search}
          placeholder=${t.search}
          autocomplete="off"
          spellcheck="false"
          onKeyDown=${onKey}
          onInput=${(event) => {
            query.value = event.currentTarget.value;
            active.value = 0;
          }}
        />
        ${
          models.data.value === undefined
            ? models.error.value
              ? html`<${Failed} error=${models.error.value} retry=${models.reload} />`
              : html`<${Loading} />`
            : html`
              <ul id=${listId} role="listbox" aria-label=${t.choose}>
                ${entries.value.map(
                  (model, at) => html`
                  ${at === firstBuiltin && html`<li role="presentation" class="group">${t.builtin}</li>`}
                  <${Entry}
                    key=${model?.id ?? ""}
                    id="${listId}-${at}"
                    model=${model}
                    standard=${standard}
                    selected=${at === active.value}
                    chosen=${(model?.id ?? null) === value}
                    onChoose=${() => choose(model)}
                    onHover=${() => {
                      active.value = at;
                    }}
                  />`,
                )}
              </ul>
              ${!entries.value.length && html`<p class="quiet picker-none" role="status">${t.none}</p>`}
            `
        }
        ${
          onCompare &&
          html`<button
            type="button"
            class="menu-item"
            onClick=${() => {
              close();
              onCompare();
            }}
          >${t.compare}</button>`
        }
      </div>`
    }
  </div>`;
}

const shortName = (id) => modelName(id).slice(id.indexOf("/") + 1);

function Entry({ id, model, standard, selected, chosen, onChoose, onHover }) {
  const mark = chosen && html`<${Icon} name="check" size=${18} />`;
  const content =
    model === null
      ? html`
        <span class="picker-name">${t.standard}<small>${standard ?? t.standardHint}</small></span>${mark}
      `
      : html`
        <span class="picker-name">
          ${shortName(model.id)}
          <small>
            ${model.id.slice(0, model.id.indexOf("/"))}${model.byok && html` · <b>${t.byok}</b>`}
            ${t.states[model.state] && ` · ${t.states[model.state]}`}
          </small>
        </span>
        <span class="picker-price">${model.byok ? "" : (price(model) ?? t.free)}</span>${mark}
      `;
  return html`<li
    id=${id}
    role="option"
    aria-selected=${String(selected)}
    onClick=${onChoose}
    onPointerMove=${selected ? undefined : onHover}
  >${content}</li>`;
}
