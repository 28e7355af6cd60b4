// Markdown beyond GitHub's tables and lists, as marked extensions: formulas, footnotes, folded sections, and
// the elements of HTML that models write. One tilde is text: H~2~O is no deletion.
import { Lexer, Marked, lexer } from "marked";

/** @type {import("marked").MarkedExtension} */
const TWO_TILDES = { tokenizer: { del: (text) => (text.startsWith("~~") ? false : undefined) } };
const BASE = { gfm: true, breaks: true };
const GITHUB = { ...new Marked(TWO_TILDES).defaults, ...BASE };
const USED = /\$|\\[([]|\[\^|<(?:details|br|su[bp]|kbd|mark|u)\b/i;
const AHEAD = 2_000; // characters in which the next formula is searched
const BLOCK_START = /^ {0,3}(?:\$\$|\\\[|\[\^[^\]\s]{1,40}\]:|<details\b)/im;
const BLOCK_FORMULA =
  /^ {0,3}(?:\$\$(?!\$)((?:(?!\$\$)[\s\S]){1,5000})\$\$|\\\[([\s\S]{1,5000}?)\\\])[ \t]*(?:\n+|$)/;
/** A formula whose end has not arrived yet. It ends at an empty line at the latest. */
const OPEN_FORMULA = /^ {0,3}(?:\$\$(?!\$)|\\\[)(?:(?!\$\$|\\\]|\n[ \t]*\n)[\s\S]){0,2000}$/;
/** Inline formulas have no backtick, because a code span goes before a formula. */
const IN_PARENTHESES = /^\\\(([^`]{1,2000}?)\\\)/;
const IN_DISPLAY = /^(?:\\\[([^`]{1,2000}?)\\\]|\$\$(?!\$)([^$`]{1,2000}?)\$\$)/;
/** As in Pandoc: no space inside the dollars, and no digit after them, so prices stay text. */
const IN_DOLLARS = /^\$(?![\s$])((?:\\.|[^\\$`\n]){0,2000}?(?:\\.|[^\\$`\s]))\$(?![\d$])/;
/** Elements without attributes, and the longest text inside one. Others stay text. */
const ELEMENT = /^<(br) ?\/?>|^<(su[bp]|kbd|mark|u)>([\s\S]{0,500}?)<\/\2>/i;
const INLINE_START = /(?<![\w$])\$|\\[([]|\[\^|<(?:br|su[bp]|kbd|mark|u)\b/i;
const REFERENCE = /^\[\^([^\]\s]{1,40})\](?!:)/;
const FOOTNOTE = /^ {0,3}\[\^([^\]\s]{1,40})\]:[ \t]*([^\n]*(?:\n(?: {2,}|\t)[^\n]*)*)(?:\n+|$)/;
const DETAILS = /^ {0,3}<details\b[^>\n]*>\s*(?:<summary>([^\n]*?)<\/summary>)?/i;

function blockFormula(text) {
  const found = BLOCK_FORMULA.exec(text);
  if (found) return { type: "formula", raw: found[0], text: (found[1] ?? found[2]).trim(), display: true };
  const open = OPEN_FORMULA.exec(text);
  return open ? { type: "source", raw: open[0] } : undefined;
}

function inlineFormula(text) {
  const shown = IN_DISPLAY.exec(text);
  if (shown) return { type: "formula", raw: shown[0], text: shown[1] ?? shown[2], display: true };
  const found = IN_PARENTHESES.exec(text) ?? IN_DOLLARS.exec(text);
  return found ? { type: "formula", raw: found[0], text: found[1], display: false } : undefined;
}

/** @this {{lexer: import("marked").Lexer}} */
function inlineElement(text) {
  const found = ELEMENT.exec(text);
  if (!found) return undefined;
  const [raw, br, name, inside] = found;
  if (br) return { type: "br", raw };
  return { type: "element", raw, name: name.toLowerCase(), tokens: this.lexer.inlineTokens(inside) };
}

function reference(text) {
  const found = REFERENCE.exec(text);
  return found ? { type: "reference", raw: found[0], name: found[1] } : undefined;
}

/** @this {{lexer: import("marked").Lexer}} */
function footnote(text) {
  const found = FOOTNOTE.exec(text);
  if (!found) return undefined;
  const token = { type: "footnote", raw: found[0], name: found[1], tokens: [] };
  this.lexer.inline(found[2].replace(/\n[ \t]+/g, "\n"), token.tokens);
  return token;
}

/**
 * A <details> element up to its own end tag, or to the end of the text while that has not arrived yet.
 * @this {{lexer: import("marked").Lexer}}
 */
function details(text) {
  const head = DETAILS.exec(text);
  if (!head) return undefined;
  const tags = /<details\b|<\/details>[ \t]*\n*/gi;
  let open = 0,
    from = text.length,
    to = text.length;
  for (let tag = tags.exec(text); tag; tag = tags.exec(text)) {
    open += tag[0].startsWith("</") ? -1 : 1;
    if (open) continue;
    [from, to] = [tag.index, tags.lastIndex];
    break;
  }
  const inside = text.slice(head[0].length, from).trim();
  const token = { type: "details", raw: text.slice(0, to), text: inside, tokens: [] };
  this.lexer.inline(head[1]?.trim() ?? "", token.tokens);
  return token;
}

/** The start of the next extension in the paragraph at the start of `text`. */
function blockStart(text) {
  const end = text.indexOf("\n\n");
  return (end < 0 ? text : text.slice(0, end)).search(BLOCK_START);
}

function inlineStart(text) {
  const at = text.slice(0, AHEAD).search(INLINE_START);
  return at < 0 && text.length > AHEAD ? AHEAD : at;
}

const block = (name, tokenizer) => ({ name, level: "block", start: blockStart, tokenizer });
const inline = (name, tokenizer) => ({ name, level: "inline", start: inlineStart, tokenizer });
const EXTENDED = {
  ...new Marked(
    /** @type {import("marked").MarkedExtension} */ ({
      extensions: [
        block("formula", blockFormula),
        block("footnote", footnote),
        block("details", details),
        inline("inline-formula", inlineFormula),
        inline("reference", reference),
        inline("inline-element", inlineElement),
      ],
      ...TWO_TILDES,
    }),
  ).defaults,
  ...BASE,
};

/** The extensions cost time, so only a text that may use them is read with them. */
const optionsFor = (text) => (USED.test(text) ? EXTENDED : GITHUB);

export const blocksOf = (text) => lexer(text, optionsFor(text));
export const inlineOf = (text) => Lexer.lexInline(text, optionsFor(text));
