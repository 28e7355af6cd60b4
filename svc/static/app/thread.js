// A conversation: its messages, the answer in progress, and their actions. A thread continues while another
// view is shown, and an answer continues without the page.
import { batch, effect, signal } from "@preact/signals";
import { api, wasAborted } from "./api.js";
import { hasParts } from "./content.js";
import { changed, listAgain, unused, used } from "./conversation-list.js";
import { draftOf, keepDraft, putDraft, queueOf } from "./drafts.js";
import { inChatFormat, isFull, isSent, newQuestion, sameOr, titleOf, withoutWaiting } from "./history.js";
import { answerOf, newLive, sleep, writerOf } from "./live.js";
import { sendNext } from "./queue.js";
import { models, settings, wallet } from "./state.js";
import { moveTools, tools, toolsHeader } from "./tools.js";

const PAGE = 30;
const OLDER_PAGE = 50;
const REFUSED_WITHIN_MS = 500; // the service usually refuses a request before that
const LONGEST_WAIT_MS = 8_000;
const STOP_EVERY_MS = 200;
const STOP_TURNS = 25;
const TITLE_AFTER_MS = [1_000, 2_000, 5_000];
const TELL_AFTER_MS = 300; // other tabs need not follow a shorter answer
const threads = new Map();
const otherTabs = new BroadcastChannel("svc.chat");
otherTabs.onmessage = ({ data: id }) => {
  threads.get(id)?.refresh();
  listAgain();
};

effect(() => {
  const thread = threads.get(changed.value?.id);
  if (thread) thread.conversation.value = changed.value;
});

/** The thread of a conversation. Without an id, the first message creates the conversation. */
export function threadOf(id) {
  if (!id) return new Thread(null);
  if (!threads.has(id)) threads.set(id, new Thread(id));
  return threads.get(id);
}

class Thread {
  static #made = 0;

  constructor(id) {
    this.id = id;
    this.key = ++Thread.#made; // identifies a thread before it has an id
    this.address = signal(id); // the id, once the service has accepted the first question
    this.conversation = signal(/** @type {Api.Conversation} */ (null));
    this.messages = signal(id ? undefined : []); // oldest first; undefined until loaded
    this.starts = new Set(); // the keys of the first message of each loaded page
    this.older = signal(false); // whether older messages exist
    this.loading = signal(false);
    this.pending = null; // the request for messages
    this.failed = signal(null); // the error of loading messages
    this.live = signal(null); // the answer in progress (live.js)
    this.next = signal([]); // the models that answer one after the other; the first one does now
    this.queue = signal(id ? queueOf(id) : []); // the questions that follow it (queue.js)
    // {error, again, hasPictures, draft}: why the last question was not accepted, and the draft that has it
    this.problem = signal(null);
  }

  /** Send one request for messages at a time; other callers wait for the pending one. */
  #ask(work) {
    this.pending ??= work().finally(() => {
      this.pending = null;
      this.loading.value = false;
    });
    this.loading.value = true;
    return this.pending;
  }

  load() {
    return this.messages.peek() ? this.refresh() : this.#ask(() => this.#loadNewest());
  }

  async #loadNewest() {
    try {
      const [conversation, page] = await Promise.all([
        api.conversations.show(this.id),
        api.conversations.messages(this.id, { limit: PAGE }),
      ]);
      this.conversation.value = conversation;
      this.failed.value = null;
      this.#show(page.data.reverse(), page.has_more);
    } catch (error) {
      if (!wasAborted(error)) this.failed.value = error;
    }
  }

  /** Show messages; follow the last one if it is an answer in progress. */
  #show(messages, more) {
    const last = messages.at(-1);
    const live = last?.status === "in_progress" ? newLive({ model: last.model, stored: last }) : null;
    batch(() => {
      this.messages.value = live ? messages.slice(0, -1) : messages;
      this.older.value = more;
      this.live.value = live;
    });
    if (live) this.#follow(live);
  }

  /** Load a page of older messages, if there are any. Throws the error. */
  async loadOlder(limit = OLDER_PAGE) {
    if (this.older.peek()) await this.#ask(() => this.#loadBefore(limit));
  }

  async #loadBefore(limit) {
    const page = await api.conversations.messages(this.id, { limit, after: this.messages.peek()[0].id });
    const [first] = this.messages.peek();
    this.starts.add(first.key ?? first.id);
    batch(() => {
      this.messages.value = [...page.data.reverse(), ...this.messages.peek()];
      this.older.value = page.has_more;
    });
  }

  /** Show what other tabs and devices have changed, or another version. */
  async refresh() {
    if (!this.messages.peek() || !this.id || this.live.peek()) return;
    try {
      const { data, has_more: more } = await api.conversations.messages(this.id, { limit: PAGE });
      if (this.live.peek()) return;
      const known = this.messages.peek(),
        byId = new Map(known.map((message) => [message.id, message]));
      const newest = data.reverse().map((message) => sameOr(byId.get(message.id), message));
      const joins = known.findIndex(({ id }) => id === newest[0]?.id);
      this.#show([...known.slice(0, Math.max(0, joins)), ...newest], joins < 0 ? more : this.older.peek());
    } catch {
      /* what is here stays */
    }
  }

  /** Load pages until a message is found. Returns whether it was found. */
  async loadBackTo(messageId) {
    const isFound = () => (this.messages.peek() ?? []).some(({ id }) => id === messageId);
    await this.load();
    while (!isFound() && this.older.peek()) await this.loadOlder(100);
    return isFound();
  }

  /**
   * Send `text` with `pictures` (pictures.js). `replaces`: the message of which the service adds a version;
   * for an answer, the question is sent again. `isDraft`: whether `text` is the draft of the composer.
   */
  async send({ text, pictures = [], model, projectId = null, replaces = null, isDraft = false }) {
    if (this.live.peek()) return;
    const request = { text, pictures, model, projectId, replaces };
    const shown = this.messages.peek() ?? [];
    const from = replaces ? shown.findIndex(({ id }) => id === replaces.id) : shown.length;
    const asked = replaces?.role === "assistant" ? shown[from - 1] : null;
    const until = asked ? from - 1 : from;
    const question = asked ?? newQuestion(text, pictures);
    const live = newLive({ model, question });
    const draft = isDraft && { key: this.address.peek(), content: draftOf(this.address.peek()) };
    batch(() => {
      this.problem.value = null;
      this.messages.value = [...withoutWaiting(shown.slice(0, until)), question];
      this.live.value = live;
    });
    const accept = this.#accepting(draft, question);
    try {
      await this.#stream(live, request, accept);
    } catch (error) {
      if (!(await this.#isStored(live, error, shown))) {
        accept.cancel();
        return this.#refused({ live, shown, error, request, asked, draft });
      }
      if (error.status === 0) await this.#attach(live);
    }
    accept();
    await this.#settle(live);
  }

  /** Return a function to call when the question is stored, which is assumed after a while. */
  #accepting(draft, question) {
    let isDone = false,
      timer = 0;
    const accept = () => {
      if (isDone || !this.id) return;
      isDone = true;
      if (draft) {
        const written = draftOf(draft.key);
        keepDraft(draft.key, "");
        if (written !== draft.content) keepDraft(this.id, written);
      } else if (draftOf(this.id) === question.content) putDraft(this.id, "");
      this.address.value = this.id;
      used({ ...this.conversation.peek(), answering: true });
      setTimeout(() => this.live.peek() && otherTabs.postMessage(this.id), TELL_AFTER_MS);
    };
    accept.soon = () => {
      timer = setTimeout(accept, REFUSED_WITHIN_MS);
    };
    accept.cancel = () => {
      isDone = true;
      clearTimeout(timer);
    };
    return accept;
  }

  /** Send the question and read the answer to its end. */
  async #stream(live, { text, pictures, model, projectId, replaces }, accept) {
    const { question, abort } = live;
    if (!this.id) await this.#create(projectId, text);
    const stored = await Promise.all(pictures.map((picture) => picture.store()));
    if (stored.length)
      question.content = [text, ...stored.map((one) => one.reference)].filter(Boolean).join("\n\n");
    const messages = await inChatFormat([...(await this.#history(live)), question]);
    abort.signal.throwIfAborted();
    const headers = {
      "x-service-continue": "true",
      "x-service-conversation": this.id,
      ...(replaces && { "x-service-replaces": replaces.id }),
      ...(await toolsHeader(this.id, model)),
    };
    const onOpen = (answer) => {
      live.memory.value = Number(answer.get("x-service-memory")) || 0;
      live.isOpen = true;
      accept();
    };
    const write = writerOf(live);
    live.asked = true;
    accept.soon();
    const body = { messages, ...(model && { model }) };
    for await (const chunk of api.chat(body, { headers, onOpen, signal: abort.signal })) write(chunk);
  }

  async #create(projectId, text) {
    const title = titleOf(text);
    const made = await api.conversations.create({
      ...(projectId && { project_id: projectId }),
      ...(hasParts(text) && { title }), // else the service takes the question
    });
    this.id = made.id;
    threads.set(made.id, this);
    this.conversation.value = { ...made, title };
    moveTools(null, made.id);
  }

  /** Return the earlier messages. The service leaves out what the model cannot read. */
  async #history(live) {
    const before = () => this.messages.peek().filter((one) => isSent(one) && one !== live.question);
    while (this.older.peek() && !isFull(before())) {
      await this.loadOlder(100);
      live.abort.signal.throwIfAborted();
    }
    return before();
  }

  /** Whether the service has stored a question whose request ended with `error`. */
  async #isStored(live, error, shown) {
    if (wasAborted(error) || !live.asked) return false;
    if (live.isOpen || error.isStored) return true;
    if (error.status !== 0) return false;
    try {
      const { data } = await api.conversations.messages(this.id, { limit: 1 });
      return data.length > 0 && !shown.some(({ id }) => id === data[0].id);
    } catch {
      return false;
    }
  }

  /** Show what was there before the question, which returns to the composer. */
  async #refused({ live, shown, error, request, asked, draft }) {
    const { content, pictures } = live.question;
    // After a lost connection the service may have the question: the same one continues there.
    if (this.id && !shown.length && error.status !== 0) await this.#forget();
    const hasPictures = content.includes("](/artifacts/") || pictures?.length > 0;
    const written = draftOf(this.address.peek());
    const others = draft && written === draft.content ? "" : written;
    const back = !asked && !(request.replaces && others) && [content, others].filter(Boolean).join("\n\n");
    batch(() => {
      this.messages.value = shown;
      this.live.value = null;
      if (!wasAborted(error)) {
        const again = request.replaces ? () => this.send(request) : null;
        this.problem.value = { error, again, hasPictures, draft: back };
      }
    });
    if (back) putDraft(this.address.peek(), back, { pictures: content === request.text ? pictures : [] });
    wallet.reload();
    if (error.code === "model_not_found") models.reload(); // the picker tells that it is gone
    if (error.code === "already_active") await this.refresh();
    if (error.param === "x-service-tools") tools.reload();
  }

  /** Delete the conversation that was created for a question that was not accepted. */
  async #forget() {
    const id = this.id;
    threads.delete(id);
    unused(id);
    this.id = null;
    moveTools(id, null);
    batch(() => {
      this.address.value = null;
      this.conversation.value = null;
    });
    await api.conversations.remove(id).catch(() => {});
  }

  async #follow(live) {
    await this.#attach(live);
    await this.#settle(live);
  }

  /** Read the running answer to its end, also after a lost connection. */
  async #attach(live) {
    for (let wait = 250; !live.abort.signal.aborted; wait = Math.min(2 * wait, LONGEST_WAIT_MS)) {
      try {
        const write = writerOf(live);
        for await (const chunk of api.conversations.stream(this.id, { signal: live.abort.signal })) {
          [live.isLost.value, wait] = [false, 250];
          write(chunk);
        }
        return;
      } catch (error) {
        if (error.status !== 0 && error.status < 500) return; // it has ended
      }
      live.isLost.value = true;
      await sleep(wait);
    }
  }

  /** Replace the answer in progress by the stored one, with its id, tokens and cost. */
  async #settle(live) {
    live.flush();
    const { question, message } = live;
    const [asked, answer] = (await this.#tail()) ?? [question, answerOf(live)];
    batch(() => {
      const before = this.messages.peek().filter((one) => one !== question && one.id !== asked?.id);
      const shown = this.messages.peek().find(({ id }) => id === asked?.id) ?? question;
      this.messages.value = [
        ...before,
        // The keys, and so the elements, stay those of the answer in progress.
        ...(asked ? [{ ...asked, key: shown?.key ?? asked.id, unkept: false }] : []),
        { ...answer, key: message.key },
      ];
      this.live.value = null;
    });
    const isFirst = !this.older.peek() && this.messages.peek().length <= 2;
    const mayHaveTitle = isFirst && settings.data.peek()?.generate_titles !== "never";
    this.#tellList().then(() => mayHaveTitle && !answer.model?.startsWith("builtin/") && this.#awaitTitle());
    wallet.reload();
    const isLast = this.next.peek().length < 2;
    if (isLast && (answer.status === "complete" || answer.status === "stopped")) sendNext(this);
  }

  /** Return the stored question and answer, or null. The end of an answer is stored a moment later. */
  async #tail() {
    for (let turn = 1; turn <= 6; turn++) {
      try {
        const { data } = await api.conversations.messages(this.id, { limit: 2 });
        const [answer, asked = null] = data;
        if (answer?.role === "assistant" && answer.status !== "in_progress") return [asked, answer];
      } catch (error) {
        if (error.status !== 0) return null;
      }
      await sleep(150 * turn);
    }
    return null;
  }

  /** Show the title of a new conversation, which the model writes after its answer. */
  async #awaitTitle() {
    const made = this.conversation.peek()?.title;
    for (const wait of TITLE_AFTER_MS) {
      await sleep(wait);
      if (this.conversation.peek()?.title !== made) return;
      if (!this.live.peek()) await this.#tellList();
    }
  }

  async #tellList() {
    try {
      this.conversation.value = await api.conversations.show(this.id);
      used(this.conversation.value);
      otherTabs.postMessage(this.id);
    } catch {
      /* the list asks again by itself */
    }
  }

  /** Stop the answer. Throws the error. */
  async stop() {
    const live = this.live.peek();
    const abort = () => live.abort.abort(new DOMException("", "AbortError"));
    if (!live?.asked) return live && abort();
    // The service may not have stored the question yet, and then there is no answer to stop.
    for (let turn = 0; turn < STOP_TURNS && this.live.peek() === live; turn++) {
      try {
        return await api.conversations.stop(this.id);
      } catch (error) {
        if (error.code !== "already_ended" || live.isOpen) break; // it ends by itself, or is not reachable
      }
      await sleep(STOP_EVERY_MS);
    }
    if (this.live.peek() === live && (!live.isOpen || live.isLost.peek())) abort();
  }

  /**
   * Decide about the calls of an answer that waits, which then goes on: `calls` by their ids. `always`: the
   * tools that run in this conversation without a question from now on. Throws the error of a refusal.
   */
  async approve(message, calls, always = []) {
    if (this.live.peek()) return;
    if (always.length) {
      const names = new Set([...this.conversation.peek().always_allow, ...always]);
      this.conversation.value = await api.conversations.change(this.id, { always_allow: [...names] });
    }
    const shown = this.messages.peek(),
      live = newLive({ model: message.model, stored: message, key: message.key });
    let isOpen = false;
    batch(() => {
      this.messages.value = shown.filter((one) => one !== message);
      this.live.value = live;
    });
    try {
      const write = writerOf(live, true);
      const onOpen = () => {
        isOpen = true;
      };
      for await (const chunk of api.conversations.approve(this.id, calls, {
        onOpen,
        signal: live.abort.signal,
      }))
        write(chunk);
    } catch (error) {
      if (!isOpen) {
        batch(() => {
          this.messages.value = shown;
          this.live.value = null;
        });
        await this.refresh(); // another tab may have decided
        throw error;
      }
      if (error.status === 0) await this.#attach(live);
    }
    await this.#settle(live);
  }

  /** Have `models` answer one after the other, each with a version of the first answer. `what`: see send. */
  async ask(what, models) {
    this.next.value = models;
    for (let at = 0; at < models.length; at++) {
      await this.send({ ...what, model: models[at] });
      this.next.value = models.slice(at + 1);
      const answer = this.messages.peek().at(-1);
      const isHeld = answer?.role !== "assistant" || ["stopped", "waiting"].includes(answer.status);
      if (isHeld || this.problem.peek() || !this.next.peek().length) break;
      what = { replaces: await this.#stored(answer) };
    }
    this.next.value = [];
  }

  /** Answer a question once more, by default the last one: new versions of its answer by `models`. */
  async retry(models, answer = this.messages.peek().at(-1)) {
    const replaces = await this.#stored(answer),
      shown = this.messages.peek(),
      at = shown.findIndex(({ id }) => id === replaces.id);
    const asked = shown.slice(0, at + 1).findLast(({ role }) => role === "user");
    const named = models.map((model) => model ?? replaces.model);
    await this.ask({ text: asked.content, replaces }, named);
  }

  /** Send a question with a new text: a new version of it. */
  async edit(message, text, model) {
    await this.send({ text, model, replaces: await this.#stored(message) });
  }

  /** Return a message with the id that the service has given it. */
  async #stored(message) {
    if (!this.messages.peek().some(({ isLocal }) => isLocal)) return message;
    await this.refresh();
    const known = this.messages.peek();
    return known.find(({ id }) => id === message.id) ?? known.findLast(({ role }) => role === message.role);
  }

  /** Show another version of a message, and what follows it. Throws the error. */
  async showVersion(id) {
    this.conversation.value = await api.conversations.change(this.id, { current_message_id: id });
    await this.refresh();
    otherTabs.postMessage(this.id);
  }
}
