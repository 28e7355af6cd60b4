// A code block with its language, a copy button and colours. Prism is loaded with the first code block.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Button, CopyButton, toast } from "./components.js";
import { html, memo } from "./html.js";
import { schedule } from "./scheduler.js";
import { whenVisible } from "./viewport.js";
import { linesOf, textBlocks } from "./text-blocks.js";
import { texts } from "./texts.js";

const COLOUR_EVERY_MS = 150;
const ALIASES = {
  js: "javascript",
  mjs: "javascript",
  ts: "typescript",
  py: "python",
  sh: "bash",
  shell: "bash",
  zsh: "bash",
  console: "bash",
  html: "markup",
  xml: "markup",
  svg: "markup",
  yml: "yaml",
  md: "markdown",
  rb: "ruby",
  rs: "rust",
  cs: "csharp",
  "c++": "cpp",
  dockerfile: "docker",
  kt: "kotlin",
  golang: "go",
  ps1: "powershell",
  make: "makefile",
  patch: "diff",
};
/** Languages that a language depends on; they are loaded first. */
const NEEDS = {
  javascript: ["clike"],
  typescript: ["javascript"],
  jsx: ["markup", "javascript"],
  tsx: ["jsx", "typescript"],
  c: ["clike"],
  cpp: ["c"],
  csharp: ["clike"],
  go: ["clike"],
  java: ["clike"],
  kotlin: ["clike"],
  swift: [],
  ruby: ["clike"],
  php: ["markup-templating"],
  "markup-templating": ["markup"],
  markdown: ["markup"],
};
const PLAIN =
  "bash clike css diff docker graphql ini json lua makefile markup powershell python r rust sql toml " +
  "yaml";
const LANGUAGES = new Set([...Object.keys(NEEDS), ...PLAIN.split(" ")]);
const loads = new Map();

/** Return Prism with the grammar of `name`, or null for an unknown language. */
async function grammar(name) {
  if (!LANGUAGES.has(name)) return null;
  await load("core");
  for (const needed of NEEDS[name] ?? []) await grammar(needed);
  await load(name);
  return globalThis.Prism.languages[name];
}

function load(name) {
  if (!loads.has(name)) {
    // Prism is not a module: it exports itself to `global`, and `manual` stops it from colouring the page.
    globalThis.global = globalThis;
    globalThis.Prism ??= { manual: true };
    const loading = import(`prismjs/prism-${name}.min.js`);
    loads.set(name, loading);
    loading.catch(() => loads.delete(name));
  }
  return loads.get(name);
}

const coloured = (token) => {
  if (typeof token === "string") return token;
  if (Array.isArray(token)) return token.map(coloured);
  return html`<span class="token-${token.type}">${coloured(token.content)}</span>`;
};

/** Code that is coloured while it grows. Text since the last pass is plain. */
function CodePiece({ text, name, alone }) {
  const content = useSignal({ text: "", elements: [] }),
    box = useRef(null),
    now = useRef({ text, timer: 0, stop: null, left: false });
  now.current.text = text;
  useEffect(() => {
    if (!LANGUAGES.has(name) || now.current.timer || content.peek().text === text) return;
    const colour = (rules) => {
      const all = now.current.text;
      content.value = { text: all, elements: globalThis.Prism.tokenize(all, rules).map(coloured) };
      now.current.timer = 0;
    };
    const colourSoon = async () => {
      const rules = await grammar(name).catch(() => null);
      if (rules && !now.current.left) now.current.stop = schedule(() => colour(rules));
    };
    now.current.timer = setTimeout(() => {
      now.current.stop = whenVisible(box.current, colourSoon);
    }, COLOUR_EVERY_MS);
  }, [text, name, content.value]);
  useEffect(
    () => () => {
      now.current.left = true;
      clearTimeout(now.current.timer);
      now.current.stop?.();
    },
    [],
  );
  const { text: known, elements } = content.value;
  const shown = known && text.startsWith(known) ? [elements, text.slice(known.length)] : text;
  const style = alone ? undefined : { containIntrinsicBlockSize: `auto ${linesOf(text, Infinity)}lh` };
  return html`<span class=${alone ? undefined : "piece"} style=${style} ref=${box}>${shown}</span>`;
}

const Coloured = memo(CodePiece);

/** Show a text in the panel of previews. `stored`: the artifact that has it. */
export const openPreview = async (kind, text, stored) => {
  try {
    await (await import("./preview-panel.js")).open(kind, text, stored);
  } catch {
    toast(texts.common.viewFailed, { kind: "bad" });
  }
};

export function CodeBlock({ text, language = "", label }) {
  const name = ALIASES[language.toLowerCase()] ?? language.toLowerCase();
  const title = label ?? (language || texts.common.code),
    blocks = textBlocks(text),
    kind = /^(html|svg|mermaid)$/i.test(language) && language.toLowerCase();
  return html`<figure class="code">
    <figcaption>
      <span>${title}</span>
      ${
        kind &&
        html`<${Button} small kind="quiet" onClick=${() => openPreview(kind, text)}>
          ${texts.common.preview}
        <//>`
      }
      <${CopyButton} text=${text} label=${texts.common.copyCode} />
    </figcaption>
    <pre dir="ltr" tabindex="0" role="region" aria-label=${title}>
      <code>
        ${blocks.map(
          (piece, at) => html`<${Coloured}
          key=${at}
          text=${piece}
          name=${name}
          alone=${blocks.length === 1}
        />`,
        )}
      </code>
    </pre>
  </figure>`;
}
