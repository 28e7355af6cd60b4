// Drafts for each conversation (`null`: a new one), kept until sign-out. A draft is a message's content; its
// attached files are stored apart, so that typing does not store them again.
const key = (id) => `svc.draft.${id ?? "new"}`;
const filesKey = (id) => `svc.files.${id ?? "new"}`;
/** In place of an id: the temporary chat, of which the browser stores nothing. */
export const TEMPORARY = "temporary";
const unstored = new Map(); // its drafts
const read = (name) => unstored.get(name) ?? localStorage.getItem(name) ?? "";

export const draftOf = (id) => [read(key(id)), read(filesKey(id))].filter(Boolean).join("\n\n");
export const keepText = (id, text) => store(key(id), text);
export const keepFiles = (id, content) => store(filesKey(id), content);

const queueKey = (id) => `svc.queue.${id}`;
/** The questions that wait for the end of an answer, `{content, model}`. */
export const queueOf = (id) => JSON.parse(read(queueKey(id)) || "[]");
export const keepQueue = (id, questions) =>
  store(queueKey(id), questions.length ? JSON.stringify(questions) : "");

/** Replace the draft. */
export function keepDraft(id, content) {
  keepText(id, content);
  keepFiles(id, "");
}

function store(name, text) {
  if (name.endsWith(`.${TEMPORARY}`)) {
    unstored.set(name, text);
    return;
  }
  try {
    if (text) localStorage.setItem(name, text);
    else localStorage.removeItem(name);
  } catch {
    /* a full storage keeps no draft */
  }
}

/** Put a message's content, and `pictures` that are not stored, into the composer of a conversation. */
export function putDraft(id, content, { pictures = [] } = {}) {
  keepDraft(id, content);
  dispatchEvent(new CustomEvent("svc-draft", { detail: { id, content, pictures } }));
}
