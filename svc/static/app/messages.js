// The messages of a conversation, in groups that are laid out only while they are near: two thousand cost
// what a screen of them does.
import { Component } from "preact";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { html } from "./html.js";
import { FarMessage, Message, remsOf } from "./message.js";
import { whenNear } from "./near.js";

const GROUP = 12;
const AT_ONCE = 3; // messages at the end; the others that can be seen follow within a few frames

const keyOf = (message) => message.key ?? message.id;

/**
 * `messages` in groups, each an array. One that begins at one of `starts` (keys) stays as it is, whatever
 * comes before and after.
 */
function grouped(messages, starts) {
  const groups = [];
  for (const message of messages) {
    if (!groups.length || groups.at(-1).length >= GROUP || starts.has(keyOf(message))) groups.push([]);
    groups.at(-1).push(message);
  }
  return groups;
}

/**
 * `editing`: the id of the message that is edited, or null; `canEdit`, `canRetry`; `actions` as of Message.
 */
export function Messages({ messages, starts, editing, ...rest }) {
  const groups = grouped(messages, starts);
  return groups.map(
    (group, at) => html`<${Group} key=${keyOf(group[0])} group=${group} isLast=${at === groups.length - 1}
    editing=${group.some(({ id }) => id === editing) ? editing : null} ...${rest} />`,
  );
}

/** Drawn again only when one of its messages is another one, or what can be done with them has changed. */
class Group extends Component {
  shouldComponentUpdate({ group, ...next }) {
    const { group: shown, ...before } = this.props;
    return (
      group.length !== shown.length ||
      group.some((message, at) => message !== shown[at]) ||
      Object.keys(next).some((name) => next[name] !== before[name])
    );
  }

  render(props) {
    return html`<${Shown} ...${props} />`;
  }
}

function Shown({ group, isLast, editing, canEdit, canRetry, actions }) {
  const near = useSignal(isLast),
    box = useRef(null);
  useEffect(
    () =>
      near.peek()
        ? undefined
        : whenNear(box.current, () => {
            near.value = true;
          }),
    [],
  );
  const rems = group.reduce((sum, message) => sum + remsOf(message), 0);
  const style = { containIntrinsicBlockSize: `auto ${rems.toFixed(1)}rem` };
  if (!near.value)
    return html`<div class="message-group" style=${style} ref=${box}>
      ${group.map((message) => html`<${FarMessage} key=${keyOf(message)} message=${message} />`)}
    </div>`;
  const last = isLast ? group.at(-1) : null;
  return html`<div class=${isLast ? "message-group last" : "message-group"} style=${style} ref=${box}>
    ${group.map(
      (message, at) => html`<${Message}
        key=${keyOf(message)}
        message=${message}
        actions=${actions}
        canEdit=${canEdit}
        editing=${message.id === editing}
        near=${isLast && at >= group.length - AT_ONCE}
        isLast=${message === last}
        canRetry=${canRetry && message === last}
      />`,
    )}
  </div>`;
}
