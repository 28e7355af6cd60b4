// A conversation: its messages, the answer in progress, and their actions. A thread continues while another
// view is shown.
import { batch, effect, signal } from "@preact/signals";
import { api, wasAborted } from "./api.js";
import { split } from "./content.js";
import { changed, listAgain, used } from "./conversations.js";
import { draftOf, keepDraft } from "./drafts.js";
import { pictureParts } from "./pictures.js";
import { wallet } from "./state.js";

const PAGE = 30;
const OLDER_PAGE = 50;
const SENT_CHARACTERS = 400_000; // of earlier messages; older ones are not sent to the model
const HIDDEN_TAB_MS = 250;
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
    this.conversation = signal(/** @type {Api.Conversation} */ (null));
    this.messages = signal(id ? undefined : []); // oldest first; undefined until loaded
    this.starts = new Set(); // the keys of the first message of each loaded page
    this.older = signal(false); // whether older messages exist
    this.loading = signal(false);
    this.asked = null; // the pending request for messages
    this.failed = signal(null); // the error of loading messages
    // The answer in progress: {message, text, reasoning, …}, mostly signals
    this.live = signal(null);
    this.problem = signal(null); // {error, again}: why the last answer is incomplete
  }

  /** Send one request for messages at a time; other callers wait for the pending one. */
  #ask(work) {
    this.asked ??= work().finally(() => {
      this.asked = null;
      this.loading.value = false;
    });
    this.loading.value = true;
    return this.asked;
  }

  load() {
    return this.messages.peek() ? undefined : this.#ask(() => this.#loadNewest());
  }

  async #loadNewest() {
    try {
      const [conversation, page] = await Promise.all([
        api.conversations.show(this.id),
        api.conversations.messages(this.id, { limit: PAGE }),
      ]);
      batch(() => {
        this.conversation.value = conversation;
        this.messages.value = page.data.reverse();
        this.older.value = page.has_more;
        this.failed.value = null;
      });
    } catch (error) {
      if (!wasAborted(error)) this.failed.value = error;
    }
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

  /** Add messages from another tab. */
  async refresh() {
    if (!this.messages.peek() || this.live.peek()) return;
    try {
      const { data, has_more: more } = await api.conversations.messages(this.id, { limit: PAGE });
      if (this.live.peek() || !data.length) return;
      const known = this.messages.peek().filter(({ unkept }) => !unkept),
        byId = new Map(known.map((message) => [message.id, message]));
      const joins = known.findIndex(({ id }) => id === data.at(-1)?.id);
      batch(() => {
        this.messages.value = [
          ...known.slice(0, Math.max(0, joins)),
          ...data.reverse().map((message) => byId.get(message.id) ?? message),
        ];
        if (joins < 0) this.older.value = more;
      });
    } catch {
      /* what is here stays */
    }
  }

  /** Load pages until a message is found. Returns whether it was found. */
  async loadBackTo(messageId) {
    await this.load();
    while (!this.#knows(messageId) && this.older.peek()) await this.loadOlder(100);
    return this.#knows(messageId);
  }

  /**
   * Send `text` with `pictures` (pictures.js). `replaces`: the id of a message that this question replaces,
   * with all messages after it.
   */
  async send({ text, pictures = [], model, projectId = null, replaces = null }) {
    if (this.live.peek()) return;
    const again = () => this.send({ text, pictures, model, projectId, replaces });
    const known = this.messages.peek() ?? [];
    const from = replaces ? known.findIndex(({ id }) => id === replaces) : -1;
    const before = (from < 0 ? known : known.slice(0, from)).filter((message) => !message.unkept);
    const key = `new-${Date.now()}`;
    const question = {
      id: key,
      key,
      role: "user",
      content: text,
      pictures,
      created_at: new Date().toISOString(),
      unkept: true,
    };
    const live = {
      text: signal(""),
      reasoning: signal(""),
      model: signal(model),
      startedAt: Date.now(),
      memory: signal(0),
      omitted: 0,
      stop: new AbortController(),
    };
    live.message = { id: `${question.id}-answer`, key: `${question.id}-answer`, role: "assistant", live };
    batch(() => {
      this.problem.value = null;
      this.messages.value = [...before, question];
      this.live.value = live;
    });
    let begun = false,
      error = null;
    try {
      if (!this.id) await this.#create(projectId, text);
      const stored = pictures.length ? await Promise.all(pictures.map((picture) => picture.store())) : [];
      if (stored.length)
        question.content = [text, ...stored.map((one) => one.reference)].filter(Boolean).join("\n\n");
      const history = await this.#history(live);
      const messages = [...history, { role: "user", content: await pictureParts(question.content) }];
      const headers = {
        "x-service-conversation": this.id,
        ...(replaces && { "x-service-replaces": replaces }),
      };
      const write = this.#writer(live);
      const onOpen = (answer) => {
        live.memory.value = Number(answer.get("x-service-memory")) || 0;
      };
      for await (const chunk of api.chat(
        { messages, ...(model && { model }) },
        { headers, onOpen, signal: live.stop.signal },
      )) {
        begun = true;
        write(chunk);
      }
    } catch (problem) {
      if (!wasAborted(problem)) error = problem;
    }
    live.flush?.();
    await this.#settle({ live, begun, error, again, question, replaced: from < 0 ? [] : known.slice(from) });
  }

  async #create(projectId, text) {
    const said = split(text);
    const title = (said.text || said.files[0]?.name || "").replace(/\s+/g, " ").trim().slice(0, 80) || null;
    const made = await api.conversations.create({
      ...(projectId && { project_id: projectId }),
      ...(said.files.length && { title }), // else the service takes the question
    });
    this.id = made.id;
    threads.set(made.id, this);
    this.conversation.value = made;
    used({ ...made, title });
  }

  /** Return the latest earlier messages that fit the model's limit. `live.omitted` counts the others. */
  async #history(live) {
    const before = () => this.messages.peek().filter(({ role, unkept }) => role !== "system" && !unkept);
    while (this.older.peek() && size(before()) < SENT_CHARACTERS) {
      await this.loadOlder(100);
      live.stop.signal.throwIfAborted();
    }
    const spoken = before(),
      sent = spoken.slice(firstTold(spoken));
    live.omitted = spoken.length - sent.length;
    return Promise.all(
      sent.map(async ({ role, content }) => ({ role, content: await pictureParts(content) })),
    );
  }

  /** Read chunks and draw them once per frame: 500 tokens per second are 60 paints. */
  #writer(live) {
    let text = "",
      reasoning = "",
      scheduled = false;
    const flush = () => {
      scheduled = false;
      batch(() => {
        live.text.value = text;
        live.reasoning.value = reasoning;
      });
    };
    live.flush = flush;
    return (chunk) => {
      live.model.value ??= chunk.model;
      const delta = chunk.choices[0]?.delta ?? {};
      text += delta.content ?? delta.refusal ?? "";
      reasoning += delta.reasoning_content ?? delta.reasoning ?? "";
      if (scheduled) return;
      scheduled = true;
      if (document.hidden) setTimeout(flush, HIDDEN_TAB_MS);
      else requestAnimationFrame(flush);
    };
  }

  /** Replace the answer in progress by the stored one, with its id, tokens and cost. */
  async #settle({ live, begun, error, again, question, replaced }) {
    const written = { ...question, unkept: !begun };
    const { key } = live.message,
      { omitted } = live;
    const answer = {
      id: key,
      key,
      omitted,
      role: "assistant",
      content: live.text.peek(),
      model: live.model.peek(),
      created_at: new Date().toISOString(),
      answer: { reasoning: live.reasoning.peek() || null, duration_ms: Date.now() - live.startedAt },
    };
    // Keep the keys, and so the elements, of the answer in progress.
    const stopped = live.stop.signal.aborted;
    const found = begun || stopped ? await this.#kept(question, replaced, stopped) : null;
    const kept = found?.map((message) =>
      message.role === "user" ? { ...message, key: question.key } : { ...message, key, omitted },
    );
    batch(() => {
      const before = this.messages.peek().filter(({ id }) => id !== question.id);
      if (kept) this.messages.value = [...before, ...kept];
      else if (begun) this.messages.value = [...before, written, answer];
      else if (replaced.length)
        this.messages.value = [...before, ...replaced]; // the replaced messages are still stored
      else this.messages.value = [...before, written];
      this.live.value = null;
      this.problem.value = error
        ? {
            error,
            again: kept ? () => this.retry() : again,
            text: begun ? "" : question.content,
            hasPictures: Boolean(question.pictures.length),
          }
        : null;
    });
    // Unsent text is restored after a reload.
    const isStored = begun || Boolean(kept);
    const isNew = !isStored && !replaced.some(({ content }) => content === question.content);
    if (isNew && !draftOf(this.id)) keepDraft(this.id, question.content);
    if (isStored && draftOf(this.id) === question.content) keepDraft(this.id, "");
    if (isStored) this.#tellList();
    wallet.reload();
  }

  /**
   * Return the latest stored question and answer, or null. A stopped answer ends a moment later.
   */
  async #kept(question, replaced, stopped) {
    const old = new Set([...this.messages.peek(), ...replaced].map(({ id }) => id));
    for (let turn = 0; turn < (stopped ? 6 : 2); turn++) {
      try {
        const { data } = await api.conversations.messages(this.id, { limit: 2 });
        const [answer, asked] = data;
        if (
          asked?.role === "user" &&
          answer.role === "assistant" &&
          answer.status !== "in_progress" &&
          asked.content === question.content &&
          !old.has(asked.id)
        )
          return [asked, answer];
        if (answer?.role === "user" && answer.content === question.content && !old.has(answer.id))
          return [answer];
      } catch {
        /* then what was written here stays */
      }
      await new Promise((resolve) => {
        setTimeout(resolve, 150 * (turn + 1));
      });
    }
    return null;
  }

  #knows(id) {
    return (this.messages.peek() ?? []).some((message) => message.id === id);
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

  stop() {
    this.live.peek()?.stop.abort(new DOMException("", "AbortError"));
  }

  /** Send the last question again and replace its answer. */
  async retry(model) {
    const asked = this.messages.peek().findLast(({ role }) => role === "user");
    await this.edit(asked, asked.content, model ?? this.messages.peek().at(-1).model);
  }

  /** Send a stored question with a new text and replace all later messages. */
  async edit(message, text, model) {
    if (message.unkept) return this.send({ text, model });
    return this.send({ text, model, replaces: await this.#storedId(message) });
  }

  /** Return the id of a stored message. A stopped answer may have been stored after `#settle`. */
  async #storedId(message) {
    if (message.id !== message.key) return message.id;
    await this.refresh();
    const { id, key } = this.messages.peek().findLast(({ role }) => role === "user") ?? message;
    return id === key ? null : id;
  }
}

/** Return the index of the first message that is sent to the model. */
function firstTold(messages) {
  let left = SENT_CHARACTERS;
  for (let first = messages.length; first > 0; first--) {
    left -= messages[first - 1].content.length;
    if (left <= 0) return first;
  }
  return 0;
}

const size = (messages) => messages.reduce((sum, { content }) => sum + content.length, 0);
