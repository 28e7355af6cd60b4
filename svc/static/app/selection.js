// Several conversations at once: delete them, or put them into the archive.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "./components.js";
import { archive, isArchive, list, removeLater } from "./conversation-list.js";
import { html } from "./html.js";
import { texts } from "./texts/en/selection.js";

const t = texts.selection;
const MOST = 100; // each is one request

/** `items`: the conversations that are shown; `onEnd()` ends the selection. */
export default function Selection({ items, onEnd }) {
  const chosen = useSignal(/** @type {string[]} */ ([])),
    box = useRef(null);
  useEffect(() => {
    box.current.querySelector("input").focus();
  }, []);
  const found = items.filter(({ id }) => chosen.value.includes(id)),
    isFull = found.length >= MOST;
  const end = (act) => () => {
    act?.(found);
    onEnd();
  };
  const turn = (id, on) => {
    const others = chosen.peek().filter((one) => one !== id);
    chosen.value = on ? [...others, id] : others;
  };
  const nearEnd = ({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
    if (scrollHeight - scrollTop - clientHeight < 400) list.loadMore();
  };
  const onKey = (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    onEnd();
  };
  const first = items.slice(0, MOST).map(({ id }) => id);
  return html`<div class="selection" role="group" aria-label=${t.label} ref=${box} onKeyDown=${onKey}>
    <p class="quiet small" role="status">${t.selected(found.length)}${isFull ? ` ${t.most(MOST)}` : ""}</p>
    <div class="actions">
      <${Button} small disabled=${!found.length} onClick=${end((all) => archive(all, !isArchive.peek()))}>
        ${isArchive.value ? texts.conversations.unarchive : texts.conversations.toArchive}
      <//>
      <${Button} small kind="danger" disabled=${!found.length} onClick=${end(removeLater)}>
        ${texts.common.delete}
      <//>
      <${Button} small onClick=${end()}>${t.done}<//>
    </div>
    <label class="selection-row">
      <input
        type="checkbox"
        checked=${found.length > 0 && found.length === first.length}
        onChange=${(event) => {
          chosen.value = event.currentTarget.checked ? first : [];
        }}
      />${t.all}
    </label>
    <ul class="conversation-list" onScroll=${nearEnd}>
      ${items.map(
        ({ id, title }) => html`<li key=${id}><label class="selection-row">
          <input
            type="checkbox"
            checked=${chosen.value.includes(id)}
            disabled=${isFull && !chosen.value.includes(id)}
            onChange=${(event) => turn(id, event.currentTarget.checked)}
          /><span class="one-line" dir="auto">${title ?? texts.conversations.untitled}</span>
        </label></li>`,
      )}
    </ul>
  </div>`;
}
