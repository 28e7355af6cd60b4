// The foot of a message: its versions, what else can be done with it, and the facts of an answer.
import { IconButton, Menu, Money, Time } from "./components.js";
import { cost as dollars, duration, modelName } from "./format.js";
import { html } from "./html.js";
import { texts } from "./texts.js";

const t = texts.chat;

/** Which version of a message is shown, with arrows to the others. */
export function Versions({ message: { id, versions = [], role }, actions, disabled }) {
  if (versions.length < 2) return null;
  const at = versions.indexOf(id),
    names = t.versions[role];
  const arrow = (to, label, extra) => html`<${IconButton}
    icon="back"
    size=${16}
    class=${extra}
    label=${label}
    disabled=${disabled || !versions[to]}
    onClick=${() => actions.show(versions[to])}
  />`;
  return html`<div class="versions" role="group" aria-label=${names.group}>
    ${arrow(at - 1, names.previous, "")}
    <span class="money">
      <span class="hidden-text">${t.versions.shown(at + 1, versions.length)}</span>
      <span aria-hidden="true">${at + 1} / ${versions.length}</span>
    </span>
    ${arrow(at + 1, names.next, "turned")}
  </div>`;
}

/** What else can be done with an answer. */
export const More = ({ message, actions }) => html`<${Menu}
  label=${t.moreActions}
  items=${[
    { label: t.againWith, icon: "retry", onSelect: () => actions.others(message) },
    message.versions?.length > 1 && {
      label: t.compare,
      icon: "eye",
      onSelect: () => actions.compare(message),
    },
    { label: t.fork, icon: "chat", onSelect: () => actions.fork(message) },
  ]}
/>`;

/** The model, tokens, cost and duration of an answer. */
export function Facts({ message: { model, answer, created_at: at } }) {
  const { input_tokens: input, output_tokens: output, cost_micros: cost, duration_ms: time } = answer ?? {};
  const { cached_input_tokens: cached, saved_micros: saved } = answer ?? {};
  const facts = [
    model && html`<span class="fact-model">${modelName(model)}</span>`,
    output !== undefined &&
      output !== null &&
      input + output > 0 &&
      html`<span title=${t.tokensInOut(input, output, cached)}>${t.tokens(input + output)}</span>`,
    cost !== undefined &&
      cost !== null &&
      input + output > 0 &&
      (cost ? html`<${Money} micros=${cost} />` : html`<span>${texts.common.free}</span>`),
    cached > 0 && html`<span>${t.cached(Math.round((100 * cached) / input), saved && dollars(saved))}</span>`,
    time > 0 && html`<span>${duration(time)}</span>`,
    !answer && html`<${Time} at=${at} />`,
  ].filter(Boolean);
  return html`<p class="facts">${facts}</p>`;
}
