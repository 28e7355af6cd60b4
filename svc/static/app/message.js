// One message of a conversation: what was said, and under an answer what it cost, how long it took and what was recalled for it.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Button, CopyButton, IconButton, Money, Time } from "./components.js";
import { duration } from "./format.js";
import { html, memo } from "./html.js";
import { Icon } from "./icons.js";
import { LiveMarkdown, Markdown } from "./markdown.js";
import { Picture } from "./picture.js";
import { split } from "./pictures.js";
import { link } from "./router.js";
import { texts } from "./texts.js";

const t = texts.chat;
const THOUGHT = /^\s*<think(?:ing)?>([\s\S]*?)(?:<\/think(?:ing)?>\s*|$)/;
const ENDINGS = { length: t.cutShort, content_filter: t.filtered };

/** `text` without the reasoning that some models put before it in tags, and that. */
function apart(text, reasoning) {
  const found = !reasoning && THOUGHT.exec(text);
  return found ? { text: text.slice(found[0].length), reasoning: found[1].trim() } : { text, reasoning: reasoning ?? "" };
}

/** `actions`: {edit, cancel, send, retry} of the conversation, each told the message; it must stay the same object. */
export const Message = memo(({ message, ...rest }) => {
  if (message.role === "user") return html`<${Question} message=${message} ...${rest} />`;
  if (message.role === "assistant") return html`<${Answer} message=${message} ...${rest} />`;
  return html`<article class="message said-system"><h2 class="label">${t.system}</h2><${Markdown} text=${message.content} /></article>`;
});

function Question({ message, editing, actions, canEdit }) {
  const { text, ids } = split(message.content);
  if (editing) return html`<${Editor} text=${text} references=${message.content.slice(text.length)} onSend=${(value) => actions.send(message, value)} onCancel=${actions.cancel} />`;
  return html`<article class="message said-user" data-id=${message.id}>
    <h2 class="hidden-text">${t.you}</h2>
    <div class="bubble">
      ${(ids.length > 0 || message.pictures?.length > 0) && html`<div class="pictures">
        ${ids.length ? ids.map((id) => html`<${Picture} key=${id} id=${id} name="" />`) : message.pictures.map((one) => html`<img src=${one.url} alt=${one.name} />`)}</div>`}
      ${text && html`<p class="said">${text}</p>`}
    </div>
    <div class="message-actions">
      <${CopyButton} text=${text} label=${t.copyMessage} />
      ${canEdit && html`<${IconButton} icon="edit" size=${18} label=${t.edit} onClick=${() => actions.edit(message)} />`}
    </div>
  </article>`;
}

function Editor({ text, references, onSend, onCancel }) {
  const value = useSignal(text), area = useRef();
  useEffect(() => { area.current.focus(); area.current.setSelectionRange(text.length, text.length); }, []);
  const send = () => { if (value.value.trim()) onSend(value.value.trim() + references); };
  const onKey = (event) => {
    if (event.key === "Escape") { event.stopPropagation(); onCancel(); }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); }
  };
  return html`<form class="message editor" onSubmit=${(event) => { event.preventDefault(); send(); }}>
    <textarea ref=${area} class="input" aria-label=${t.editing} rows=${Math.min(12, text.split("\n").length + 1)} value=${value.value}
      onInput=${(event) => { value.value = event.currentTarget.value; }} onKeyDown=${onKey}></textarea>
    <div class="editor-foot"><p class="hint">${t.editHint}</p><div class="actions"><${Button} small onClick=${onCancel}>${texts.common.cancel}<//>
      <${Button} small kind="primary" type="submit">${t.sendEdited}<//></div></div>
  </form>`;
}

function Answer({ message, actions, canRetry, isLast }) {
  const { text, reasoning } = apart(message.content, message.answer?.reasoning);
  const ending = ENDINGS[message.answer?.finish_reason];
  return html`<article class="message said-assistant ${isLast ? "last" : ""}" data-id=${message.id}>
    <h2 class="hidden-text">${t.assistant}</h2>
    <${Recalled} passages=${message.answer?.memory} />
    ${reasoning && html`<${Reasoning} text=${reasoning} />`}
    <${Markdown} text=${text} />
    ${ending && html`<p class="ending">${ending}</p>`}
    <div class="message-actions">
      <${CopyButton} text=${text} label=${t.copyAnswer} class="copy-answer" />
      ${canRetry && html`<${IconButton} icon="retry" size=${18} label=${t.again} onClick=${actions.retry} />`}
      <${Facts} message=${message} />
    </div>
  </article>`;
}

function Facts({ message: { model, answer, created_at: at } }) {
  const { input_tokens: input, output_tokens: output, cost_micros: cost, duration_ms: time } = answer ?? {};
  const facts = [
    model && html`<span class="fact-model">${model}</span>`,
    output !== undefined && output !== null && html`<span title=${t.tokensInOut(input, output)}>${t.tokens(input + output)}</span>`,
    cost !== undefined && cost !== null && (cost ? html`<${Money} micros=${cost} />` : html`<span>${texts.common.free}</span>`),
    time !== undefined && time !== null && html`<span>${duration(time)}</span>`,
    !answer && html`<${Time} at=${at} />`,
  ].filter(Boolean);
  return html`<p class="facts">${facts}</p>`;
}

function Reasoning({ text }) {
  return html`<details class="fold"><summary>${t.thought}</summary><div class="fold-body"><${Markdown} text=${text} /></div></details>`;
}

/** Reasoning that goes on; `text` is a signal. */
function Thinking({ text, done }) {
  return html`<details class="fold"><summary>${done ? t.thought : html`<span class="spinner" aria-hidden="true"></span>${t.thinking}`}</summary>
    <div class="fold-body"><${LiveMarkdown} text=${text} /></div></details>`;
}

function Recalled({ passages, number: many = passages?.length }) {
  if (!many) return null;
  const head = html`<${Icon} name="memory" size=${16} />${t.recalled(many)}`;
  if (!passages) return html`<p class="fold-head">${head}</p>`;
  return html`<details class="fold"><summary>${head}</summary><ul class="fold-body">${passages.map(({ text, source, message_id: id, created_at: at }) => html`<li>
    <blockquote>${text}</blockquote><p class="quiet">${source?.startsWith("conv_") ? html`<a href=${link("chat", source, { message: id })}>${t.recalledFrom}</a>` : t.recalledFrom}
      ${at && html`, <${Time} at=${at} />`}</p></li>`)}</ul></details>`;
}

/** The answer that is being written. Only its text is drawn at each paint: what is asked of it here changes seldom. */
export function Live({ live }) {
  const parts = useComputed(() => apart(live.text.value, live.reasoning.value));
  const text = useComputed(() => parts.value.text), thought = useComputed(() => parts.value.reasoning);
  const begun = useComputed(() => text.value.trim() !== ""), thinks = useComputed(() => thought.value !== "");
  return html`<article class="message said-assistant live" aria-busy="true">
    <h2 class="hidden-text">${t.assistant}</h2>
    <${Recalled} number=${live.memory.value} />
    ${thinks.value && html`<${Thinking} text=${thought} done=${begun.value} />`}
    ${begun.value ? html`<${LiveMarkdown} text=${text} />` : !thinks.value && html`<p class="dots" aria-hidden="true"><i></i><i></i><i></i></p>`}
  </article>`;
}
