// The list of conversations: pinned ones first, then the latest, with search, projects, and their actions.
import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { api } from "./api.js";
import { Failed, Loading, Menu, toast } from "./components.js";
import {
  archive,
  changed,
  deleted,
  ended,
  isArchive,
  list,
  moveTo,
  pin,
  projectId,
  removeLater,
  rename,
  search,
} from "./conversation-list.js";
import { html } from "./html.js";
import { Lazy } from "./lazy.js";
import { limits } from "./limits.js";
import { link, route } from "./router.js";
import { settings as account, projects } from "./state.js";
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
const selecting = signal(false);

export const focusSearch = () => document.getElementById("conversation-search")?.focus();

/** A text of a search's `matches`, with the found words in <mark> elements. */
const marked = ({ parts }) => parts.map(({ text, found }) => (found ? html`<mark>${text}</mark>` : text));

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
  const show = (id, archived) => () => {
    [projectId.value, isArchive.value] = [id, archived];
    list.reload();
  };
  const choices = [["", t.all], ...(projects.data.value ?? []).map(({ id, name }) => [id, name])].map(
    ([id, label]) => ({
      label,
      checked: projectId.value === id && !isArchive.value,
      onSelect: show(id, false),
    }),
  );
  choices.push({ label: t.archive, checked: isArchive.value, onSelect: show("", true) });
  const select = {
    label: t.select,
    icon: "check",
    onSelect() {
      selecting.value = true;
    },
  };
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
      <${Menu}
        label=${t.filter}
        icon="folder"
        items=${[...choices, shown()?.length > 0 && select]}
        class=${projectId.value || isArchive.value ? "menu-on" : ""}
      />
    </div>
    ${
      selecting.value
        ? html`<${Lazy}
          name="selection"
          from=${() => import("./selection.js")}
          items=${shown()}
          onEnd=${() => {
            selecting.value = false;
          }}
        />`
        : html`<${Entries} onChoose=${onChoose} />`
    }
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
      ${search.value || projectId.value || isArchive.value ? t.nothingFound : t.none}
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
    {
      label: item.archived ? t.unarchive : t.toArchive,
      icon: "archive",
      onSelect: () => archive([item], !item.archived),
    },
    { label: texts.common.delete, icon: "trash", danger: true, onSelect: () => removeLater([item]) },
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
      ${inTitle ? marked(inTitle) : title}
      ${item.archived && !isArchive.value && html` <span class="badge">${t.isArchived}</span>`}
      ${inMessage && html`<span class="snippet">${marked(inMessage)}</span>`}
    </a>
    <${Menu} label=${t.actions(title)} items=${actions} />
  </li>`;
}
