// The composer: text and attachments, kept as a draft, and a button to send or stop. Files are added by the
// file dialog, or by drop or paste anywhere in the window.
import { signal, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { AttachButton, AttachedList, attachments } from "./attached.js";
import { IconButton, toast } from "./components.js";
import { hasParts } from "./content.js";
import { DictateButton, finishDictation } from "./dictate-button.js";
import { TEMPORARY, draftOf, keepDraft, keepFiles, keepText } from "./drafts.js";
import { html } from "./html.js";
import { insertText } from "./insert-text.js";
import { Lazy } from "./lazy.js";
import { limits } from "./limits.js";
import { ToolsButton } from "./tools-button.js";
import { texts } from "./texts.js";

const t = texts.chat;
const LONG_PASTE = 8_000; // characters
const isTyping = ({ target }) => /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
const hasDialog = () => document.querySelector("dialog[open]") !== null;
let fresh = true;
/** The component of estimate.js, loaded with the first draft. */
const estimate = signal(null);
const loadEstimate = async () => {
  try {
    estimate.value = (await import("./estimate.js")).Estimate;
  } catch {
    /* the next letter loads it again */
  }
};

const field = () => /** @type {HTMLTextAreaElement} */ (document.getElementById("composer"));
export const focusComposer = () => field()?.focus();

export const sendDraft = () => field()?.form.requestSubmit();

/**
 * `id`: of the conversation, or null; `priced`: the properties of Estimate. Callbacks:
 * `onSend({text, pictures})`, `onQueue(content)` while an answer runs, `onStop()`, `onEditLast()`.
 */
export function Composer({ id, busy, priced, onSend, onQueue, onStop, onEditLast }) {
  const { project_id: projectId } = priced.conversation ?? { project_id: priced.projectId };
  const first = useMemo(() => draftOf(id), []);
  const text = useSignal(hasParts(first) ? "" : first),
    attached = useSignal([]), // items of attachments.js
    dragging = useSignal(false),
    prompting = useSignal(null); // the list of saved prompts: {List, at}, the place of its slash
  const area = useRef(null);
  const restore = async (content) => {
    const draft = hasParts(content)
      ? await (await attachments()).unpacked(content)
      : { text: content, items: [] };
    [text.value, attached.value] = [draft.text, draft.items];
  };
  useEffect(() => {
    restore(draftOf(id)).catch((error) => toast(error.message, { kind: "bad" }));
    const put = async (/** @type {CustomEvent} */ { detail }) => {
      if (detail.id !== id) return;
      await restore(detail.content);
      attached.value = [...attached.peek(), ...detail.pictures.map((one) => ({ kind: "picture", ...one }))];
      area.current.focus();
    };
    addEventListener("svc-draft", put);
    return () => removeEventListener("svc-draft", put);
  }, [id]);
  useLayoutEffect(() => {
    // With the view, not a frame later: a person who has moved the focus by then keeps it
    const taken = fresh && document.activeElement !== document.body; // somebody is faster than the first load
    fresh = false;
    if (!taken && matchMedia("(hover: hover)").matches) area.current.focus({ preventScroll: true });
  }, [id]);
  useWindowFiles({
    dragging,
    area,
    onFiles: (files) => add(files),
    onLongText: (pasted) => offerFile(pasted),
  });
  useLayoutEffect(() => {
    // as high as its text
    area.current.style.height = "auto";
    area.current.style.height = `${area.current.scrollHeight + 2}px`;
  }, [text.value]);
  const write = (value) => {
    text.value = value;
    keepText(id, value);
  };
  const reads = attached.value.some(({ kind }) => kind === "reading");
  const canSend = (!busy || id) && !reads && (text.value.trim() !== "" || attached.value.length > 0);
  const pictures = attached.value.filter(({ kind }) => kind === "picture").length;
  const draft = text.value + attached.value.map((item) => item.text ?? "").join("");
  useEffect(() => {
    if ((draft || pictures) && !estimate.peek()) loadEstimate();
  }, [draft, pictures]);
  const send = async () => {
    if (!canSend) return;
    if (await finishDictation()) return sendDraft(); // with the last words
    const items = attached.peek(),
      said = text.peek().trim();
    if (busy) return queue(said, items);
    const { withFiles, picturesOf } = items.length
      ? await attachments()
      : { withFiles: null, picturesOf: null };
    onSend({
      text: withFiles ? withFiles(said, items) : said,
      pictures: picturesOf ? picturesOf(items) : [],
    });
    [text.value, attached.value] = ["", []]; // the draft stays stored until the question is (thread.js)
  };
  const queue = async (said, items) => {
    const content = items.length ? await (await attachments()).withAll(said, items) : said;
    onQueue(content);
    [text.value, attached.value] = ["", []];
    keepDraft(id, "");
  };
  const keepAttached = async () => keepFiles(id, (await attachments()).kept(attached.peek()));
  const add = async (files) => {
    const chosen = [...files]; // the browser empties the list when the event is over
    await (await attachments()).attach(chosen, attached, id === TEMPORARY);
    if (attached.peek().length) await keepAttached(); // else they are sent
  };
  const remove = async (item) => {
    (await attachments()).detach(item, attached);
    await keepAttached();
    area.current?.focus();
  };
  const offerFile = (pasted) =>
    toast(t.longPaste, {
      action: {
        label: t.asFile,
        async onSelect() {
          const before = attached.peek().length;
          await add([new File([pasted], t.pasted, { type: "text/plain" })]);
          if (attached.peek().length > before) write(text.peek().replace(pasted, "")); // else it is refused
        },
      },
    });
  const openPrompts = async (at) => {
    const { default: List } = await import("./prompts/menu.js");
    if (area.current?.value[at] === "/") prompting.value = { List, at };
  };
  const onKey = (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey && matchMedia("(hover: hover)").matches) {
      event.preventDefault();
      send();
    } else if (event.key === "ArrowUp" && !text.value) {
      event.preventDefault();
      onEditLast();
    }
  };
  return html`<form
    class="composer ${dragging.value ? "composer-drop" : ""}"
    onSubmit=${(event) => {
      event.preventDefault();
      send();
    }}
  >
    <${AttachedList} items=${attached.value} onRemove=${remove} />
    <label class="hidden-text" for="composer">${t.message}</label>
    <textarea
      id="composer"
      ref=${area}
      rows="1"
      placeholder=${dragging.value ? t.drop : t.placeholder}
      maxlength=${limits.message.content.maxlength}
      aria-describedby="estimate"
      value=${text.value}
      onInput=${({ currentTarget: { value, selectionEnd }, data }) => {
        write(value);
        if (data === "/" && /(^|\n)\/$/.test(value.slice(0, selectionEnd)))
          openPrompts(selectionEnd - 1).catch(() => {}); // offline
      }}
      onKeyDown=${onKey}
    ></textarea>
    <div class="composer-bar">
      <${AttachButton} onFiles=${add} />
      <${ToolsButton} id=${id} model=${priced.modelIds[0]} conversation=${priced.conversation} />
      ${
        projectId &&
        html`<${Lazy}
          quiet
          name="chat-files"
          from=${() => import("./tools/chat-files.js")}
          projectId=${projectId}
        />`
      }
      <${DictateButton} area=${area} />
      ${
        estimate.value &&
        html`<${estimate.value} ...${priced} id="estimate" draft=${draft} pictures=${pictures} />`
      }
      ${busy && html`<${IconButton} class="stop" icon="stop" label=${t.stop} onClick=${onStop} />`}
      <${IconButton}
        class="send"
        icon="send"
        label=${busy ? t.sendLater : t.send}
        onClick=${send}
        disabled=${!canSend}
      />
    </div>
  </form>
  ${
    prompting.value &&
    html`<${prompting.value.List}
      area=${area.current}
      at=${prompting.value.at}
      close=${() => {
        prompting.value = null;
      }}
    />`
  }`;
}

/** Take files that are dropped or pasted anywhere in the window, and text pasted outside of inputs. */
function useWindowFiles({ dragging, area, onFiles, onLongText }) {
  const now = useRef(null);
  now.current = { onFiles, onLongText };
  useEffect(() => {
    const takesFiles = (event) => event.dataTransfer.types.includes("Files") && !hasDialog();
    const onDrag = (event) => {
      if (!takesFiles(event)) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "copy";
      dragging.value = true;
    };
    const onLeave = (event) => {
      if (!event.relatedTarget) dragging.value = false; // outside the window
    };
    const onDrop = (event) => {
      dragging.value = false;
      if (!takesFiles(event)) return;
      event.preventDefault();
      now.current.onFiles(event.dataTransfer.files);
    };
    const onPaste = (event) => {
      if (hasDialog()) return;
      const { files, types } = event.clipboardData;
      const pasted = event.clipboardData.getData("text/plain").replace(/\r\n?/g, "\n");
      // Office programs add a picture of the text that they copy.
      if (files.length && !(pasted && types.includes("text/html"))) {
        event.preventDefault();
        now.current.onFiles(files);
        return;
      }
      if (pasted && (!isTyping(event) || (event.target === area.current && pasted.length >= LONG_PASTE))) {
        event.preventDefault();
        area.current.focus();
        insertText(area.current, pasted);
      } else if (event.target !== area.current) return;
      if (pasted.length >= LONG_PASTE) now.current.onLongText(pasted);
    };
    const on = /** @type {const} */ ([
      ["dragover", onDrag],
      ["dragleave", onLeave],
      ["drop", onDrop],
      ["paste", onPaste],
    ]);
    for (const [name, act] of on) addEventListener(name, act);
    return () => {
      for (const [name, act] of on) removeEventListener(name, act);
    };
  }, []);
}
