// What tools add to an answer. Each part is loaded when it is first shown.
import { html } from "./html.js";
import { Lazy } from "./lazy.js";

/** `steps`: of the message; `isLive`: whether the answer is in progress. */
export const Steps = (props) =>
  props.steps.length > 0 &&
  html`<${Lazy} name="steps" from=${() => import("./tools/steps.js")} ...${props} />`;

/** The calls of a `message` that waits. `onDecide(message, calls, always)`: see thread.approve. */
export const Approvals = (props) =>
  props.message.status === "waiting" &&
  html`<${Lazy} name="approvals" from=${() => import("./tools/approvals.js")} ...${props} />`;

/** The `sources` of an answer with this `text`. */
export const SourceList = (props) =>
  props.sources.length > 0 &&
  html`<${Lazy} name="sources" from=${() => import("./tools/sources.js")} ...${props} />`;
