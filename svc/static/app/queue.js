// The questions that are written while an answer runs. They are sent one after another when it has ended, and
// wait for a click after a failure or a reload. Tabs share them, and a lock lets one tab send each.
import { useEffect } from "preact/hooks";
import { Button, IconButton } from "./components.js";
import { split } from "./content.js";
import { draftOf, keepQueue, putDraft, queueOf } from "./drafts.js";
import { html } from "./html.js";
import { texts } from "./texts.js";

const t = texts.chat;

/** Put a question `{content, model}` into the queue of a thread. */
export const enqueue = (thread, question) => save(thread, [...queueOf(thread.id), question]);

function save(thread, questions) {
  keepQueue(thread.id, questions);
  thread.queue.value = questions;
}

/** Take a question out of the queue, or null if another tab has taken it. Without locks there is one tab. */
function take(thread, at) {
  const work = () => {
    const questions = queueOf(thread.id),
      known = JSON.stringify(thread.queue.peek()[at]);
    const found = questions.findIndex((one) => JSON.stringify(one) === known);
    const [taken = null] = found < 0 ? [] : questions.splice(found, 1);
    save(thread, questions);
    return taken;
  };
  return navigator.locks ? navigator.locks.request(`svc.queue.${thread.id}`, work) : work();
}

const refresh = (thread) => {
  thread.queue.value = queueOf(thread.id);
};

/** Send the first question of the queue, if there is one. */
export async function sendNext(thread) {
  refresh(thread);
  const next = await take(thread, 0);
  if (next) await thread.send({ text: next.content, model: next.model });
}

async function edit(thread, at) {
  const taken = await take(thread, at);
  if (taken) putDraft(thread.id, [taken.content, draftOf(thread.id)].filter(Boolean).join("\n\n"));
}

export function Queue({ thread, busy }) {
  useEffect(() => {
    const onStorage = () => thread.id && refresh(thread); // another tab has changed it
    addEventListener("storage", onStorage);
    return () => removeEventListener("storage", onStorage);
  }, [thread]);
  const questions = thread.queue.value;
  if (!questions.length) return null;
  return html`<ol class="queue" aria-label=${t.queued}>
    ${questions.map(({ content }, at) => {
      const { text, files, images } = split(content);
      const shown = text || [...files, ...images].map(({ name }) => name).join(", ");
      return html`<li key=${at}>
        <span class="queued" dir="auto">${shown}</span>
        ${!busy && at === 0 && html`<${Button} small onClick=${() => sendNext(thread)}>${t.sendNow}<//>`}
        <${IconButton} icon="edit" size=${16} label=${t.editQueued} onClick=${() => edit(thread, at)} />
        <${IconButton} icon="close" size=${16} label=${t.dropQueued} onClick=${() => take(thread, at)} />
      </li>`;
    })}
  </ol>`;
}
