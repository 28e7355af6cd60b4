// The list of conversations: pinned ones first, then the latest, with search, projects, and their actions.
import { effect, signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { api } from "./api.js";
import { Failed, Loading, Menu, toast } from "./components.js";
import { keepDraft } from "./drafts.js";
import { html } from "./html.js";
import { Lazy } from "./lazy.js";
import { limits } from "./limits.js";
import { go, link, route } from "./router.js";
import { settings as account, pagedList, projects, remembered } from "./state.js";
import { texts } from "./texts.js";

const t = texts.conversations;
const SEARCH_AFTER_MS = 180;
const ANSWERING_AGAIN_MS = 4_000;
const MOST_ANSWERING = 8; // conversations that are asked for
const DAY_MS = 24 * 3600 * 1000;

/** The conversation whose settings are open, or null. */
const opened = signal(/** @type {Api.Conversation} */ (null));
const settings = () => import("./chat-settings.js"); // loaded when they are first used
/** The conversation that is being shared, or null. */
const sharing = signal(/** @type {Api.Conversation} */ (null));

export const search = signal("");
/** The conversation that was last renamed or moved here. */
export const changed = signal(/** @type {Api.Conversation} */ (null));
const projectId = signal("");
// Ids that are hidden before and after their deletion
const deleted = remembered("deleted", [], sessionStorage);
const list = pagedList((after) =>
  api.conversations.list({
    q: search.peek().trim().slice(0, 500),
    project_id: projectId.peek(),
    limit: 40,
    after,
  }),
);

/** Move a new or used conversation to the top of the list. */
export function used(conversation) {
  if (search.peek() || (projectId.peek() && projectId.peek() !== conversation.project_id)) return;
  const rest = (list.items.peek() ?? []).filter(({ id }) => id !== conversation.id);
  const above = conversation.pinned ? 0 : rest.filter(({ pinned }) => pinned).length;
  list.items.value = rest.toSpliced(above, 0, conversation);
}

const ended = (conversation) => !conversation.answering && list.put(conversation);

/** Remove a conversation that was not used. */
export const unused = (id) => list.drop(id);

/** Reload the list if it is shown. */
export function listAgain() {
  if (list.items.peek()) list.reload();
}

export const focusSearch = () => document.getElementById("conversation-search")?.focus();

/** A text of a search's `matches`, with the found words in <mark> elements. */
const marked = ({ parts }) => parts.map(({ text, found }) => (found ? html`<mark>${text}</mark>` : text));

async function change(conversation, changes) {
  try {
    changed.value = await api.conversations.change(conversation.id, changes);
    list.put(changed.value);
  } catch (error) {
    toast(error.message, { kind: "bad" });
  }
}

function rename(conversation, title) {
  if (!title.trim() || title === conversation.title) return;
  change(conversation, { title: title.trim().slice(0, limits.conversation.title.maxlength) });
}

const moveTo = (conversation, project_id) => change(conversation, { project_id });

async function pin(conversation, pinned) {
  await change(conversation, { pinned });
  list.reload();
}

const hide = (id) => {
  deleted.value = [...deleted.peek(), id];
};
const unhide = (id) => {
  deleted.value = deleted.peek().filter((one) => one !== id);
};

const pending = new Set(); // ids of deletions that can be undone
let leaving = false;
addEventListener("pageshow", () => {
  leaving = false;
});
addEventListener("pagehide", () => {
  leaving = true;
  for (const id of pending) deleteNow(id);
});

async function deleteNow(id) {
  pending.delete(id);
  try {
    await api.conversations.remove(id, { keepalive: true }); // continues after the page is closed
  } catch (error) {
    if (leaving) return; // this page is closing; the next one sees the result
    if (error.status !== 404) {
      unhide(id);
      toast(error.message, { kind: "bad" });
      return;
    }
  }
  keepDraft(id, "");
  list.drop(id);
}

/** Hide a conversation at once, and delete it when the undo period is over. */
function removeLater({ id, title }) {
  hide(id);
  pending.add(id);
  const isOpen = (shownId) => route.peek().name === "chat" && route.peek().path[0] === shownId;
  const wasOpen = isOpen(id);
  if (wasOpen) go(link("chat"));
  toast(t.deleted(title ?? t.untitled), {
    action: {
      label: texts.common.undo,
      onSelect() {
        pending.delete(id);
        unhide(id);
        if (wasOpen && isOpen(undefined)) go(link("chat", id));
      },
    },
    onGone() {
      if (pending.has(id)) deleteNow(id);
    },
  });
}

// Deletions of the previous page: the list may still contain them, and offline they never reached the
// service.
const left = new Set(deleted.peek());
effect(() => {
  for (const { id } of list.items.value ?? []) if (left.delete(id)) deleteNow(id);
});

function groupOf(conversation, now) {
  if (conversation.pinned) return t.pinned;
  const midnight = new Date(now).setHours(0, 0, 0, 0),
    at = new Date(conversation.updated_at).getTime();
  if (at >= midnight) return t.today;
  if (at >= midnight - DAY_MS) return t.yesterday;
  if (at >= midnight - 7 * DAY_MS) return t.week;
  if (at >= midnight - 30 * DAY_MS) return t.month;
  return t.earlier;
}

export function Conversations({ onChoose }) {
  const timer = useRef(null);
  useEffect(() => {
    list.ensure();
    projects.ensure();
  }, []);
  const look = (text) => {
    search.value = text;
    clearTimeout(timer.current);
    timer.current = setTimeout(list.reload, text ? SEARCH_AFTER_MS : 0);
  };
  const choices = [["", t.all], ...(projects.data.value ?? []).map(({ id, name }) => [id, name])].map(
    ([id, label]) => ({
      label,
      checked: projectId.value === id,
      onSelect() {
        projectId.value = id;
        list.reload();
      },
    }),
  );
  const onKey = (event) => {
    if (event.key === "Escape") {
      look("");
      event.currentTarget.blur();
    }
    if (event.key === "Enter" && shown()?.length) {
      /** @type {HTMLElement} */ (document.querySelector(".conversation a")).click();
    }
  };
  return html`<section class="conversations" aria-label=${t.title} onKeyDown=${moveFocus}>
    <div class="conversation-search">
      <input
        id="conversation-search"
        class="input"
        type="search"
        placeholder=${t.search}
        aria-label=${t.search}
        maxlength=${limits.search.maxlength}
        autocomplete="off"
        spellcheck="false"
        value=${search.value}
        onInput=${(event) => look(event.currentTarget.value)}
        onKeyDown=${onKey}
      />
      ${
        choices.length > 1 &&
        html`<${Menu}
          label=${t.byProject}
          icon="folder"
          items=${choices}
          class=${projectId.value ? "menu-on" : ""}
        />`
      }
    </div>
    <${Entries} onChoose=${onChoose} />
    ${
      opened.value &&
      html`<${Lazy} name="chat-settings" from=${settings} opened=${opened} onSaved=${(conversation) => {
        changed.value = conversation;
        list.put(conversation);
      }} />`
    }
    ${sharing.value && html`<${Lazy} name="share" from=${() => import("./share.js")} opened=${sharing} />`}
  </section>`;
}

/** Move the focus between the search and the conversations with the arrow keys. */
function moveFocus(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const stops = /** @type {HTMLElement[]} */ ([
    ...event.currentTarget.querySelectorAll("#conversation-search, .conversation > a"),
  ]);
  const to = stops[stops.indexOf(event.target) + step];
  if (!step || !stops.includes(event.target) || !to) return;
  event.preventDefault();
  to.focus();
}

const shown = () => list.items.value?.filter(({ id }) => !deleted.value.includes(id));

function Entries({ onChoose }) {
  const items = shown(),
    error = list.error.value,
    box = useRef(null);
  useEffect(() => {
    // The end of an answer that no tab of this browser reads
    const busy = (items ?? []).filter(({ answering }) => answering).slice(0, MOST_ANSWERING);
    if (!busy.length) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) for (const { id } of busy) api.conversations.show(id).then(ended, () => {});
    }, ANSWERING_AGAIN_MS);
    return () => clearInterval(timer);
  }, [list.items.value]);
  if (!items) return error ? html`<${Failed} error=${error} retry=${list.reload} />` : html`<${Loading} />`;
  if (!items.length && !error) {
    return html`<p class="quiet conversations-none" role="status">
      ${search.value || projectId.value ? t.nothingFound : t.none}
    </p>`;
  }
  const nearEnd = () => {
    const { scrollTop, clientHeight, scrollHeight } = box.current;
    if (scrollHeight - scrollTop - clientHeight < 400) list.loadMore();
  };
  const groups = Map.groupBy(items, (item) => (search.value ? t.found : groupOf(item, Date.now())));
  return html`<div class="conversation-list" ref=${box} onScroll=${nearEnd}>
    ${[...groups].map(
      ([name, entries]) => html`<h2 class="group">${name}</h2>
      <ul>${entries.map((item) => html`<${Entry} key=${item.id} item=${item} onChoose=${onChoose} />`)}</ul>`,
    )}
    ${
      error
        ? html`<${Failed} error=${error} retry=${items.length ? list.loadMore : list.reload} />`
        : list.busy.value && html`<${Loading} />`
    }
  </div>`;
}

function Entry({ item, onChoose }) {
  const renaming = useSignal(false),
    box = useRef(null);
  const here = route.value.name === "chat" && route.value.path[0] === item.id;
  const title = item.title ?? t.untitled;
  if (renaming.value) {
    const end = (event, keeps) => {
      if (!renaming.peek()) return;
      renaming.value = false;
      if (event.type === "keydown") setTimeout(() => box.current?.querySelector("a").focus());
      if (keeps) rename(item, event.currentTarget.value);
    };
    return html`<li class="conversation" ref=${box}>
      <input
        class="input"
        aria-label=${t.newTitle}
        defaultValue=${item.title ?? ""}
        maxlength=${limits.conversation.title.maxlength}
        ref=${(input) => input?.select()}
        onBlur=${(event) => end(event, true)}
        onKeyDown=${(event) => {
          if (event.key === "Enter") end(event, true);
          if (event.key === "Escape") {
            event.stopPropagation();
            end(event, false);
          }
        }}
      />
    </li>`;
  }
  const filed = projects.data.value?.filter(({ id }) => id !== item.project_id) ?? [];
  const actions = [
    {
      label: texts.common.rename,
      icon: "edit",
      onSelect: () => {
        renaming.value = true;
      },
    },
    {
      label: item.pinned ? t.unpin : t.pin,
      icon: "pin",
      onSelect: () => pin(item, !item.pinned),
    },
    {
      label: t.settings,
      icon: "settings",
      onSelect: () => {
        opened.value = item;
      },
    },
    {
      label: t.exportIt,
      icon: "download",
      onSelect: async () => {
        try {
          await (await settings()).saveConversation(item);
        } catch (error) {
          toast(error.status ? error.message : texts.common.viewFailed, { kind: "bad" });
        }
      },
    },
    account.data.value?.sharing_enabled && {
      label: t.share,
      icon: "external",
      onSelect: () => {
        sharing.value = item;
      },
    },
    ...filed
      .slice(0, 8)
      .map(({ id, name }) => ({ label: t.moveTo(name), icon: "folder", onSelect: () => moveTo(item, id) })),
    item.project_id && { label: t.takeOut, icon: "folder", onSelect: () => moveTo(item, null) },
    { label: texts.common.delete, icon: "trash", danger: true, onSelect: () => removeLater(item) },
  ];
  const inTitle = item.matches?.find(({ message_id: id }) => id === null),
    inMessage = item.matches?.find(({ message_id: id }) => id);
  const address = inMessage
    ? link("chat", item.id, { message: inMessage.message_id })
    : link("chat", item.id);
  return html`<li class="conversation ${here ? "here" : ""}" ref=${box}>
    <a
      href=${address}
      aria-current=${here ? "page" : undefined}
      title=${title}
      onClick=${onChoose}
      onDblClick=${() => {
        renaming.value = true;
      }}
    >
      ${item.answering && html`<span class="answering" role="img" aria-label=${t.answering}></span>`}
      <span dir="auto">${inTitle ? marked(inTitle) : title}</span>
      ${inMessage && html`<span class="snippet">${marked(inMessage)}</span>`}
    </a>
    <${Menu} label=${t.actions(title)} items=${actions} />
  </li>`;
}
