// Text that the page inserts into a text area, as if it were typed.

const MANY_LINES = 300; // which browsers take seconds to insert

/** Insert a text at the selection. Only few lines can be undone. */
export function insertText(area, text) {
  if (text.split("\n", MANY_LINES).length < MANY_LINES)
    return document.execCommand("insertText", false, text);
  const { selectionStart: start, selectionEnd: end, value, maxLength } = area;
  area.setRangeText(text.slice(0, maxLength - value.length + end - start), start, end, "end");
  return area.dispatchEvent(new Event("input", { bubbles: true }));
}
