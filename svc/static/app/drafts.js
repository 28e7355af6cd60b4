// Drafts for each conversation (`null`: a new one), kept until sign-out.
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

/** Put `text` into the composer of a conversation. */
export function putDraft(id, text) {
  keepDraft(id, text);
  dispatchEvent(new CustomEvent("svc-draft", { detail: { id, text } }));
}
