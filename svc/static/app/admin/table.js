// A table of a paged list, in its four states.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Button, Failed, Loading } from "../components.js";
import { html } from "../html.js";
import { texts } from "../texts.js";

/**
 * A table that scrolls in its frame. `head` is the cells of its header, the children are its rows. With
 * `cards`, each row of a narrow page is a card, and its cells have the words of the header.
 */
export function Table({ label, head, cards, children }) {
  const table = useRef(/** @type {HTMLTableElement} */ (null));
  useLayoutEffect(() => {
    const names = [...table.current.tHead.rows[0].cells].map((cell) => cell.textContent);
    for (const { cells } of table.current.tBodies[0].rows)
      for (const cell of cells) cell.dataset.name = names[cell.cellIndex];
  });
  return html`<div class="table-scroll" tabindex="0" role="region" aria-label=${label}>
    <table ref=${table} class=${cards ? "table table-cards" : "table"}>
      <thead><tr>${head}</tr></thead><tbody>${children}</tbody>
    </table>
  </div>`;
}

/** `of`: a paged list (state.js). The child draws the row of an item; `empty` is shown without items. */
export function PagedTable({ of, label, head, cards, empty, children }) {
  useEffect(() => {
    of.ensure();
  }, [of]);
  const items = of.items.value,
    error = of.error.value;
  if (error && !items?.length) return html`<${Failed} error=${error} retry=${of.reload} />`;
  if (items === undefined) return html`<${Loading} />`;
  if (!items.length) return empty;
  return html`<div class=${of.busy.value ? "is-busy" : undefined}>
    <${Table} label=${label} head=${head} cards=${cards}>${items.map(children)}<//>
    ${error && html`<${Failed} error=${error} retry=${of.more.value ? of.loadMore : of.reload} />`}
    ${
      of.more.value &&
      !error &&
      html`<div class="more">
        <${Button} busy=${of.busy.value} onClick=${of.loadMore}>${texts.common.more}<//>
      </div>`
    }
  </div>`;
}
