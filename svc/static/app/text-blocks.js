// Plain text of any length. A long text is split into blocks that are laid out only near the screen.
import { html, memo } from "./html.js";

const PIECE_CHARACTERS = 3_000;
const LONGEST_LINE = 12_000; // longer lines are broken, because they stall the page

/** Split `text` at line ends. While a text grows, all blocks but the last stay the same. */
export function textBlocks(text) {
  const blocks = [];
  let at = 0;
  while (text.length - at > PIECE_CHARACTERS) {
    const end = text.indexOf("\n", at + PIECE_CHARACTERS);
    if (end >= 0 && end - at <= LONGEST_LINE) {
      blocks.push(text.slice(at, end));
      at = end + 1;
    } else if (text.length - at > LONGEST_LINE) {
      const space = text.lastIndexOf(" ", at + LONGEST_LINE);
      const to = space > at + PIECE_CHARACTERS ? space + 1 : at + LONGEST_LINE;
      blocks.push(text.slice(at, to));
      at = to;
    } else break;
  }
  if (at < text.length || !blocks.length) blocks.push(text.slice(at));
  return blocks;
}

/** Estimate the number of lines of a text with `columns` characters per line. */
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

export function TextBlocks({ text, columns }) {
  const blocks = textBlocks(text);
  return blocks.length === 1
    ? text
    : blocks.map((piece, at) => html`<${Piece} key=${at} text=${piece} columns=${columns} />`);
}
