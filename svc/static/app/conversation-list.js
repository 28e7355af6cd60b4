// The list of conversations without its elements: what it shows, and changes, deletions and the archive.
import { effect, signal } from "@preact/signals";
import { api } from "./api.js";
import { toast } from "./components.js";
import { keepDraft, keepQueue } from "./drafts.js";
import { limits } from "./limits.js";
import { go, link, route } from "./router.js";
import { pagedList, remembered } from "./state.js";
import { texts } from "./texts.js";

const t = texts.conversations;

export const search = signal("");
/** The conversation that was last renamed or moved here. */
export const changed = signal(/** @type {Api.Conversation} */ (null));
export const projectId = signal("");
/** Whether the list is that of archived conversations. */
export const isArchive = signal(false);
// Ids that are hidden before and after their deletion
export const deleted = remembered("deleted", [], sessionStorage);
export const list = pagedList((after) =>
  api.conversations.list({
    q: search.peek().trim().slice(0, 500),
    project_id: projectId.peek(),
    archived: isArchive.peek() ? "true" : null,
    limit: 40,
    after,
  }),
);

/** Move a new or used conversation to the top of the list. */
export function used(conversation) {
  if (search.peek() || (projectId.peek() && projectId.peek() !== conversation.project_id)) return;
  if (isArchive.peek()) return list.drop(conversation.id);
  const rest = (list.items.peek() ?? []).filter(({ id }) => id !== conversation.id);
  const above = conversation.pinned ? 0 : rest.filter(({ pinned }) => pinned).length;
  list.items.value = rest.toSpliced(above, 0, { ...conversation, archived: false });
}

export const ended = (conversation) => !conversation.answering && list.put(conversation);

/** Remove a conversation that was not used. */
export const unused = (id) => list.drop(id);

/** Reload the list if it is shown. */
export function listAgain() {
  if (list.items.peek()) list.reload();
}

async function change(conversation, changes) {
  try {
    changed.value = await api.conversations.change(conversation.id, changes);
    list.put(changed.value);
  } catch (error) {
    toast(error.message, { kind: "bad" });
  }
}

export function rename(conversation, title) {
  if (!title.trim() || title === conversation.title) return;
  change(conversation, { title: title.trim().slice(0, limits.conversation.title.maxlength) });
}

export const moveTo = (conversation, project_id) => change(conversation, { project_id });

export async function pin(conversation, pinned) {
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
  keepQueue(id, []);
  list.drop(id);
}

const isOpen = (id) => route.peek().name === "chat" && route.peek().path[0] === id;

/** Show a new chat if one of these conversations is open. Returns a function that shows it again. */
function leave(conversations) {
  const open = conversations.find(({ id }) => isOpen(id));
  if (open) go(link("chat"));
  return () => {
    if (open && isOpen(undefined)) go(link("chat", open.id));
  };
}

/** Hide conversations at once, and delete them, one after another, when the undo period is over. */
export function removeLater(conversations) {
  for (const { id } of conversations) {
    hide(id);
    pending.add(id);
  }
  const comeBack = leave(conversations);
  toast(t.deleted(conversations[0].title ?? t.untitled, conversations.length), {
    action: {
      label: texts.common.undo,
      onSelect() {
        for (const { id } of conversations) {
          pending.delete(id);
          unhide(id);
        }
        comeBack();
      },
    },
    async onGone() {
      for (const { id } of conversations) if (pending.has(id)) await deleteNow(id);
    },
  });
}

/** Put conversations into the archive, or take them out of it. `onSelect` of the toast undoes it. */
export async function archive(conversations, archived = true, isUndo = false) {
  const done = [];
  try {
    for (const one of conversations) {
      done.push(await api.conversations.change(one.id, { archived }));
      if (isUndo || search.peek()) list.put(done.at(-1));
      else list.drop(one.id);
    }
  } catch (error) {
    toast(error.message, { kind: "bad" });
  }
  if (isUndo) return list.reload();
  if (!done.length) return;
  const comeBack = archived ? leave(done) : () => {};
  toast((archived ? t.archived : t.unarchived)(done[0].title ?? t.untitled, done.length), {
    action: {
      label: texts.common.undo,
      onSelect() {
        archive(done, !archived, true);
        comeBack();
      },
    },
  });
}

// Deletions of the previous page: the list may still contain them, and offline they never reached the
// service.
const left = new Set(deleted.peek());
effect(() => {
  for (const { id } of list.items.value ?? []) if (left.delete(id)) deleteNow(id);
});
