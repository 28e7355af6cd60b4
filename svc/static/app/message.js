// One message of a conversation. An answer also shows its cost, duration and recalled passages.
import { computed, signal, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Approvals, SourceList, Steps } from "./answer-tools.js";
import { AttachButton, AttachedList, attachments } from "./attached.js";
import { Button, CopyButton, Failed, IconButton, Time, toast } from "./components.js";
import { hasParts, split } from "./content.js";
import { bytes } from "./format.js";
import { html, memo } from "./html.js";
import { Icon } from "./icons.js";
import { Lazy } from "./lazy.js";
import { Sources, withUnverified } from "./links.js";
import { Markdown } from "./markdown.js";
import { Facts, More, Versions } from "./message-foot.js";
import { useNear } from "./viewport.js";
import { Picture } from "./picture.js";
import { ReadAloud } from "./read-aloud.js";
import { TextBlocks, linesOf } from "./text-blocks.js";
import { link } from "./router.js";
import { texts } from "./texts.js";

const t = texts.chat;
const THOUGHT = /^\s*<think(?:ing)?>([\s\S]*?)(?:<\/think(?:ing)?>\s*|$)/;
const FOLDED_LINES = 24;
const ENDINGS = { length: t.cutShort, content_filter: t.filtered };
const CUT = ["stopped", "interrupted", "failed"]; // statuses

/** Split the reasoning in tags, which some models put first, from `text`. */
function splitReasoning(text, reasoning) {
  const found = !reasoning && THOUGHT.exec(text);
  return found
    ? { text: text.slice(found[0].length), reasoning: found[1].trim() }
    : { text, reasoning: reasoning ?? "" };
}

const Roles = { user: Question, assistant: Answer, system: Instructions };

/**
 * `actions`: {edit, cancel, send, retry, goOn, show, approve}, and where versions are kept {again, others,
 * compare, fork}. The object must not change.
 * `isNear`: whether the message is near the screen; other messages are plain text until then.
 */
export const Message = memo(({ message, isNear, ...rest }) => {
  const { near, box } = useNear(isNear);
  if (near) return html`<${Roles[message.role]} message=${message} ...${rest} />`;
  return html`<${FarMessage} message=${message} box=${box} />`;
});

/** An off-screen message: plain text only, so that a search in the page finds it. */
export const FarMessage = ({
  message,
  box,
}) => html`<article class="message said-${message.role} far" data-id=${message.id} ref=${box}>
  <p class="said" dir="auto"><${TextBlocks} text=${textOf(message)} /></p></article>`;

/** Estimate the height of a message. */
export const remsOf = (message) => (message.live ? 0 : 4.5 + 1.6 * linesOf(textOf(message)));

const textOf = ({ role, content }) => (role === "user" ? split(content).text : content);

function Instructions({ message }) {
  return html`<article class="message said-system">
    <h2 class="label">${t.system}</h2><${Markdown} text=${message.content} />
  </article>`;
}

function Question({ message, editing, actions, canEdit }) {
  const { text, files, images } = useMemo(() => split(message.content), [message.content]);
  if (editing)
    return html`<${Editor}
      text=${text}
      content=${message.content}
      onSend=${(value) => actions.send(message, value)}
      onCancel=${actions.cancel}
    />`;
  return html`<article class="message said-user" data-id=${message.id}>
    <h2 class="hidden-text">${t.you}</h2>
    <div class="bubble">
      ${
        (images.length > 0 || message.pictures?.length > 0) &&
        html`<div class="pictures">
          ${
            images.length
              ? images.map(({ id, name }) => html`<${Picture} key=${id} id=${id} name=${name} />`)
              : message.pictures.map((one) => html`<img src=${one.url} alt=${one.name} />`)
          }
        </div>`
      }
      ${files.map((file) => html`<${AttachedFile} file=${file} />`)}
      ${text && html`<${Said} text=${text} />`}
    </div>
    <div class="message-actions">
      <${Versions} message=${message} actions=${actions} disabled=${!canEdit} />
      <${CopyButton} text=${text} label=${t.copyMessage} />
      ${
        canEdit &&
        !message.unkept &&
        html`<${IconButton} icon="edit" size=${18} label=${t.edit} onClick=${() => actions.edit(message)} />`
      }
    </div>
  </article>`;
}

/** A user message. A long text is collapsed. */
function Said({ text }) {
  const open = useSignal(false),
    long = linesOf(text) > FOLDED_LINES;
  return html`<p class=${long && !open.value ? "said folded" : "said"} dir="auto">
      <${TextBlocks} text=${text} />
    </p>
    ${
      long &&
      html`<button
        type="button"
        class="link"
        aria-expanded=${String(open.value)}
        onClick=${() => {
          open.value = !open.value;
        }}
      >${open.value ? t.less : t.more}</button>`
    }`;
}

/** A file that was sent with a message. It opens to the text that the model received. */
function AttachedFile({ file: { name, id, text } }) {
  const open = useSignal(false);
  return html`<details
    class="file"
    onToggle=${(event) => {
      open.value = event.currentTarget.open;
    }}
  >
    <summary class="file-chip">
      <${Icon} name="artifacts" size=${18} /><span class="file-name" dir="auto">${name}</span>
      <span class="quiet small">${bytes(new Blob([text]).size)}</span>
    </summary>
    ${
      open.value &&
      html`<div class="artifact-text" tabindex="0" role="region" aria-label=${name} dir="auto">
        <${TextBlocks} text=${text} />
      </div>`
    }
    ${open.value && id && html`<p><a href=${link("artifacts", id)}>${t.wholeFile}</a></p>`}
  </details>`;
}

function Editor({ text, content, onSend, onCancel }) {
  const value = useSignal(text),
    attached = useSignal(null), // items of attachments.js, once they are known
    area = useRef(null);
  const items = attached.value ?? [];
  useEffect(() => {
    const known = hasParts(content) ? attachments().then(({ unpacked }) => unpacked(content)) : { items: [] };
    Promise.resolve(known).then((found) => {
      attached.value = found.items;
    });
  }, []);
  useLayoutEffect(() => {
    area.current.focus();
    area.current.setSelectionRange(text.length, text.length);
  }, []);
  const canSend =
    attached.value && items.every(({ kind }) => kind !== "reading") && (value.value.trim() || items.length);
  const send = async () => {
    if (!canSend) return;
    const said = value.value.trim();
    try {
      onSend(items.length ? await (await attachments()).withAll(said, items) : said);
    } catch (error) {
      toast(error.message, { kind: "bad" }); // an image could not be stored
    }
  };
  const add = async (files) => (await attachments()).attach(files, attached);
  const remove = async (item) => (await attachments()).detach(item, attached);
  const onKey = (event) => {
    if (event.key === "Escape") {
      event.stopPropagation();
      onCancel();
    }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    }
  };
  return html`<form
    class="message editor"
    onSubmit=${(event) => {
      event.preventDefault();
      send();
    }}
  >
    <textarea
      ref=${area}
      class="input"
      aria-label=${t.editing}
      rows=${Math.min(12, text.split("\n").length + 1)}
      value=${value.value}
      onInput=${(event) => {
        value.value = event.currentTarget.value;
      }}
      onKeyDown=${onKey}
    ></textarea>
    <${AttachedList} items=${items} onRemove=${remove} />
    <div class="editor-foot">
      <${AttachButton} onFiles=${add} />
      <p class="hint">${t.editHint}</p>
      <div class="actions"><${Button} small onClick=${onCancel}>${texts.common.cancel}<//>
        <${Button} small kind="primary" type="submit">${t.sendEdited}<//></div>
    </div>
  </form>`;
}

/** An answer in progress has `live` (thread.js) and keeps its elements when it is complete. */
function Answer({ message, actions, canEdit, canRetry, hasPictures, isLast }) {
  const { live, answer, status } = message;
  const { text, reasoning, begun, thinks } = useMemo(
    () =>
      live
        ? splitLive(live)
        : { ...splitReasoning(message.content, answer?.reasoning), begun: whole, thinks: null },
    [message],
  );
  const thought = live ? thinks.value : reasoning;
  const steps = live ? live.steps.value : (message.steps ?? NONE),
    sources = message.sources ?? NONE;
  const marked = useMemo(
    () => splitReasoning(withUnverified(message.content, message.citations), answer?.reasoning).text,
    [message],
  );
  const isEmpty =
    !live && status === "complete" && !text.trim() && !ENDINGS[answer?.finish_reason] && !steps.length;
  return html`<article
    class="message said-assistant ${live ? "live" : ""} ${isLast ? "last" : ""}"
    data-id=${message.id}
    aria-busy=${live ? "true" : undefined}
  >
    <h2 class="hidden-text">${t.assistant}</h2>
    <${Recalled} passages=${answer?.memory} number=${live?.memory.value} />
    ${thought && html`<${Reasoning} text=${reasoning} done=${begun.value} />`}
    <${Steps} steps=${steps} isLive=${Boolean(live)} isWaiting=${status === "waiting"} />
    ${
      begun.value
        ? (live || text) &&
          html`<${Sources.Provider} value=${sources}>
            <${Markdown} text=${live ? text : marked} />
          <//>`
        : !thought &&
          !steps.length &&
          html`<p class="dots" aria-hidden="true"><i></i><i></i><i></i></p>
            ${
              live &&
              html`<${Lazy}
                quiet
                name="loading-model"
                from=${() => import("./loading-model.js")}
                model=${live.model.value}
              />`
            }`
    }
    <${Approvals} message=${message} onDecide=${actions.approve} />
    <${SourceList} text=${message.content} sources=${sources} citations=${message.citations} />
    ${live?.isLost.value && html`<p class="ending" role="status">${t.reconnecting}</p>`}
    ${
      !live &&
      (CUT.includes(status) || ENDINGS[answer?.finish_reason]) &&
      html`<${Ending} ...${{ message, actions, canRetry, hasPictures }} />`
    }
    ${isEmpty && html`<p class="ending">${t.emptyAnswer}</p>`}
    ${
      !live &&
      html`<div class="message-actions">
      <${Versions} message=${message} actions=${actions} disabled=${!canEdit} />
      ${text && html`<${CopyButton} text=${text} label=${t.copyAnswer} class="copy-answer" />`}
      ${text && html`<${ReadAloud} id=${message.id} text=${text} />`}
      ${
        (canRetry ? !CUT.includes(status) : canEdit && actions.again) &&
        html`<${IconButton}
          icon="retry"
          size=${18}
          label=${t.again}
          onClick=${() => (canRetry ? actions.retry() : actions.again(message))}
        />`
      }
      ${canEdit && actions.again && html`<${More} message=${message} actions=${actions} />`}
      <${Facts} message=${message} />
    </div>`
    }
  </article>`;
}

const whole = signal(true);
const NONE = [];

/** Why an answer is not complete, and what can be done. */
function Ending({ message: { content, status, error, answer }, actions, canRetry, hasPictures }) {
  const goOn = canRetry && content.trim() && html`<${Button} small onClick=${actions.goOn}>${t.goOn}<//>`;
  if (status === "failed")
    return html`<${Failed} manual error=${error} retry=${canRetry ? actions.retry : null} actions=${goOn}>
      ${hasPictures && error.type === "invalid_request_error" && html`<p>${t.noPictures}</p>`}
    <//>`;
  const retry =
    canRetry &&
    CUT.includes(status) &&
    html`<${Button} small icon="retry" onClick=${actions.retry}>${texts.common.retry}<//>`;
  return html`<div class="ending">
    <p>${t.endings[status] ?? ENDINGS[answer.finish_reason]}</p>
    ${(goOn || retry) && html`<div class="actions">${goOn}${retry}</div>`}
  </div>`;
}

/** The result of `splitReasoning` for an answer in progress, as signals. */
function splitLive(live) {
  const parts = computed(() => splitReasoning(live.text.value, live.reasoning.value));
  const text = computed(() => parts.value.text),
    reasoning = computed(() => parts.value.reasoning);
  return {
    text,
    reasoning,
    begun: computed(() => text.value.trim() !== ""),
    thinks: computed(() => reasoning.value !== ""),
  };
}

/** Reasoning, collapsed. `text`: a string, or a signal while it grows. */
function Reasoning({ text, done }) {
  const open = useSignal(false);
  return html`<details
    class="fold"
    onToggle=${(event) => {
      open.value = event.currentTarget.open;
    }}
  >
    <summary>
      ${done ? t.thought : html`<span class="spinner" aria-hidden="true"></span>${t.thinking}`}
    </summary>
    <div class="fold-body">${open.value && html`<${Markdown} text=${text} />`}</div>
  </details>`;
}

function Recalled({ passages, number: many = passages?.length }) {
  if (!many) return null;
  const head = html`<${Icon} name="memory" size=${16} />${t.recalled(many)}`;
  if (!passages) return html`<p class="fold-head">${head}</p>`;
  return html`<details class="fold">
    <summary>${head}</summary>
    <ul class="fold-body">
      ${passages.map(
        ({ text, source, message_id: id, created_at: at }) => html`<li>
          <blockquote>${text}</blockquote>
          <p class="quiet">
            ${
              source?.startsWith("conv_")
                ? html`<a href=${link("chat", source, { message: id })}>${t.recalledFrom}</a>`
                : t.recalledFrom
            }
            ${at && html`, <${Time} at=${at} />`}
          </p>
        </li>`,
      )}
    </ul>
  </details>`;
}
