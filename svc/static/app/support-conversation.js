// A support conversation, as its user or an administrator sees it. New messages appear automatically.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { Button, confirm, Failed, Field, Loading, Time, toast } from "./components.js";
import { html } from "./html.js";
import { limits } from "./limits.js";
import { usePolling } from "./polling.js";
import { texts } from "./texts/en/support.js";

const t = texts.support;
const LOOK_AGAIN_MS = 5000;

/**
 * `source`: the operations `show`, `addMessage` and `close`. `back`: the address of the list. `draft`: a
 * signal. `writer`: the role of the person at the screen. `roles`: the names of the roles.
 * `about(conversation)`: what is shown before its status. `closeText`: the result of closing it.
 */
export function SupportConversation({ id, source, back, draft, writer, roles, closeText, about }) {
  const whole = useSignal(/** @type {Api.InboxConversationWithMessages} */ (undefined)),
    error = useSignal(null);
  const load = async () => {
    try {
      [whole.value, error.value] = [await source.show(id), null];
    } catch (problem) {
      error.value = problem;
    }
  };
  usePolling(load, LOOK_AGAIN_MS, () => whole.peek()?.status !== "closed");
  if (whole.value === undefined)
    return error.value ? html`<${Failed} error=${error.value} retry=${load} />` : html`<${Loading} />`;
  const { subject, status, messages } = whole.value;
  const close = async () => {
    if (!(await confirm({ title: t.closeTitle, text: closeText, action: t.close }))) return;
    try {
      await source.close(id);
      await load();
    } catch (problem) {
      toast(problem.message, { kind: "bad" });
    }
  };
  return html`
    <div class="section-head">
      <div>
        <p class="back"><a href=${back}>${t.back}</a></p><h2><bdi>${subject || t.untitled}</bdi></h2>
        <p class="quiet small">${about?.(whole.value)}${t.statuses[status]}</p>
      </div>
      ${status === "active" && html`<${Button} small onClick=${close}>${t.close}<//>`}
    </div>
    ${error.value && html`<${Failed} error=${error.value} retry=${load} />`}
    <ol class="desk-messages" aria-live="polite" aria-label=${t.messages}>
      ${messages.map(
        (
          message,
        ) => html`<li key=${message.id} class="desk-message ${message.role === writer ? "desk-own" : ""}">
          <p class="quiet small">${roles[message.role]} · <${Time} at=${message.created_at} /></p>
          <p class="plain-text" dir="auto">${message.content}</p>
        </li>`,
      )}
    </ol>
    ${
      status === "active"
        ? html`<${Answer} id=${id} source=${source} draft=${draft} onSent=${load} />`
        : html`<p class="quiet">${t.closed}</p>`
    }
  `;
}

function Answer({ id, source, draft, onSent }) {
  const busy = useSignal(false),
    error = useSignal(null),
    form = useRef(null);
  const send = async (event) => {
    event.preventDefault();
    [busy.value, error.value] = [true, null];
    try {
      await source.addMessage(id, draft.peek());
      draft.value = "";
      await onSent();
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  const onKey = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.current.requestSubmit();
  };
  return html`<form class="stack" ref=${form} onSubmit=${send} onKeyDown=${onKey}>
    <${Field}
      label=${t.message}
      rows="3"
      required
      maxlength=${limits.support.message.maxlength}
      value=${draft.value}
      onInput=${(event) => {
        draft.value = event.currentTarget.value;
      }}
    />
    ${error.value && html`<${Failed} error=${error.value} />`}
    <div class="actions">
      <${Button} kind="primary" type="submit" icon="send" busy=${busy.value}>${t.send}<//>
    </div>
  </form>`;
}
