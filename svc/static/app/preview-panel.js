// The panel beside the chat that shows HTML, SVG or a Mermaid diagram. The content is in a frame without an
// origin and without network (static/preview.html). On a phone the panel covers the page.
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { api, session } from "./api.js";
import { CopyButton, IconButton, Loading, Notice, toast } from "./components.js";
import { saveFile } from "./files.js";
import { html } from "./html.js";
import { go, link } from "./router.js";
import { preview } from "./state.js";
import { texts } from "./texts/en/preview.js";
import { pair } from "./texts/locale.js";

const t = texts.preview;
const TYPES = {
  html: ["page.html", "text/html"],
  svg: ["picture.svg", "image/svg+xml"],
  mermaid: ["diagram.mmd", "text/plain"],
};
const narrow = matchMedia("(max-width: 799px)");
let library; // Mermaid's script, once it is loaded

async function loadLibrary() {
  library ??= fetch(import.meta.resolve("mermaid/mermaid.min.js")).then((answer) => {
    if (!answer.ok) throw new Error(t.notLoaded);
    return answer.text();
  });
  try {
    return await library;
  } catch {
    library = undefined;
    throw new Error(t.notLoaded);
  }
}

/** Show a text in the panel. Its stylesheet is loaded before. `stored`: the artifact that has it. */
export async function open(kind, text, stored) {
  const href = import.meta.resolve("./preview.css");
  if (!document.querySelector(`link[href="${href}"]`)) {
    const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
    const loaded = new Promise((resolve) => {
      sheet.onload = sheet.onerror = resolve;
    });
    document.head.append(sheet);
    await loaded;
  }
  preview.value = { kind, text, stored, Panel };
}

const isDark = () =>
  getComputedStyle(document.documentElement).colorScheme === "dark" ||
  (document.documentElement.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);

/** Whether the panel covers the page: on a phone, and above a dialog, which makes the page inert. */
const covers = () => narrow.matches || document.querySelector("dialog[open]:not(.preview)") !== null;

function Panel({ kind, text, stored }) {
  const box = useRef(null),
    isModal = useSignal(covers()),
    back = useRef(/** @type {HTMLElement} */ (document.activeElement));
  const [usual, type] = TYPES[kind],
    name = stored?.name ?? usual;
  const close = () => {
    preview.value = null;
  };
  useLayoutEffect(() => {
    const panel = box.current;
    if (isModal.value) panel.showModal();
    panel.querySelector("h2").focus();
    return () => panel.close?.(); // nothing outside of an open dialog gets the focus
  }, [isModal.value]);
  useEffect(() => {
    const onChange = () => {
      isModal.value = covers();
    };
    narrow.addEventListener("change", onChange);
    return () => {
      narrow.removeEventListener("change", onChange);
      if (back.current.isConnected) back.current.focus();
    };
  }, []);
  const save = async () => {
    try {
      const { id } = await api.artifacts.create({ name, content: text, content_type: type });
      toast(t.saved(name), {
        kind: "good",
        action: { label: t.show, onSelect: () => go(link("artifacts", id)) },
      });
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
  };
  const content = html`
    <header class="preview-head">
      <h2 tabindex="-1">${pair(t.title, t.kinds[kind])}</h2>
      <${CopyButton} text=${text} label=${texts.common.copyCode} />
      <${IconButton}
        icon="download"
        label=${texts.common.download}
        onClick=${() => saveFile(new Blob([text], { type }), name)}
      />
      ${!stored && session.value && html`<${IconButton} icon="artifacts" label=${t.save} onClick=${save} />`}
      ${
        document.fullscreenEnabled &&
        html`<${IconButton}
          icon="external"
          label=${t.fullScreen}
          onClick=${() => box.current.querySelector("iframe")?.requestFullscreen()}
        />`
      }
      <${IconButton} icon="close" label=${texts.common.close} onClick=${close} />
    </header>
    <${Frame} key=${text} kind=${kind} text=${text} />
    <p class="hint">${t.note}</p>
  `;
  const onKey = (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    close();
  };
  return isModal.value
    ? html`<dialog class="preview" aria-label=${t.title} ref=${box} onCancel=${close}>${content}</dialog>`
    : html`<aside class="preview" aria-label=${t.title} ref=${box} onKeyDown=${onKey}>${content}</aside>`;
}

/** The content, which the frame gets once, when it is ready. A frame that begins again has left the page. */
export function Frame({ kind, text }) {
  const frame = useRef(null),
    state = useSignal(/** @type {any} */ ("loading")), // "loading", "sent", "shown", "left" or an Error
    sent = useRef(false);
  // Before the frame can load: its first message comes once.
  useLayoutEffect(() => {
    const send = async () => {
      if (sent.current) {
        state.value = "left";
        return;
      }
      sent.current = true;
      try {
        const content = {
          kind,
          text,
          library: kind === "mermaid" ? await loadLibrary() : "",
          isDark: isDark(),
        };
        frame.current?.contentWindow.postMessage(content, "*");
        state.value = kind === "mermaid" ? "sent" : "shown";
      } catch (error) {
        state.value = error;
      }
    };
    const onMessage = ({ source, data }) => {
      if (source !== frame.current?.contentWindow) return;
      if (data?.kind === "ready") send();
      if (kind !== "mermaid") return;
      if (data?.kind === "drawn") state.value = "shown";
      if (data?.kind === "failed")
        state.value = new Error(`${t.failed} ${String(data.message).slice(0, 500)}`);
    };
    addEventListener("message", onMessage);
    return () => removeEventListener("message", onMessage);
  }, []);
  const now = state.value;
  if (now === "left") return html`<${Notice} kind="bad" icon="warning">${t.left}<//>`;
  return html`
    ${now instanceof Error && html`<${Notice} kind="bad" icon="warning">${now.message}<//>`}
    ${(now === "loading" || now === "sent") && html`<${Loading} />`}
    <iframe
      ref=${frame}
      class="preview-frame ${kind === "mermaid" ? "preview-diagram" : ""}"
      hidden=${now instanceof Error}
      title=${t.frame}
      sandbox="allow-scripts"
      referrerpolicy="no-referrer"
      src="/preview"
    ></iframe>
  `;
}
