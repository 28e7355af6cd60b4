// A temporary chat: it stays in the memory of this page, the service stores nothing, and a reload forgets it.
import { batch, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api, wasAborted } from "./api.js";
import { TEMPORARY, draftOf, keepDraft, putDraft } from "./drafts.js";
import { inChatFormat, isSent, newQuestion } from "./history.js";
import { html } from "./html.js";
import { answerOf, newLive, writerOf } from "./live.js";
import { sendNext } from "./queue.js";
import { wallet } from "./state.js";
import { toolsHeader } from "./tools.js";
import { temporaryTexts } from "./texts/en/views.js";

const ENDINGS = ["stop", "length", "content_filter", "tool_calls"];
let kept = null; // while other views are shown

/** The view of a temporary chat in `Conversation`, the view of a thread. */
export default function TemporaryChat({ Conversation }) {
  kept ??= new TemporaryThread();
  const thread = kept,
    isUsed = thread.messages.value.length > 0 || thread.live.value !== null;
  useEffect(() => {
    if (!isUsed) return undefined;
    const warn = (event) => event.preventDefault(); // the browser asks whether to leave the page
    addEventListener("beforeunload", warn);
    forget.unwarn = () => removeEventListener("beforeunload", warn);
    return undefined;
  }, [isUsed]);
  return html`<${Conversation} key=${thread.key} thread=${thread} forget=${forget}
    foot=${html`<p class="hint">${temporaryTexts.hint}</p>`} />`;
}

/** Forget the chat, and stop its answer. */
function forget() {
  forget.unwarn();
  kept?.stop();
  kept = null;
  keepDraft(TEMPORARY, "");
}
forget.unwarn = () => {};

/** What a Thread (thread.js) is for its view. */
class TemporaryThread {
  constructor() {
    this.id = TEMPORARY;
    this.key = `${TEMPORARY}-${Date.now()}`;
    this.address = signal(TEMPORARY);
    this.conversation = signal(null);
    this.messages = signal([]);
    this.starts = new Set();
    this.older = signal(false);
    this.loading = signal(false);
    this.failed = signal(null);
    this.live = signal(null);
    this.next = signal([]);
    this.queue = signal([]);
    this.problem = signal(null);
  }

  load() {}

  refresh() {}

  loadBackTo() {
    return false;
  }

  /** Send `text`. `replaces`: the message that goes, with all that follow it. */
  async send({ text, model, replaces = null }) {
    if (this.live.peek()) return;
    const shown = this.messages.peek();
    const from = replaces ? shown.indexOf(replaces) : shown.length;
    const asked = replaces?.role === "assistant" ? shown[from - 1] : null;
    const question = asked ?? { ...newQuestion(text, []), unkept: false };
    const before = shown.slice(0, asked ? from - 1 : from),
      live = newLive({ model, question });
    batch(() => {
      this.problem.value = null;
      this.messages.value = [...before, question];
      this.live.value = live;
    });
    keepDraft(TEMPORARY, "");
    let fault = null;
    try {
      await this.#stream(live, before.filter(isSent), model);
    } catch (error) {
      if (!live.isOpen) return this.#refused(error, shown, asked ? null : text);
      fault = error;
    }
    this.#settle(live, fault);
  }

  async #stream(live, before, model) {
    live.asked = true;
    const messages = await inChatFormat([...before, live.question]);
    const headers = { "x-service-temporary": "true", ...(await toolsHeader(this.id, model)) };
    const onOpen = () => {
      live.isOpen = true;
    };
    const write = writerOf(live),
      body = { messages, ...(model && { model }) };
    for await (const chunk of api.chat(body, { headers, onOpen, signal: live.abort.signal })) {
      live.reason = chunk.choices[0]?.finish_reason ?? live.reason;
      write(chunk);
    }
  }

  #refused(error, shown, text) {
    batch(() => {
      this.messages.value = shown;
      this.live.value = null;
      if (!wasAborted(error)) this.problem.value = { error, again: null, draft: text };
    });
    if (text) putDraft(TEMPORARY, [text, draftOf(TEMPORARY)].filter(Boolean).join("\n\n"));
    wallet.reload();
  }

  #settle(live, fault) {
    live.flush();
    const { message } = live,
      status = !fault ? "complete" : wasAborted(fault) ? "stopped" : "failed";
    const answer = { ...answerOf(live), key: message.key, status, isLocal: false };
    answer.answer.finish_reason = ENDINGS.includes(live.reason) ? live.reason : null;
    if (status === "failed") answer.error = { message: fault.message, code: fault.code, type: fault.type };
    batch(() => {
      this.messages.value = [...this.messages.peek(), answer];
      this.live.value = null;
    });
    wallet.reload();
    if (status !== "failed") sendNext(this);
  }

  async stop() {
    this.live.peek()?.abort.abort(new DOMException("", "AbortError"));
  }

  async retry([model]) {
    const last = this.messages.peek().at(-1);
    const asked = this.messages.peek().findLast(({ role }) => role === "user");
    const replaces = last.role === "assistant" ? last : asked;
    await this.send({ text: asked.content, model, replaces });
  }

  async edit(message, text, model) {
    await this.send({ text, model, replaces: message });
  }
}
