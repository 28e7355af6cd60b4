// Markdown as elements: marked's lexer gives tokens, each of which becomes an element here. No HTML is ever made out of a string;
// what a text brings as HTML is shown as the text it is, and pictures from elsewhere are links: nothing leaves this origin.
import { lexer } from "marked";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { CodeBlock } from "./code.js";
import { html } from "./html.js";
import { Picture } from "./picture.js";

const NAMED = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", hellip: "…", mdash: "—", ndash: "–", times: "×", rarr: "→", larr: "←" };
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

const elements = new WeakMap(); // token -> element: one that has not changed is not even looked at again
const inline = (tokens) => tokens?.map(element);
const ofText = (token) => (token.tokens ? inline(token.tokens) : plain(token.text));

function element(token) {
  if (!elements.has(token)) elements.set(token, made(token));
  return elements.get(token);
}

function made(token) {
  switch (token.type) {
    case "space": case "def": return null;
    case "heading": return html`<h3 class="md-h${token.depth}">${inline(token.tokens)}</h3>`;
    case "paragraph": return html`<p>${inline(token.tokens)}</p>`;
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

function list({ ordered, start, items }) {
  const entries = items.map((item) => html`<li class=${item.task ? "task" : undefined}>
    ${item.task && html`<input type="checkbox" checked=${item.checked} disabled aria-label=${plain(item.text.slice(0, 80))} />`}${inline(item.tokens)}</li>`);
  return ordered ? html`<ol start=${start || 1}>${entries}</ol>` : html`<ul>${entries}</ul>`;
}

function table({ header, rows, align }) {
  const cell = (tag) => (one, at) => html`<${tag} class=${align[at] ? `align-${align[at]}` : undefined} scope=${tag === "th" ? "col" : undefined}>${inline(one.tokens)}<//>`;
  return html`<div class="md-table" tabindex="0" role="group" aria-label=${header.map(({ text }) => text).join(", ")}><table>
    <thead><tr>${header.map(cell("th"))}</tr></thead>
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
 * Reads a text that grows: only its last block is read again, for no other can change by what follows.
 * (A list goes on after an empty line; so the last block is the last one that is no space.)
 */
export function growing() {
  let settled = [], length = 0, whole = "";
  return (text) => {
    if (!text.startsWith(whole.slice(0, length))) [settled, length] = [[], 0];
    whole = text;
    const fresh = lex(text.slice(length));
    let last = fresh.length - 1;
    while (last > 0 && fresh[last].type === "space") last--;
    const done = fresh.slice(0, Math.max(0, last));
    const size = done.reduce((sum, token) => sum + token.raw.length, 0);
    // Where marked has read a text in its own way (tabs, line ends), its pieces do not add up: then all is read again each time.
    if (text.startsWith(done.map((token) => token.raw).join(""), length)) {
      settled = settled.concat(done);
      length += size;
      return [...settled, ...fresh.slice(done.length)];
    }
    return [...settled, ...fresh];
  };
}

const LONG_CHARACTERS = 20_000;

export function Markdown({ text }) {
  const content = useMemo(() => lex(text).map(element), [text]);
  return html`<div class=${text.length > LONG_CHARACTERS ? "md md-long" : "md"}>${content}</div>`;
}

/** A text that is still written. Where it takes long to draw, it is drawn less often, so that the page stays quick. */
export function LiveMarkdown({ text }) {
  const shown = useSignal(text.peek()), state = useRef({ cost: 0, at: 0, timer: 0 });
  useEffect(() => {
    const now = state.current;
    const stop = text.subscribe((value) => {
      clearTimeout(now.timer);
      const wait = now.at + now.cost * 3 - performance.now();
      if (wait <= 0) shown.value = value;
      else now.timer = setTimeout(() => { shown.value = text.peek(); }, wait);
    });
    return () => { stop(); clearTimeout(now.timer); };
  }, [text]);
  const begin = performance.now();
  const read = useRef();
  read.current ??= growing();
  const drawn = html`<div class="md md-long">${read.current(shown.value).map(element)}</div>`;
  useEffect(() => {
    const end = performance.now();
    Object.assign(state.current, { cost: end - begin, at: end });
  });
  return drawn;
}
