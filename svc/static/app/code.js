// A block of code: its language, a button that copies it, and its colours, for which Prism is loaded when code first appears.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { CopyButton } from "./components.js";
import { html } from "./html.js";
import { texts } from "./texts.js";

const COLOURED_CHARACTERS = 60_000;
const SETTLED_MS = 250; // code that grows is coloured when it has come to rest
const ALIASES = {
  js: "javascript", mjs: "javascript", ts: "typescript", py: "python", sh: "bash", shell: "bash", zsh: "bash", console: "bash", html: "markup",
  xml: "markup", svg: "markup", yml: "yaml", md: "markdown", rb: "ruby", rs: "rust", cs: "csharp", "c++": "cpp", dockerfile: "docker", kt: "kotlin",
  golang: "go", ps1: "powershell", make: "makefile",
};
/** What a language builds on: it is loaded first. */
const NEEDS = {
  javascript: ["clike"], typescript: ["javascript"], jsx: ["markup", "javascript"], tsx: ["jsx", "typescript"], c: ["clike"], cpp: ["c"],
  csharp: ["clike"], go: ["clike"], java: ["clike"], kotlin: ["clike"], swift: [], ruby: ["clike"], php: ["markup-templating"],
  "markup-templating": ["markup"], markdown: ["markup"],
};
const PLAIN = "bash clike css diff docker graphql ini json lua makefile markup powershell python r rust sql toml yaml".split(" ");
const LANGUAGES = new Set([...Object.keys(NEEDS), ...PLAIN]);
const loads = new Map();

/** Prism with the grammar of `name`, or null for a language that it does not know. */
async function grammar(name) {
  if (!LANGUAGES.has(name)) return null;
  await load("core");
  for (const needed of NEEDS[name] ?? []) await grammar(needed);
  await load(name);
  return globalThis.Prism.languages[name];
}

function load(name) {
  if (!loads.has(name)) {
    // Prism is no module: it looks for `global` to leave itself there, and would colour the page by itself if it were not told.
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

export function CodeBlock({ text, language = "", label }) {
  const content = useSignal(null), box = useRef();
  const name = ALIASES[language.toLowerCase()] ?? language.toLowerCase();
  useEffect(() => {
    if (!LANGUAGES.has(name) || text.length > COLOURED_CHARACTERS) return undefined;
    let left = false, timer = 0;
    const colour = async () => {
      const rules = await grammar(name).catch(() => null);
      if (!left && rules) content.value = { text, elements: globalThis.Prism.tokenize(text, rules).map(coloured) };
    };
    const seen = new IntersectionObserver(([entry]) => {
      if (!entry.isIntersecting) return;
      seen.disconnect();
      timer = setTimeout(colour, SETTLED_MS);
    }, { rootMargin: "400px" });
    seen.observe(box.current);
    return () => { left = true; clearTimeout(timer); seen.disconnect(); };
  }, [text, name]);
  const title = label ?? (language || texts.common.code);
  return html`<figure class="code" ref=${box}>
    <figcaption><span>${title}</span><${CopyButton} text=${text} label=${texts.common.copyCode} /></figcaption>
    <pre tabindex="0" role="region" aria-label=${title}><code>${content.value?.text === text ? content.value.elements : text}</code></pre>
  </figure>`;
}
