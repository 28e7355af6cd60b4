// Links in texts of models: safe addresses, and citations such as [1] of an answer's sources.
import { signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { html } from "./html.js";
import { texts } from "./texts.js";

const UNVERIFIED = "\u2063"; // after a citation; invisible, if the text is shown as it is
const CITATION = new RegExp(`(\\[\\d{1,4}\\]${UNVERIFIED}?)`);

/** Return a safe link address, or null. */
export function safe(href) {
  try {
    const url = new URL(href);
    return ["https:", "http:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** The sources of an answer. */
export const Sources = createContext(/** @type {Api.Source[]} */ ([]));

/** Return the text with its citations as elements. Those without a source stay text. */
export const cited = (text) =>
  CITATION.test(text)
    ? text.split(CITATION).map((part, at) => (at % 2 ? html`<${Citation} text=${part} />` : part))
    : text;

/**
 * Return the text with a mark after each citation whose quotation is not in its file. `citations`: those of
 * files, in the order of the text.
 * @param {string} text
 * @param {Api.Citation[]} [citations]
 */
export function withUnverified(text, citations = []) {
  if (citations.every(({ verified }) => verified !== false)) return text;
  const numbers = new Set(citations.map(({ number }) => number));
  let at = 0;
  return text.replace(/\[(\d{1,4})\]/g, (whole, number, place) => {
    if (!numbers.has(Number(number)) || citations[at++]?.verified !== false) return whole;
    const isLink = /^[(:]/.test(text.slice(place + whole.length));
    return isLink ? whole : whole + UNVERIFIED;
  });
}

/** The source that is shown in its file, or null (tools/sources.js). */
export const shownSource = signal(/** @type {Api.Source} */ (null));

/** Return the numbers that a text cites. */
export const citedIn = (text) => new Set(text.match(new RegExp(CITATION, "g")) ?? []);

function Citation({ text }) {
  const source = useContext(Sources).find(({ number }) => text.startsWith(`[${number}]`));
  if (source?.kind === "file")
    return html`<${FileCitation} source=${source} />
      ${text.endsWith(UNVERIFIED) && html`<strong class="unverified">${texts.chat.unverified}</strong>`}`;
  const href = source && safe(source.url);
  if (!href) return text;
  const name = source.title || href;
  return html`<a
    class="citation"
    href=${href}
    target="_blank"
    rel="noopener noreferrer"
    title=${name}
    aria-label=${`${text} ${name}`}
  >${text}</a>`;
}

/** Opens a passage in its file. Children: what is shown in place of its number. */
export const FileCitation = ({ source, children = `[${source.number}]` }) => html`<button
  type="button"
  class="citation"
  title=${source.name}
  aria-label=${`[${source.number}] ${source.name}`}
  onClick=${() => {
    shownSource.value = source;
  }}
>${children}</button>`;
