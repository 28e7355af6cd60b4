// Chat: the messages of one conversation, and the composer below. The column never moves while a person
// reads.
import { effect, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { api } from "../api.js";
import { Composer, focusComposer, sendDraft } from "../composer.js";
import { Button, Empty, Failed, IconButton, Loading, Menu, toast } from "../components.js";
import { used } from "../conversation-list.js";
import { TEMPORARY, draftOf } from "../drafts.js";
import { html } from "../html.js";
import { Lazy } from "../lazy.js";
import Messages from "../messages.js";
import { ModelPicker, PICKER_ID, chosenModel, compared } from "../model-picker.js";
import { Queue, enqueue } from "../queue.js";
import { useReadingPlace } from "../reading-place.js";
import { go, link, route } from "../router.js";
import { projects } from "../state.js";
import { texts } from "../texts.js";
import { threadOf } from "../thread.js";
import { Welcome } from "../welcome.js";

const t = texts.chat;
const REFUSED = [400, 404, 415, 422]; // statuses of model servers for unsupported input

export default function Chat({ path: [id], query }) {
  const thread = useRef(null);
  if (id === TEMPORARY)
    return html`<${Lazy}
      name="temporary"
      from=${() => import("../temporary.js")}
      Conversation=${Conversation}
    />`;
  if (!thread.current || (thread.current.address.peek() ?? undefined) !== id) thread.current = threadOf(id);
  return html`<${Conversation}
    key=${thread.current.key}
    thread=${thread.current}
    projectId=${query.project_id}
    messageId=${query.message}
  />`;
}

/** `forget` and `foot`: of a temporary chat. */
function Conversation({ thread, projectId, messageId, forget, foot }) {
  const editing = useSignal(null),
    filedUnder = useSignal(projectId ?? null),
    choosing = useSignal(null), // choose-models.js
    comparing = useSignal(null), // compare.js
    column = useRef(null),
    retries = useRef(0);
  useEffect(() => {
    if (thread.id) thread.load();
  }, [thread]);
  const messages = thread.messages.value,
    live = thread.live.value,
    problem = thread.problem.value;
  const scroll = useReadingPlace(column, thread);
  const send = async (what) => {
    scroll.follow();
    const models = forget ? [] : compared.peek(),
      question = { ...what, projectId: filedUnder.peek() };
    if (models.length < 2) return thread.send({ ...question, model: chosenModel.peek() });
    [compared.value, comparing.value] = [[], {}];
    thread.ask(question, models);
  };
  /** Take the choice of models: for another answer, or for the next question. */
  const choose = (models, message) => {
    if (!message) {
      if (models.length < 2) chosenModel.value = models[0];
      compared.value = models.length < 2 ? [] : models;
      return focusComposer();
    }
    scroll.follow();
    if (models.length > 1) comparing.value = {};
    thread.retry(models, message);
  };
  useEffect(() => followAddress(thread), [thread]);
  useRefresh(thread);
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
        thread.retry([chosenModel.peek()]);
      },
      ...(!forget && {
        again(message) {
          scroll.follow();
          thread.retry([chosenModel.peek()], message);
        },
        others(message) {
          choosing.value = { message };
        },
        compare(message) {
          comparing.value = { message };
        },
        async fork({ id }) {
          try {
            const made = await api.conversations.fork(thread.id, id);
            used(made);
            go(link("chat", made.id));
          } catch (error) {
            toast(error.message, { kind: "bad" });
          }
        },
      }),
      goOn() {
        send({ text: t.continueText });
      },
      async approve(message, calls, always) {
        scroll.follow();
        if (matchMedia("(hover: hover)").matches) focusComposer(); // the decision, which has the focus, goes
        await thread.approve(message, calls, always).catch((error) => toast(error.message, { kind: "bad" }));
      },
      show(id) {
        thread.showVersion(id).catch((error) => toast(error.message, { kind: "bad" }));
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
  const stop = () => thread.stop().catch((error) => toast(error.message, { kind: "bad" }));
  useKeys({ stop, busy: live !== null });
  if (thread.failed.value)
    return html`<div class="page">
      <${Failed} error=${thread.failed.value.status === 404 ? { message: t.gone } : thread.failed.value}
      retry=${thread.failed.value.status === 404 ? null : () => thread.load()}>
        <a href=${link("chat")}>${texts.shell.newChat}</a>
      <//>
    </div>`;
  const said = live ? [...messages, live.message] : messages;
  const isNew = messages?.length === 0 && !live && !problem;
  return html`<div class="chat ${isNew ? "chat-new" : ""} ${forget ? "chat-temporary" : ""}">
    <${Head} ...${{ thread, filedUnder, isNew, forget, choosing }} />
    <div class="chat-scroll" ref=${column} tabindex="0" role="region" aria-label=${t.messages}>
      ${
        messages === undefined
          ? html`<${Loading} />`
          : isNew
            ? (
                thread.id
                  ? html`<${Empty} icon="chat" title=${forget ? t.temporary : t.empty} />`
                  : html`<${Welcome} onSend=${send} />`
              )
            : html`<div class="column" role="log" aria-live="off">
              <${Older} thread=${thread} />
              <${Messages}
                messages=${said}
                starts=${thread.starts}
                actions=${actions}
                thread=${thread}
                editing=${editing.value}
                canEdit=${!live}
                canRetry=${!live && said.some(({ role }) => role === "user")}
                hasPictures=${said.findLast(({ role }) => role === "user")?.content.includes("](/artifacts/")}
              />
              ${
                problem &&
                html`<${Failed}
                  error=${problem.error}
                  retries=${retries}
                  mayRetry=${() => !problem.draft || problem.draft === draftOf(thread.address.peek())}
                  retry=${() => {
                    scroll.follow();
                    if (problem.again) problem.again();
                    else sendDraft();
                  }}
                >
                  ${
                    problem.hasPictures &&
                    REFUSED.includes(problem.error.status) &&
                    html`<p>${t.noPictures}</p>`
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
      ${foot}
      <${Queue} thread=${thread} busy=${live !== null} />
      <${Composer}
        id=${thread.address.value}
        busy=${live !== null}
        priced=${{
          modelIds: compared.value.length && !forget ? compared.value : [chosenModel.value],
          messages,
          conversation: thread.conversation.value,
          projectId: filedUnder.value,
        }}
        onSend=${(what) => send({ ...what, isDraft: true })}
        onQueue=${(content) => enqueue(thread, { content, model: chosenModel.peek() })}
        onStop=${stop}
        onEditLast=${editLast}
      />
    </div>
    <${Spoken} thread=${thread} />
    ${
      choosing.value &&
      html`<${Lazy} name="choose-models" from=${() => import("../choose-models.js")}
        opened=${choosing} thread=${thread} onChoose=${choose} />`
    }
    ${
      comparing.value &&
      html`<${Lazy} name="compare" from=${() => import("../compare.js")}
        opened=${comparing} thread=${thread} />`
    }
  </div>`;
}

/** The button for older messages. It alone is drawn again while they load. */
function Older({ thread }) {
  const load = () => thread.loadOlder().catch((error) => toast(error.message, { kind: "bad" }));
  if (!thread.older.value) return null;
  return html`<div class="more">
    ${
      thread.loading.value
        ? html`<${Loading} label=${t.loadingOlder} />`
        : html`<${Button} small onClick=${load}>${t.older}<//>`
    }
  </div>`;
}

/** Put the id of the conversation into the address, or take it out if the first question was refused. */
function followAddress(thread) {
  return effect(() => {
    const id = thread.address.value;
    const { name, path } = route.peek();
    if (name !== "chat" || (path[0] ?? null) === id || (path[0] && id)) return;
    go(id ? link("chat", id) : link("chat"), { replace: true });
  });
}

/** Show what other devices have written when the page is seen again. */
function useRefresh(thread) {
  useEffect(() => {
    const refresh = () => {
      if (!document.hidden) thread.refresh();
    };
    addEventListener("online", refresh);
    document.addEventListener("visibilitychange", refresh);
    return () => {
      removeEventListener("online", refresh);
      document.removeEventListener("visibilitychange", refresh);
    };
  }, [thread]);
}

function Head({ thread, filedUnder, isNew, forget, choosing }) {
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
        [chosenModel.value, compared.value] = [id, []];
        focusComposer();
      }}
      several=${forget ? 0 : compared.value.length}
      onCompare=${
        !forget &&
        (() => {
          choosing.value = {};
        })
      }
    />
    ${
      (forget || (isNew && !thread.id)) &&
      html`<button
        type="button"
        class="picker-button quiet temporary"
        aria-pressed=${String(Boolean(forget))}
        onClick=${() => {
          forget?.();
          go(forget ? link("chat") : link("chat", TEMPORARY));
        }}
      >${t.temporary}</button>`
    }
    ${
      all.length > 0 &&
      !forget &&
      html`<${Menu}
        label=${t.project}
        items=${choices}
        trigger=${(toggle) => html`<button type="button" class="picker-button quiet" ...${toggle}>
        <span>${project ? t.inProject(project.name) : t.noProject}</span></button>`}
      />`
    }
  </header>`;
}

/** Announce the start of an answer and the complete answer to screen readers, but not each word. */
function Spoken({ thread }) {
  const said = useSignal(""),
    was = useRef(null);
  const live = thread.live.value;
  useEffect(() => {
    if (live) said.value = t.writing;
    else if (was.current && thread.problem.peek()) said.value = "";
    else if (was.current) {
      const { content = "", status } = thread.messages.peek().at(-1) ?? {};
      const more = status === "waiting" ? t.waiting : t.endings[status];
      said.value = [content.slice(0, 2_000), more].filter(Boolean).join("\n") || t.done;
    }
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
