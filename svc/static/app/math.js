// Formulas as MathML elements. KaTeX and a font are loaded with the first formula.
import { useSignal } from "@preact/signals";
import { h } from "preact";
import { useEffect } from "preact/hooks";
import { html } from "./html.js";
import { schedule } from "./scheduler.js";

const SCRIPT = "katex/katex.min.js"; // not a module: it exports itself to `globalThis.katex`
// Without a font with a MATH table, parentheses, roots and integrals do not grow, and many phones have none.
const FONT = new URL(
  "../vendor/@fontsource/noto-sans-math/noto-sans-math-latin-400-normal.woff2",
  import.meta.url,
);
const LONGEST = 2_000; // characters; a longer formula is shown as its source
let loading;

/** A formula waits for its font, so that it does not move. Without the font, it has one of the device. */
function load() {
  loading ??= Promise.all([import(SCRIPT), loadFont().catch(() => {})]).catch((error) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

async function loadFont() {
  const file = await fetch(FONT); // not by its address: the policy of the page allows no fonts
  document.fonts.add(await new FontFace("Noto Sans Math", await file.arrayBuffer()).load());
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
