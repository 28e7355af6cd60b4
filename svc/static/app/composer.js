// The composer: text kept as a draft, images by paste, file dialog or drop anywhere in the window, and a
// button to send or stop.
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { IconButton, toast } from "./components.js";
import { draftOf, keepDraft } from "./drafts.js";
import { html } from "./html.js";
import { limits } from "./limits.js";
import { TYPES, picture } from "./pictures.js";
import { texts } from "./texts.js";

const t = texts.chat;
const MOST_PICTURES = 4;
export const focusComposer = () => document.getElementById("composer")?.focus();

/** `id`: of the conversation, or null. Callbacks: `onSend({text, pictures})`, `onStop()`, `onEditLast()`. */
export function Composer({ id, busy, onSend, onStop, onEditLast }) {
  const text = useSignal(draftOf(id)),
    pictures = useSignal([]),
    dragging = useSignal(false);
  const area = useRef(null),
    file = useRef(null);
  useEffect(() => {
    text.value = draftOf(id);
    const put = (/** @type {CustomEvent<{id: string | null, text: string}>} */ { detail }) => {
      if (detail.id === id) {
        text.value = detail.text;
        area.current.focus();
      }
    };
    addEventListener("svc-draft", put);
    if (matchMedia("(hover: hover)").matches) area.current.focus({ preventScroll: true });
    return () => removeEventListener("svc-draft", put);
  }, [id]);
  useEffect(() => {
    const takesFiles = (event) =>
      event.dataTransfer.types.includes("Files") && !document.querySelector("dialog[open]");
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
      add(event.dataTransfer.files);
    };
    const on = /** @type {const} */ ([
      ["dragover", onDrag],
      ["dragleave", onLeave],
      ["drop", onDrop],
    ]);
    for (const [name, act] of on) addEventListener(name, act);
    return () => {
      for (const [name, act] of on) removeEventListener(name, act);
    };
  }, []);
  useLayoutEffect(() => {
    // as high as its text
    area.current.style.height = "auto";
    area.current.style.height = `${area.current.scrollHeight + 2}px`;
  }, [text.value]);
  const write = (value) => {
    text.value = value;
    keepDraft(id, value);
  };
  const send = () => {
    if (busy || (!text.value.trim() && !pictures.value.length)) return;
    onSend({ text: text.value.trim(), pictures: pictures.value });
    write("");
    pictures.value = [];
  };
  const add = async (files) => {
    const fitting = [...files].filter(({ type }) => TYPES.includes(type));
    if (fitting.length < files.length) toast(t.notPicture, { kind: "bad" });
    const room = MOST_PICTURES - pictures.value.length;
    if (fitting.length > room) toast(t.tooMany(MOST_PICTURES), { kind: "bad" });
    const made = await Promise.allSettled(fitting.slice(0, Math.max(0, room)).map(picture));
    if (made.some(({ status }) => status === "rejected")) toast(t.notPicture, { kind: "bad" });
    pictures.value = [
      ...pictures.value,
      ...made.filter((one) => one.status === "fulfilled").map(({ value }) => value),
    ];
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
  const onPaste = (event) => {
    if (!event.clipboardData.files.length) return;
    event.preventDefault();
    add(event.clipboardData.files);
  };
  return html`<form
    class="composer ${dragging.value ? "composer-drop" : ""}"
    onSubmit=${(event) => {
      event.preventDefault();
      send();
    }}
  >
    ${
      pictures.value.length > 0 &&
      html`<ul class="composer-pictures">${pictures.value.map(
        (one) => html`<li key=${one.url}>
          <img src=${one.url} alt=${one.name} />
          <${IconButton}
            icon="close"
            size=${14}
            label=${t.remove(one.name)}
            onClick=${() => {
              pictures.value = pictures.value.filter((other) => other !== one);
            }}
          />
        </li>`,
      )}</ul>`
    }
    <label class="hidden-text" for="composer">${t.message}</label>
    <textarea
      id="composer"
      ref=${area}
      rows="1"
      dir="auto"
      placeholder=${dragging.value ? t.drop : t.placeholder}
      maxlength=${limits.message.content.maxlength}
      value=${text.value}
      onInput=${(event) => write(event.currentTarget.value)}
      onKeyDown=${onKey}
      onPaste=${onPaste}
    ></textarea>
    <div class="composer-bar">
      <input
        ref=${file}
        class="hidden-text"
        type="file"
        accept=${TYPES.join()}
        multiple
        tabindex="-1"
        aria-hidden="true"
        onChange=${(event) => {
          add(event.currentTarget.files);
          event.currentTarget.value = "";
        }}
      />
      <${IconButton} icon="image" label=${t.attach} onClick=${() => file.current.click()} />
      ${
        busy
          ? html`<${IconButton} class="send" icon="stop" label=${t.stop} onClick=${onStop} />`
          : html`<${IconButton}
            class="send"
            icon="send"
            label=${t.send}
            onClick=${send}
            disabled=${!text.value.trim() && !pictures.value.length}
          />`
      }
    </div>
  </form>`;
}
