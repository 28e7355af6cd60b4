// The attachments of a message that is written or edited, and the button that adds some.
import { useRef } from "preact/hooks";
import { IconButton } from "./components.js";
import { bytes } from "./format.js";
import { html } from "./html.js";
import { Icon } from "./icons.js";
import { texts } from "./texts.js";

const t = texts.chat;
export const attachments = () => import("./attachments.js");

export function AttachedList({ items, onRemove }) {
  if (!items.length) return null;
  return html`<ul class="attached" aria-label=${t.attached}>
    ${items.map((item) => html`<${Attached} key=${item} item=${item} onRemove=${onRemove} />`)}
  </ul>`;
}

function Attached({ item, onRemove }) {
  const { kind, name, size, url } = item;
  return html`<li class=${url ? "attached-picture" : "file-chip"}>
    ${
      url
        ? html`<img src=${url} alt=${name} />`
        : html`
          ${
            kind === "reading"
              ? html`<span class="spinner" role="status" aria-label=${t.reading(name)}></span>`
              : html`<${Icon} name="artifacts" size=${18} />`
          }
          <span class="file-name" dir="auto">${name}</span><span class="quiet small">${bytes(size)}</span>
        `
    }
    <${IconButton} icon="close" size=${14} label=${t.remove(name)} onClick=${() => onRemove(item)} />
  </li>`;
}

/** Opens the file dialog. */
export function AttachButton({ onFiles }) {
  const file = useRef(null);
  return html`<input
      ref=${file}
      class="hidden-text"
      type="file"
      multiple
      tabindex="-1"
      aria-hidden="true"
      onChange=${(event) => {
        onFiles([...event.currentTarget.files]); // the browser empties the list when the event is over
        event.currentTarget.value = "";
      }}
    />
    <${IconButton} icon="attach" label=${t.attach} onClick=${() => file.current.click()} />`;
}
