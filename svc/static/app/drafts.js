// What was typed and not yet sent, kept for each conversation (`null`: the one that is not begun) until the
// person signs out.
const key = (id) => `svc.draft.${id ?? "new"}`;

export const draftOf = (id) => localStorage.getItem(key(id)) ?? "";

export function keepDraft(id, text) {
  try {
    if (text) localStorage.setItem(key(id), text);
    else localStorage.removeItem(key(id));
  } catch {
    /* a full storage keeps no draft */
  }
}

/** Puts `text` into the composer of a conversation. */
export function putDraft(id, text) {
  keepDraft(id, text);
  dispatchEvent(new CustomEvent("svc-draft", { detail: { id, text } }));
}
