// Formulas as MathML elements. KaTeX is loaded with the first formula.
import { useSignal } from "@preact/signals";
import { h } from "preact";
import { useEffect } from "preact/hooks";
import { html } from "./html.js";
import { schedule } from "./scheduler.js";

const SCRIPT = "katex/katex.min.js"; // not a module: it exports itself to `globalThis.katex`
const LONGEST = 2_000; // characters; a longer formula is shown as its source
let loading;

function load() {
  loading ??= import(SCRIPT).catch((error) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

/** The elements of KaTeX's tree. Its own elements are spans around <math>, which are left out. */
function elements(node) {
  if (node.text !== undefined) return node.text;
  if ("character" in node) return node.character ?? h("mspace", { width: `${node.width}em` });
  const children = node.children.map(elements);
  return node.type ? h(node.type, node.attributes, children) : children;
}

/** The formula as elements, or null if it is not valid TeX. */
function parsed(text, display) {
  try {
    const options = { output: "mathml", displayMode: display, strict: "ignore", maxSize: 20, maxExpand: 500 };
    return elements(globalThis.katex.__renderToDomTree(text, options));
  } catch (error) {
    if (error instanceof globalThis.katex.ParseError) return null;
    throw error;
  }
}

/**
 * `text`: TeX; `source`: with its delimiters, which is shown until the formula is drawn, and if it is not
 * valid.
 */
export function Formula({ text, source, display }) {
  const drawn = useSignal(null);
  useEffect(() => {
    drawn.value = null;
    if (text.length > LONGEST) return undefined;
    let cancel = null,
      gone = false;
    const draw = () => {
      drawn.value = parsed(text, display);
    };
    load().then(
      () => {
        if (!gone) cancel = schedule(draw);
      },
      () => {}, // offline: the source stays
    );
    return () => {
      gone = true;
      cancel?.();
    };
  }, [text, display]);
  const content = drawn.value ?? source;
  if (!display) return html`<span class="formula" dir="ltr">${content}</span>`;
  return html`<span class="formula formula-display" dir="ltr" tabindex="0" role="group" aria-label=${text}>
    ${content}
  </span>`;
}
