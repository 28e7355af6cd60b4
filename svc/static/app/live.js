// An answer in progress: its text as signals, drawn 30 times a second.
import { batch, signal } from "@preact/signals";

const DRAWN_EVERY_MS = 32; // two frames: each draw costs the same for one token as for many
const HIDDEN_TAB_MS = 250;

/**
 * `question`: the message it answers; `stored`: the stored answer, if it is already in progress. `asked`:
 * whether the request was sent; `isOpen`: whether the service answers it.
 */
export function newLive({ model, question = null, stored = null, key = null }) {
  const live = {
    text: signal(stored?.content ?? ""),
    reasoning: signal(stored?.answer?.reasoning ?? ""),
    steps: signal(stored?.steps ?? []), // of tools
    model: signal(stored?.model ?? model),
    startedAt: stored ? Date.parse(stored.created_at) : Date.now(),
    memory: signal(stored?.answer?.memory.length ?? 0),
    isLost: signal(false), // the connection, which is tried again
    question,
    asked: Boolean(stored),
    isOpen: Boolean(stored),
    abort: new AbortController(),
    message: null,
    flush() {},
  };
  const id = stored?.id ?? `${question.id}-answer-${Date.now()}`;
  live.message = {
    id,
    key: key ?? id,
    role: "assistant",
    content: "",
    versions: stored?.versions ?? [],
    live,
  };
  return live;
}

// What a delta says, by the rules of svc/inference/answer/said.py. It may have a content and a refusal.
const textOf = ({ content, refusal }) => `${content ?? ""}${refusal ?? ""}`;
const reasoningOf = ({ reasoning_content, reasoning }) =>
  [reasoning_content, reasoning].find((value) => value && typeof value === "string") ?? "";

/** Return a function that adds a chunk. `goesOn`: after what is there, else from the beginning. */
export function writerOf(live, goesOn = false) {
  let text = goesOn ? live.text.peek() : "",
    reasoning = goesOn ? live.reasoning.peek() : "",
    steps = goesOn ? live.steps.peek() : [],
    scheduled = false;
  live.flush = () => {
    scheduled = false;
    batch(() => {
      live.text.value = text;
      live.reasoning.value = reasoning;
      live.steps.value = steps;
    });
  };
  return (chunk) => {
    live.model.value ??= chunk.model;
    const delta = chunk.choices[0]?.delta ?? {};
    text += textOf(delta);
    reasoning += reasoningOf(delta);
    if (chunk.service?.tool_call || chunk.service?.tool_result) steps = [...steps, chunk.service];
    if (scheduled) return;
    scheduled = true;
    setTimeout(live.flush, document.hidden ? HIDDEN_TAB_MS : DRAWN_EVERY_MS);
  };
}

/** The answer as it is known here, for as long as the service cannot be asked. */
export const answerOf = (live) => ({
  ...live.message,
  live: undefined,
  content: live.text.peek(),
  model: live.model.peek(),
  created_at: new Date(live.startedAt).toISOString(),
  steps: live.steps.peek(),
  status: "interrupted",
  isLocal: true,
  answer: { reasoning: live.reasoning.peek() || null, duration_ms: Date.now() - live.startedAt },
});

/**
 * Resolve after a time, or earlier when the browser is online again.
 * @returns {Promise<void>}
 */
export const sleep = (ms) =>
  new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("online", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    addEventListener("online", done);
  });
