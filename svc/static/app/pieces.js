// Plain text of any length. A long one stands in pieces, each a block that is laid out only while it is near
// the screen.
import { html, memo } from "./html.js";

const PIECE_CHARACTERS = 3_000;
const LONGEST_LINE = 12_000; // a longer one is broken where it would stall the page

/**
 * `text` cut at line ends, which the blocks stand for. As a text grows, all of its pieces but the last stay
 * as they are.
 */
export function piecesOf(text) {
  const pieces = [];
  let at = 0;
  while (text.length - at > PIECE_CHARACTERS) {
    const end = text.indexOf("\n", at + PIECE_CHARACTERS);
    if (end >= 0 && end - at <= LONGEST_LINE) {
      pieces.push(text.slice(at, end));
      at = end + 1;
    } else if (text.length - at > LONGEST_LINE) {
      const space = text.lastIndexOf(" ", at + LONGEST_LINE);
      const to = space > at + PIECE_CHARACTERS ? space + 1 : at + LONGEST_LINE;
      pieces.push(text.slice(at, to));
      at = to;
    } else break;
  }
  if (at < text.length || !pieces.length) pieces.push(text.slice(at));
  return pieces;
}

/** How high a text will be, in lines of `columns` characters. */
export function linesOf(text, columns = 80) {
  let lines = 0;
  for (let at = 0; at <= text.length; lines++) {
    const end = text.indexOf("\n", at);
    lines += Math.floor(((end < 0 ? text.length : end) - at) / columns);
    if (end < 0) return lines + 1;
    at = end + 1;
  }
  return lines;
}

const Piece = memo(
  ({ text, columns }) =>
    html`<span class="piece" style=${{ containIntrinsicBlockSize: `auto ${linesOf(text, columns)}lh` }}>
      ${text}
    </span>`,
);

export function Pieces({ text, columns }) {
  const pieces = piecesOf(text);
  return pieces.length === 1
    ? text
    : pieces.map((piece, at) => html`<${Piece} key=${at} text=${piece} columns=${columns} />`);
}
