// The button of the composer that opens the switches of the tools.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { html } from "./html.js";
import { Icon } from "./icons.js";
import { Lazy } from "./lazy.js";
import { texts } from "./texts.js";
import { chosenTools, isWithoutTools } from "./tools.js";

const t = texts.chat;

/** `conversation` is null in a new one. */
export function ToolsButton({ id, model, conversation }) {
  const box = useRef(null),
    opened = useSignal(false);
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
