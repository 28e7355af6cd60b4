// Parse Markdown into blocks: marked's tokens, split into parts that are quick to draw, in groups.
import { blocksOf, inlineOf } from "./syntax.js";

// Characters above which a block is split, and of a full group of blocks
const PART = 1_500;
// A last block that has no boundary is split anywhere, because it is parsed again each time
const LONGEST_OPEN = 12_000;
const WHOLE = ["code", "html", "space", "def", "formula", "details"]; // never split
const COLUMN = [3, 36]; // characters of a table's column, minimum and maximum

const lengthOf = (tokens) => tokens.reduce((length, { raw }) => length + raw.length, 0);
export const rawOf = (tokens) => tokens.map(({ raw }) => raw).join("");
// Marked recurses for each of them, with growing cost
const TOO_DEEP = /^(?:[ \t]*(?:>|[-*+][ \t]|\d+[.)][ \t])){40}/m;
const asItIs = (raw) => ({ type: "source", raw });

const lex = (text) => (TOO_DEEP.test(text) ? [asItIs(text)] : blocksOf(text));

/** Group `things`, which have a `raw`, by about PART characters. */
function chunks(things) {
  const found = [];
  let length = PART;
  for (const thing of things) {
    if (length >= PART) [length] = [0, found.push([])];
    found.at(-1).push(thing);
    length += thing.raw.length;
  }
  return found;
}

/** Return where to split a text longer than two parts: at a line end, else at a space, else anywhere. */
function cutOf(text) {
  for (const mark of ["\n", " "]) {
    const at = text.indexOf(mark, PART);
    if (at >= 0 && at < 2 * PART) return at + 1;
  }
  const isHalf = /[\uDC00-\uDFFF]/.test(text[2 * PART]);
  return 2 * PART + (isHalf ? 1 : 0);
}

const continuing = (parts) => parts.map((part, at) => (at ? { ...part, continued: true } : part));

/** Split a block into parts that can be drawn separately; all but the first are `continued`. */
function partsOf(token) {
  if (token.raw.length <= PART || WHOLE.includes(token.type)) return [token];
  switch (token.type) {
    case "list":
      return listParts(token);
    case "list_item":
    case "blockquote":
      return continuing(
        chunks(token.tokens.flatMap(partsOf)).map((tokens) => ({ ...token, tokens, raw: rawOf(tokens) })),
      );
    case "table":
      return tableParts(token);
    case "paragraph":
    case "text":
      return textParts(token);
    default:
      return [asItIs(token.raw)];
  }
}

function listParts(token) {
  let { start } = token;
  return continuing(
    chunks(token.items.flatMap(partsOf)).map((items) => {
      const part = { ...token, items, raw: rawOf(items), start };
      if (token.ordered) start = Number(start) + items.filter(({ continued }) => !continued).length;
      return part;
    }),
  );
}

function tableParts(token) {
  const lines = token.raw.trimEnd().split("\n").slice(-token.rows.length),
    widths = widthsOf(token);
  const rows = token.rows.map((cells, at) => ({ cells, raw: lines[at] ?? "" }));
  return continuing(
    chunks(rows).map((some) => ({
      ...token,
      widths,
      rows: some.map(({ cells }) => cells),
      raw: rawOf(some),
    })),
  );
}

/** Return the column widths of a split table in characters, so that its parts align. */
const widthsOf = ({ widths, header, rows }) =>
  widths ??
  header.map((head, at) => {
    const longest = Math.max(
      ...[head, ...rows.slice(0, 20).map((cells) => cells[at])].map(({ text }) => text.length),
    );
    return Math.max(COLUMN[0], Math.min(COLUMN[1], longest));
  });

function textParts(token) {
  const parts = [];
  for (let rest = token.text; rest; ) {
    const end = rest.length > 2 * PART ? cutOf(rest) : rest.length,
      raw = rest.slice(0, end);
    parts.push({ ...token, raw, text: raw, tokens: inlineOf(raw) });
    rest = rest.slice(end);
  }
  return continuing(parts);
}

/**
 * Return the settled part of a long last block, or null: `{block, lead}`. `lead.head` must precede the rest
 * so that it parses as the same block; `lead.start` is the number of the next list item.
 */
function settledOf(token) {
  const { type, raw } = token;
  if (raw.length <= PART) return null;
  if (type === "list" && token.items.length > 1) {
    const items = token.items.slice(0, -1);
    return {
      block: { ...token, items, raw: raw.slice(0, lengthOf(items)) },
      lead: { type, head: "", start: token.ordered ? Number(token.start) + items.length : "" },
    };
  }
  if (type === "table" && token.rows.length > 1) {
    const head = token.head ?? raw.slice(0, raw.indexOf("\n", raw.indexOf("\n") + 1) + 1),
      widths = widthsOf(token);
    const block = {
      ...token,
      widths,
      rows: token.rows.slice(0, -1),
      raw: raw.slice(0, raw.trimEnd().lastIndexOf("\n") + 1),
    };
    return { block, lead: { type, head, widths } };
  }
  if (type === "paragraph" && raw.length > 2 * PART) {
    const part = raw.slice(0, cutOf(raw));
    return {
      block: { ...token, raw: part, text: part, tokens: inlineOf(part) },
      lead: { type, head: "" },
    };
  }
  if (raw.length <= LONGEST_OPEN || type === "code" || type === "html") return null;
  const part = raw.slice(0, raw.lastIndexOf("\n", LONGEST_OPEN) + 1 || LONGEST_OPEN),
    [block, ...others] = lex(part);
  return {
    block: others.length ? asItIs(part) : { ...block, raw: part, continued: token.continued },
    lead: { type, head: "" },
  };
}

/** Return the tokens after a settled part; the first one continues it if it has the same type. */
function lexAfter(lead, text) {
  if (!lead) return lex(text);
  const tokens = lex(lead.head + text),
    [first] = tokens;
  if (first?.type !== lead.type) return tokens;
  if (lead.head) first.raw = first.raw.slice(lead.head.length);
  if (lead.type === "table" && !first.rows.length) first.type = "space";
  return [
    {
      ...first,
      continued: true,
      head: lead.head,
      widths: lead.widths,
      ...(lead.start && { start: lead.start }),
    },
    ...tokens.slice(1),
  ];
}

/**
 * Parse a growing text and return its tokens in groups, of which only the last changes. Only the last block,
 * or the last part of a long one, is parsed again. A list continues after an empty line, so the last block
 * is the last one that is not a space.
 */
export function growing() {
  let groups,
    open,
    length,
    whole = "",
    lead;
  const begin = () => {
    [groups, open, length, lead] = [[], [], 0, null];
  };
  const settle = (blocks, goesOn) => {
    length += lengthOf(blocks);
    [groups, open] = grouped(groups, open, blocks);
    lead = goesOn;
  };
  begin();
  return function read(text) {
    if (!text.startsWith(whole.slice(0, length))) begin();
    whole = text;
    for (;;) {
      const fresh = lexAfter(lead, text.slice(length));
      let last = fresh.length - 1;
      while (last > 0 && fresh[last].type === "space") last--;
      const done = fresh.slice(0, Math.max(0, last)),
        rest = fresh.slice(done.length);
      // If marked normalized the text (tabs), the offsets do not match; then all text is parsed each time.
      const addsUp = text.startsWith(rawOf(done), length),
        settled = addsUp && rest.length ? settledOf(rest[0]) : null;
      if (addsUp && done.length) settle(done, null);
      if (!settled || !text.startsWith(settled.block.raw, length)) {
        const [full, left] = grouped(groups, open, addsUp ? rest : fresh);
        return left.length ? [...full, left] : full;
      }
      settle([settled.block], settled.lead);
    }
  };
}

/** Append the parts of `blocks` to `[groups, open]`; `open` is the last group, which is not full. */
function grouped(groups, open, blocks) {
  const all = [...groups];
  let last = open;
  for (const token of blocks.flatMap(partsOf)) {
    last = [...last, token];
    if (lengthOf(last) >= PART) [last] = [[], all.push(last)];
  }
  return [all, last];
}
