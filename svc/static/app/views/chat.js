// Chat: the messages of one conversation, and the composer below. The column never moves while a person
// reads.
import { effect, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { api, session } from "../api.js";
import { Composer, focusComposer } from "../composer.js";
import { Button, Empty, Failed, IconButton, Loading, Menu, toast } from "../components.js";
import { search } from "../conversations.js";
import { putDraft } from "../drafts.js";
import { html } from "../html.js";
import Messages from "../messages.js";
import { ModelPicker, PICKER_ID, chosenModel, isBuiltin } from "../model-picker.js";
import { go, link, route } from "../router.js";
import { models, modelsOf, projects, settings } from "../state.js";
import { texts } from "../texts.js";
import { threadOf } from "../thread.js";

const t = texts.chat;
const REFUSED = [400, 404, 415, 422]; // statuses of model servers for unsupported input
const MARKED_EVERY_MS = 300;
const AT_END_PX = 60;
const NEAR_TOP_PX = 1_500;

export default function Chat({ path: [id], query }) {
  const thread = useRef(null);
  if (!thread.current || (thread.current.id ?? undefined) !== id) thread.current = threadOf(id);
  return html`<${Conversation}
    key=${thread.current.key}
    thread=${thread.current}
    projectId=${query.project_id}
    messageId=${query.message}
  />`;
}

function Conversation({ thread, projectId, messageId }) {
  const editing = useSignal(null),
    filedUnder = useSignal(projectId ?? null),
    column = useRef(null);
  useEffect(() => {
    if (thread.id) thread.load();
  }, [thread]);
  const messages = thread.messages.value,
    live = thread.live.value,
    problem = thread.problem.value;
  const scroll = useReadingPlace(column, thread);
  const send = async (what) => {
    scroll.follow();
    const sent = thread.send({ ...what, model: chosenModel.peek(), projectId: filedUnder.peek() });
    if (thread.id) return sent;
    // Put the conversation's id into the address as soon as it has one.
    const stop = effect(() => {
      if (!thread.conversation.value) return;
      if (route.peek().name === "chat" && !route.peek().path[0])
        go(link("chat", thread.id), { replace: true });
      queueMicrotask(() => stop());
    });
    return sent;
  };
  const actions = useMemo(
    () => ({
      edit(message) {
        editing.value = message.id;
      },
      cancel() {
        editing.value = null;
        focusComposer();
      },
      send(message, text) {
        editing.value = null;
        scroll.follow();
        thread.edit(message, text, chosenModel.peek());
      },
      retry() {
        scroll.follow();
        thread.retry(chosenModel.peek());
      },
    }),
    [thread],
  );
  const title = thread.conversation.value?.title;
  useEffect(() => {
    document.title = `${title ?? texts.views.chat} · ${texts.name}`;
  }, [title]);
  const editLast = () => {
    const last = messages?.findLast(({ role }) => role === "user");
    if (last && !live) editing.value = last.id;
  };
  useEffect(() => {
    if (messageId) scroll.show(messageId);
  }, [thread, messageId]);
  useKeys({ stop: () => thread.stop(), busy: live !== null });
  if (thread.failed.value)
    return html`<div class="page">
      <${Failed} error=${thread.failed.value.status === 404 ? { message: t.gone } : thread.failed.value}
      retry=${thread.failed.value.status === 404 ? null : () => thread.load()}>
        <a href=${link("chat")}>${texts.shell.newChat}</a>
      <//>
    </div>`;
  const said = live ? [...messages, live.message] : messages;
  const isNew = messages?.length === 0 && !live && !problem;
  return html`<div class="chat ${isNew ? "chat-new" : ""}">
    <${Head} thread=${thread} filedUnder=${filedUnder} />
    <div class="chat-scroll" ref=${column} tabindex="0" role="region" aria-label=${t.messages}>
      ${
        messages === undefined
          ? html`<${Loading} />`
          : isNew
            ? (
                thread.id
                  ? html`<${Empty} icon="chat" title=${t.empty} />`
                  : html`<${Welcome} onSend=${send} />`
              )
            : html`<div class="column" role="log" aria-live="off">
              ${
                thread.older.value &&
                html`<div class="more">
                  ${
                    thread.loading.value
                      ? html`<${Loading} label=${t.loadingOlder} />`
                      : html`<${Button}
                        small
                        onClick=${() =>
                          thread.loadOlder().catch((error) => toast(error.message, { kind: "bad" }))}
                      >${t.older}<//>`
                  }
                </div>`
              }
              <${Messages}
                messages=${said}
                starts=${thread.starts}
                actions=${actions}
                editing=${editing.value}
                canEdit=${!live}
                canRetry=${!live && said.some(({ role }) => role === "user")}
              />
              ${
                problem &&
                html`<${Failed}
                  manual
                  error=${problem.error}
                  retry=${() => {
                    scroll.follow();
                    problem.again();
                  }}
                >
                  ${
                    problem.hasPictures &&
                    REFUSED.includes(problem.error.status) &&
                    html`<p>${t.noPictures}</p>`
                  }
                  ${
                    problem.text &&
                    html`<button type="button" class="link" onClick=${() => takeBack(thread)}>
                      ${t.discard}
                    </button>`
                  }
                <//>`
              }
            </div>`
      }
    </div>
    <div class="chat-foot">
      ${
        scroll.away.value &&
        html`<${IconButton} class="to-end" icon="down" label=${t.toEnd} onClick=${scroll.follow} />`
      }
      <${Composer}
        id=${thread.id}
        busy=${live !== null}
        priced=${{
          modelId: chosenModel.value,
          messages,
          conversation: thread.conversation.value,
          projectId: filedUnder.value,
        }}
        onSend=${send}
        onStop=${() => thread.stop()}
        onEditLast=${editLast}
      />
    </div>
    <${Spoken} thread=${thread} />
  </div>`;
}

/** Discard an unsent question: its text returns to the composer. */
function takeBack(thread) {
  const messages = thread.messages.peek();
  const question = messages.at(-1);
  thread.messages.value = messages.filter(({ unkept }) => !unkept);
  thread.problem.value = null;
  if (question?.unkept) putDraft(thread.id, question.content);
}

function Head({ thread, filedUnder }) {
  const conversation = thread.conversation.value,
    all = projects.data.value ?? [];
  const projectId = conversation ? conversation.project_id : filedUnder.value;
  const project = all.find(({ id }) => id === projectId);
  const file = async (id) => {
    filedUnder.value = id;
    if (conversation)
      thread.conversation.value = await api.conversations.change(conversation.id, { project_id: id });
  };
  const choices = [
    { label: t.noProject, checked: !project, onSelect: () => file(null) },
    ...all.map(({ id, name }) => ({ label: name, checked: id === projectId, onSelect: () => file(id) })),
  ];
  return html`<header class="chat-head">
    <h1 class="hidden-text" tabindex="-1">${conversation?.title ?? t.untitled}</h1>
    <${ModelPicker}
      value=${chosenModel.value}
      onChange=${(id) => {
        chosenModel.value = id;
        focusComposer();
      }}
    />
    ${
      all.length > 0 &&
      html`<${Menu}
        label=${t.project}
        items=${choices}
        trigger=${(toggle) => html`<button type="button" class="picker-button quiet" ...${toggle}>
        <span>${project ? t.inProject(project.name) : t.noProject}</span></button>`}
      />`
    }
  </header>`;
}

/** Suggestions for the model of the next chat, or none before it is known. */
function suggestions() {
  const model = chosenModel.value ?? settings.data.value?.chat_model;
  if (!model) return [];
  const [kind] = isBuiltin(model) ? model.slice("builtin/".length).split("-") : [];
  return t.suggestions[kind] ?? t.suggestions.other;
}

/** Links to connect a model server, if only the built-in models are there. */
function Connect() {
  if (!models.data.value || modelsOf("chat").some(({ id }) => !isBuiltin(id))) return null;
  const choices = { ...texts.providers.programs, own: texts.providers.own };
  return html`<section class="card connect" aria-label=${t.connectTitle}>
    <p class="item-title">${t.connectTitle}</p>
    <p class="quiet small">${t.connectText}</p>
    <div class="actions">
      ${Object.entries(choices).map(
        ([connect, label]) => html`<${Button} small href=${link("providers", { connect })}>${label}<//>`,
      )}
    </div>
  </section>`;
}

function Welcome({ onSend }) {
  const { name } = session.value.user;
  return html`<div class="greeting">
    <p class="greeting-title">${name ? t.greetingTo(name) : t.greeting}</p>
    <ul class="suggestions">
      ${suggestions().map(
        (text) => html`<li>
        <button type="button" onClick=${() => onSend({ text })}>${text}</button>
      </li>`,
      )}
    </ul>
    <${Connect} />
  </div>`;
}

/** Announce the start of an answer and the complete answer to screen readers, but not each word. */
function Spoken({ thread }) {
  const said = useSignal(""),
    was = useRef(null);
  const live = thread.live.value;
  useEffect(() => {
    if (live) said.value = t.writing;
    else if (was.current)
      said.value = thread.problem.peek()
        ? ""
        : (thread.messages.peek().at(-1)?.content.slice(0, 2_000) ?? t.done);
    was.current = live;
  }, [live]);
  return html`<div class="hidden-text" role="status" aria-live="polite">${said.value}</div>`;
}

function useKeys({ stop, busy }) {
  const now = useRef(null);
  now.current = { stop, busy };
  useEffect(() => {
    const onKey = (event) => {
      if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
      const command = event.ctrlKey || event.metaKey,
        typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
      if (event.key === "Escape" && event.shiftKey) focusComposer();
      else if (event.key === "Escape" && now.current.busy) now.current.stop();
      else if (command && event.shiftKey && event.key.toLowerCase() === "c")
        /** @type {HTMLElement | undefined} */ (
          [...document.querySelectorAll(".copy-answer")].at(-1)
        )?.click();
      else if (!typing && !command && !event.altKey && event.key === "m")
        document.getElementById(PICKER_ID)?.click();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

/** Keep the scroll position. At the end, follow the answer; elsewhere, do not move. */
function useReadingPlace(column, thread) {
  const away = useSignal(false),
    following = useRef(true),
    before = useRef(null);
  const toEnd = () => {
    const box = column.current;
    if (box) box.scrollTop = box.scrollHeight;
  };
  // Scroll anchoring of the browser is off at the end, because it is slow at each paint.
  const hold = () => column.current?.classList.toggle("following", following.current);
  useEffect(() => {
    const box = column.current;
    if (!box) return undefined;
    hold();
    let last = box.scrollTop;
    const onScroll = () => {
      const left = box.scrollHeight - box.scrollTop - box.clientHeight;
      if (box.scrollTop < last - 2) following.current = left < 4;
      else if (left < AT_END_PX) following.current = true;
      hold();
      last = box.scrollTop;
      away.value = left > 300;
      if (box.scrollTop < NEAR_TOP_PX && !following.current) thread.loadOlder().catch(() => {});
    };
    const grown = new ResizeObserver(() => {
      if (following.current) toEnd();
    });
    box.addEventListener("scroll", onScroll, { passive: true });
    grown.observe(box);
    const watch = new MutationObserver(() => {
      for (const child of box.children) grown.observe(child);
    });
    watch.observe(box, { childList: true });
    for (const child of box.children) grown.observe(child);
    return () => {
      box.removeEventListener("scroll", onScroll);
      grown.disconnect();
      watch.disconnect();
    };
  }, [thread, thread.failed.value]);
  // Loading messages above keeps the distance to the end.
  const first = thread.messages.value?.[0]?.id;
  if (column.current && before.current?.first !== first)
    before.current = {
      first,
      fromEnd: column.current.scrollHeight - column.current.scrollTop,
      was: before.current?.first,
    };
  useLayoutEffect(() => {
    const box = column.current;
    if (!box) return;
    if (following.current) toEnd();
    else if (before.current?.was && thread.messages.peek().some(({ id }) => id === before.current.was))
      box.scrollTop = box.scrollHeight - before.current.fromEnd;
  }, [first]);
  useEffect(() => highlightFound(column.current, thread), [thread.messages.value, search.value]);
  return useMemo(
    () => ({
      away,
      follow() {
        following.current = true;
        hold();
        queueMicrotask(toEnd);
        requestAnimationFrame(toEnd);
      },
      async show(messageId) {
        following.current = false;
        hold();
        if (!(await thread.loadBackTo(messageId).catch(() => false))) return;
        const message = () => column.current?.querySelector(`[data-id="${CSS.escape(messageId)}"]`);
        // Twice, because off-screen content gets its real size only after the first scroll.
        requestAnimationFrame(() => {
          message()?.scrollIntoView({ block: "center" });
          requestAnimationFrame(() => message()?.scrollIntoView({ block: "center" }));
        });
      },
    }),
    [thread],
  );
}

/** Highlight the searched words, also in content that is drawn later. */
function highlightFound(box, thread) {
  if (!globalThis.Highlight || !box) return undefined;
  CSS.highlights.delete("found");
  const words = search.peek().toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length || !thread.messages.peek()?.length) return undefined;
  let timer = 0;
  const drawn = new MutationObserver(() => {
    timer ||= setTimeout(() => {
      timer = 0;
      mark(box, words);
    }, MARKED_EVERY_MS);
  });
  drawn.observe(box, { childList: true, subtree: true });
  mark(box, words);
  return () => {
    clearTimeout(timer);
    drawn.disconnect();
    CSS.highlights.delete("found");
  };
}

function mark(box, words) {
  const ranges = [],
    walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < 1000; node = walker.nextNode()) {
    const text = /** @type {Text} */ (node).data.toLowerCase();
    for (const word of words) {
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        if (at > 0 && /[\p{L}\p{N}]/u.test(text[at - 1])) continue;
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
        ranges.push(range);
      }
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}
