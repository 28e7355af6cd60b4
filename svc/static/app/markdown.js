// Markdown as elements: marked's lexer gives tokens, each of which becomes an element here. No HTML is ever made out of a string;
// what a text brings as HTML is shown as the text it is, and pictures from elsewhere are links: nothing leaves this origin.
import { lexer } from "marked";
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { CodeBlock } from "./code.js";
import { html, memo } from "./html.js";
import { Picture } from "./picture.js";
import { Pieces, linesOf } from "./pieces.js";
import { takeTurn } from "./turns.js";

const NAMED = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", hellip: "…", mdash: "—", ndash: "–", times: "×", rarr: "→", larr: "←" };
const LONG_BLOCK = { list: 1_500, paragraph: 3_000, table: 8_000 }; // characters, from which on a block stands in parts
const GROUP_CHARACTERS = 3_000;
const ARTIFACT = /^\/artifacts\/(art_\w+)\/content$/;

/** `text` with its character references read, as a browser would read them in HTML. */
function plain(text) {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(\w{2,8}));/gi, (whole, decimal, hex, name) => {
    if (name) return Object.hasOwn(NAMED, name) ? NAMED[name] : whole;
    const code = decimal ? Number(decimal) : parseInt(hex, 16);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

/** An address that may be followed, or null. */
function safe(href) {
  try {
    const url = new URL(href);
    return ["https:", "http:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

const inline = (tokens) => tokens?.map(element);
const ofText = (token) => (token.tokens ? inline(token.tokens) : token.text.length > LONG_BLOCK.paragraph ? html`<${Pieces} text=${plain(token.text)} />` : plain(token.text));

/** A token keeps its element: one that has not changed is not even looked at again. */
const element = (token) => (token.element ??= made(token));

function made(token) {
  switch (token.type) {
    case "space": case "def": return null;
    case "heading": return html`<h3 class="md-h${token.depth}">${inline(token.tokens)}</h3>`;
    case "paragraph": return html`<p class=${continued(token)}>${inline(token.tokens)}</p>`;
    case "text": return ofText(token);
    case "escape": return token.text;
    case "strong": return html`<strong>${inline(token.tokens)}</strong>`;
    case "em": return html`<em>${inline(token.tokens)}</em>`;
    case "del": return html`<del>${inline(token.tokens)}</del>`;
    case "codespan": return html`<code>${token.text}</code>`;
    case "br": return html`<br />`;
    case "hr": return html`<hr />`;
    case "code": return html`<${CodeBlock} text=${token.text} language=${token.lang?.split(/\s/)[0] ?? ""} />`;
    case "blockquote": return html`<blockquote>${inline(token.tokens)}</blockquote>`;
    case "list": return list(token);
    case "table": return table(token);
    case "link": return linked(token);
    case "image": return picture(token);
    case "checkbox": return null; // its list item shows it
    default: return token.raw;
  }
}

/** The class of a part of a block that goes on with the one before it. */
const continued = (token) => (token.continued ? "continued" : undefined);

function list({ ordered, start, items, ...token }) {
  const entries = items.map((item) => html`<li class=${item.task ? "task" : undefined}>
    ${item.task && html`<input type="checkbox" checked=${item.checked} disabled aria-label=${plain(item.text.slice(0, 80))} />`}${inline(item.tokens)}</li>`);
  return ordered ? html`<ol start=${start || 1} class=${continued(token)}>${entries}</ol>` : html`<ul class=${continued(token)}>${entries}</ul>`;
}

function table({ header, rows, align, ...token }) {
  const cell = (tag) => (one, at) => html`<${tag} class=${align[at] ? `align-${align[at]}` : undefined} scope=${tag === "th" ? "col" : undefined}>${inline(one.tokens)}<//>`;
  return html`<div class="md-table ${continued(token) ?? ""}" tabindex="0" role="group" aria-label=${header.map(({ text }) => text).join(", ")}><table>
    <thead class=${token.continued ? "hidden-text" : undefined}><tr>${header.map(cell("th"))}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${row.map(cell("td"))}</tr>`)}</tbody></table></div>`;
}

function linked(token) {
  const href = safe(token.href);
  if (!href) return inline(token.tokens);
  return html`<a href=${href} target="_blank" rel="noopener noreferrer" title=${href}>${inline(token.tokens)}</a>`;
}

function picture({ href, text }) {
  const artifact = ARTIFACT.exec(href)?.[1];
  if (artifact) return html`<${Picture} id=${artifact} name=${plain(text)} />`;
  const address = safe(href);
  return address ? html`<a href=${address} target="_blank" rel="noopener noreferrer" title=${address}>${plain(text) || address}</a>` : plain(text);
}

const lex = (text) => lexer(text, { gfm: true, breaks: true });

/**
 * A long last block as a part that stays as it is: `{token, lead}`. `lead` tells what the rest of the block goes on with:
 * `head` is what has to stand before it to be read as the same thing, `start` the number of the next entry. Else null.
 */
function parted(token) {
  const { type, raw } = token;
  if (!(raw.length > LONG_BLOCK[type])) return null;
  if (type === "list") {
    const items = token.items.slice(0, -1), length = items.reduce((sum, item) => sum + item.raw.length, 0);
    const part = { ...token, items, raw: raw.slice(0, length) };
    return items.length ? { token: part, lead: { type, head: "", start: token.ordered ? Number(token.start) + items.length : "" } } : null;
  }
  const length = raw.trimEnd().lastIndexOf("\n") + 1;
  if (type === "table") {
    const head = token.head ?? raw.slice(0, raw.indexOf("\n", raw.indexOf("\n") + 1) + 1);
    const part = { ...token, rows: token.rows.slice(0, -1), raw: raw.slice(0, length) };
    return part.rows.length ? { token: part, lead: { type, head } } : null;
  }
  const end = length || (raw.length > LONG_BLOCK.paragraph * 2 ? raw.lastIndexOf(" ") + 1 : 0);
  return end ? { token: { ...lex(raw.slice(0, end))[0], raw: raw.slice(0, end), continued: token.continued }, lead: { type, head: "" } } : null;
}

/** The tokens of what follows a part; the first one goes on with it where it is the same thing. */
function lexAfter(lead, text) {
  if (!lead) return lex(text);
  const tokens = lex(lead.head + text), [first] = tokens;
  if (first?.type !== lead.type) return tokens;
  if (lead.head) first.raw = first.raw.slice(lead.head.length);
  if (lead.type === "table" && !first.rows.length) first.type = "space";
  return [{ ...first, continued: true, head: lead.head, ...(lead.start && { start: lead.start }) }, ...tokens.slice(1)];
}

/**
 * Reads a text that grows: gives its tokens in groups, of which only the last one changes. Only the last block, or the last part
 * of a long one, is read again, for no other can change by what follows. (A list goes on after an empty line; so the last block is
 * the last one that is no space.)
 */
export function growing() {
  let groups, open, openLength, length, whole = "", lead;
  const begin = () => { [groups, open, openLength, length, lead] = [[], [], 0, 0, null]; };
  const settle = (tokens, goesOn) => {
    for (const token of tokens) {
      open = [...open, token];
      openLength += token.raw.length;
      length += token.raw.length;
      if (openLength >= GROUP_CHARACTERS) [groups, open, openLength] = [[...groups, open], [], 0];
    }
    lead = goesOn;
  };
  begin();
  return function read(text) {
    if (!text.startsWith(whole.slice(0, length))) begin();
    whole = text;
    const fresh = lexAfter(lead, text.slice(length));
    let last = fresh.length - 1;
    while (last > 0 && fresh[last].type === "space") last--;
    const done = fresh.slice(0, Math.max(0, last)), rest = fresh.slice(done.length);
    // Where marked has read a text in its own way (tabs, line ends), its pieces do not add up: then all is read again each time.
    if (!text.startsWith(done.map((token) => token.raw).join(""), length)) return [...groups, [...open, ...fresh]];
    if (done.length) settle(done, null);
    const part = rest.length ? parted(rest[0]) : null;
    if (!part || !text.startsWith(part.token.raw, length)) return [...groups, [...open, ...rest]];
    settle([part.token], part.lead);
    return read(text);
  };
}

const SLICE_CHARACTERS = [500, 1_500, 50_000]; // at least, at first, at most
const SLICE_MS = 8;
const IDLE_SHARE = 3; // while a text is written: for each millisecond of drawing, so many for all else

/** The next `size` characters of `whole` more than `shown`, which it begins with, or its first ones. */
const onward = (shown, whole, size) => whole.slice(0, (whole.startsWith(shown) ? shown.length : 0) + Math.round(size));

/**
 * Markdown as elements. `text`: a string, or a signal while it is still written. What is long is drawn slice by slice, and what
 * takes long to draw less often, so that the page stays quick.
 */
export function Markdown({ text }) {
  const [, draw] = useState(0), begun = performance.now();
  const [least, first, most] = SLICE_CHARACTERS;
  const now = useMemo(() => ({ read: growing(), shown: "", slice: first, rest: 0, cancel: null }), []);
  const whole = () => (typeof text === "string" ? text : text.peek());
  if (!now.shown && whole().length <= first) now.shown = whole();
  now.plan = () => {
    if (now.cancel || now.shown === whole()) return;
    const step = () => { [now.cancel, now.shown] = [null, onward(now.shown, whole(), now.slice)]; draw((times) => times + 1); };
    const wait = now.rest - performance.now(), turn = () => { now.cancel = takeTurn(step); };
    if (wait <= 0) return turn();
    const timer = setTimeout(turn, wait);
    now.cancel = () => clearTimeout(timer);
  };
  useLayoutEffect(() => {
    const end = performance.now(), spent = end - begun;
    now.rest = typeof text === "string" ? end : end + spent * IDLE_SHARE;
    now.slice = Math.min(most, Math.max(least, now.slice * Math.min(2, SLICE_MS / spent)));
    now.plan();
  });
  useEffect(() => (typeof text === "string" ? undefined : text.subscribe(() => now.plan())), [text]);
  useEffect(() => () => now.cancel?.(), []);
  const groups = now.read(now.shown);
  return html`<div class="md">${groups.map((tokens, at) => html`<${Blocks} key=${at} tokens=${tokens} isLast=${at === groups.length - 1} />`)}</div>`;
}

/** Blocks that are laid out only while they are near the screen. All but the last group stay as they are. */
const Blocks = memo(({ tokens, isLast }) => {
  const style = isLast ? undefined : { containIntrinsicBlockSize: `auto ${tokens.reduce((sum, { raw }) => sum + linesOf(raw), 0)}lh` };
  return html`<div class="md-group ${isLast ? "last" : ""}" style=${style}>${tokens.map(element)}</div>`;
});
