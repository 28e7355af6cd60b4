// Links in texts of models: safe addresses, and citations such as [1] of an answer's sources.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { html } from "./html.js";

const CITATION = /(\[\d{1,4}\])/;

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

/** Return the numbers that a text cites. */
export const citedIn = (text) => new Set(text.match(new RegExp(CITATION, "g")) ?? []);

function Citation({ text }) {
  const source = useContext(Sources).find(({ number }) => text === `[${number}]`);
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
