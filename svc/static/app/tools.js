// The tools that the service runs for answers: those that there are, and the choice of each conversation.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { api } from "./api.js";
import { html } from "./html.js";
import { Icon } from "./icons.js";
import { Lazy } from "./lazy.js";
import { isBuiltin } from "./model-picker.js";
import { modelsOf, resource, settings } from "./state.js";
import { texts } from "./texts.js";

const t = texts.chat;
/** What the account may use now. */
export const tools = resource(api.tools.list);
const key = (id) => `svc.tools.${id ?? "new"}`;
const changes = signal(0);
const opened = signal(false);

/** The names that are chosen in a conversation, or in a new one for null. */
export function chosenTools(id) {
  changes.value; // a component that calls this is drawn again after a change
  return /** @type {string[]} */ (JSON.parse(localStorage.getItem(key(id)) ?? "[]"));
}

export function chooseTools(id, names) {
  try {
    if (names.length) localStorage.setItem(key(id), JSON.stringify(names));
    else localStorage.removeItem(key(id));
  } catch {
    /* a full storage keeps no choice */
  }
  changes.value++;
}

/** A new conversation has an id now, or has lost it because its first question was refused. */
export function moveTools(from, to) {
  const names = chosenTools(from);
  chooseTools(from, []);
  chooseTools(to, names);
}

/** Whether a model is known to call no tools. Models of other servers may do more than what is known of them. */
export function isWithoutTools(model) {
  const id = model ?? settings.data.value?.chat_model;
  const known = modelsOf("chat")?.find((one) => one.id === id)?.capabilities;
  return known ? !known.includes("tools") && (isBuiltin(id) || known.length > 0) : false;
}

/** Return the header of a question for a model: the chosen tools that there still are. */
export async function toolsHeader(id, model) {
  const chosen = chosenTools(id);
  if (!chosen.length || isWithoutTools(model)) return {};
  await tools.ensure();
  const names = chosen.filter((name) => tools.data.peek()?.some((one) => one.name === name) ?? true);
  return names.length ? { "x-service-tools": names.join(",") } : {};
}

/** The button of the composer. `conversation` is null in a new one. */
export function ToolsButton({ id, model, conversation }) {
  const box = useRef(null);
  const chosen = chosenTools(id),
    isOff = isWithoutTools(model);
  useEffect(() => {
    if (!opened.value) return undefined;
    const outside = (event) => {
      if (!box.current.contains(event.target)) opened.value = false;
    };
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, [opened.value]);
  useEffect(
    () => () => {
      opened.value = false;
    },
    [],
  );
  const close = () => {
    opened.value = false;
    box.current.querySelector("button").focus();
  };
  return html`<div class="tools" ref=${box}>
    <button
      type="button"
      class="icon-button tools-button ${chosen.length && !isOff ? "on" : ""}"
      aria-haspopup="dialog"
      aria-expanded=${String(opened.value)}
      onClick=${() => {
        opened.value = !opened.value;
      }}
    >
      <${Icon} name="tools" /><span class="tools-name">${t.tools}</span>
      ${
        chosen.length > 0 &&
        html`<span class="tools-count">${isOff ? t.toolsOff : chosen.length}</span>
          ${!isOff && html`<span class="hidden-text">${t.toolsOn}</span>`}`
      }
    </button>
    ${
      opened.value &&
      html`<${Lazy}
        name="tool-choice"
        from=${() => import("./tools/choice.js")}
        ...${{ id, conversation, isOff, close, anchor: box }}
      />`
    }
  </div>`;
}
