// The runs that this page started. Each keeps the events of its stream while another view is shown.
import { batch, signal } from "@preact/signals";
import { api, wasAborted } from "./api.js";
import { wallet } from "./state.js";

const live = new Map(); // run id -> {timeline, status, ...} signals
/** Incremented when lists of runs must reload. */
export const runsChanged = signal(0);

/** Return the state of a run that this page started, or undefined. */
export const liveRun = (id) => live.get(id);

/**
 * Start a run and return its id, or throw the error. `liveRun(id)` then has `timeline`: entries {kind:
 * "step" | "text" | "tool", …}; `end`: the final event or null; `lost`: whether the stream broke.
 */
export function beginRun(body) {
  return new Promise((resolve, reject) => {
    follow(body, resolve).catch(reject);
  });
}

async function follow(body, onStarted) {
  let run = null;
  try {
    for await (const event of api.agents.run(body)) {
      if (event.type === "started") {
        run = {
          id: event.run_id,
          goal: body.goal,
          started: event,
          begunAt: Date.now(),
          endedAt: null,
          timeline: signal([]),
          end: signal(null),
          lost: signal(false),
        };
        live.set(run.id, run);
        runsChanged.value++;
        onStarted(run.id);
      } else if (run) {
        take(run, event);
      }
    }
  } catch (error) {
    if (!run || wasAborted(error)) throw error;
    run.lost.value = true;
  }
  wallet.reload();
  runsChanged.value++;
}

// Text that arrives faster than the screen is painted is shown once per frame.
function take(run, event) {
  if (event.type === "delta") {
    run.unseen = (run.unseen ?? "") + event.text;
    run.frame ??= requestAnimationFrame(() => show(run));
    return;
  }
  show(run);
  batch(() => {
    run.timeline.value = withEvent(run.timeline.peek(), event);
    if (["final", "error", "stopped"].includes(event.type))
      [run.end.value, run.endedAt] = [event, Date.now()];
  });
}

/** Return the entries of a timeline with those of one more event. */
function withEvent(entries, event) {
  if (event.type === "step") return [...entries, { kind: "step", step: event.step }];
  if (event.type === "tool_call") return [...entries, { kind: "tool", ...event }];
  if (event.type === "truncated") return [...entries, { kind: "truncated" }];
  if (event.type !== "tool_result") return entries;
  return entries.map((entry) =>
    entry.kind === "tool" && entry.id === event.id ? { ...entry, ...event, done: true } : entry,
  );
}

/** Return the timeline of a run from its stored events, which have no text. */
export const timelineOf = (events) => events.reduce(withEvent, []);

function show(run) {
  if (run.frame) cancelAnimationFrame(run.frame);
  const text = run.unseen;
  [run.frame, run.unseen] = [null, ""];
  if (!text) return;
  const entries = run.timeline.peek(),
    last = entries.at(-1);
  run.timeline.value =
    last?.kind === "text"
      ? [...entries.slice(0, -1), { kind: "text", text: last.text + text }]
      : [...entries, { kind: "text", text }];
}
