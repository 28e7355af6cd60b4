// The messages of a conversation, in groups that are laid out only while they are near the screen.
import { Component } from "preact";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { html } from "./html.js";
import { Lazy } from "./lazy.js";
import { FarMessage, Message, remsOf } from "./message.js";
import { whenVisible } from "./viewport.js";

const GROUP = 12;
const AT_ONCE = 3; // messages at the end; other visible messages follow within a few frames

const keyOf = (message) => message.key ?? message.id;

/** Split `messages` into groups. A group that starts at one of `starts` (keys) never changes its start. */
function grouped(messages, starts) {
  const groups = [];
  for (const message of messages) {
    if (!groups.length || groups.at(-1).length >= GROUP || starts.has(keyOf(message))) groups.push([]);
    groups.at(-1).push(message);
  }
  return groups;
}

/**
 * `editing`: the id of the edited message, or null; `canEdit`, `canRetry`; `hasPictures`: whether the last
 * question has images; `actions`: as of Message; `thread`: whose messages they are, for the line
 * where the view of the model begins.
 */
export default function Messages({ messages, starts, editing, ...rest }) {
  const viewed = messages.findLast(
    ({ first_sent_message_id: id, role }) => role === "assistant" && id !== undefined,
  )?.first_sent_message_id;
  const groups = grouped(messages, starts);
  return groups.map(
    (group, at) => html`<${Group} key=${keyOf(group[0])} group=${group} isLast=${at === groups.length - 1}
    editing=${group.some(({ id }) => id === editing) ? editing : null}
    viewed=${group.some(({ id }) => id === viewed) ? viewed : null} ...${rest} />`,
  );
}

/** Drawn again only if one of its messages or actions has changed. */
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

function Shown({ group, isLast, editing, viewed, canEdit, canRetry, hasPictures, actions, thread }) {
  const visible = useSignal(isLast),
    box = useRef(null);
  useEffect(
    () =>
      visible.peek()
        ? undefined
        : whenVisible(box.current, () => {
            visible.value = true;
          }),
    [],
  );
  const rems = group.reduce((sum, message) => sum + remsOf(message), 0);
  const style = { containIntrinsicBlockSize: `auto ${rems.toFixed(1)}rem` };
  if (!visible.value)
    return html`<div class="message-group" style=${style} ref=${box}>
      ${group.map((message) => html`<${FarMessage} key=${keyOf(message)} message=${message} />`)}
    </div>`;
  const last = isLast ? group.at(-1) : null;
  return html`<div class=${isLast ? "message-group last" : "message-group"} style=${style} ref=${box}>
    ${group.map(
      (message, at) => html`${
        message.id === viewed &&
        html`<${Lazy}
          name="view-line"
          from=${() => import("./view-line.js")}
          thread=${thread}
          message=${message}
        />`
      }<${Message}
        key=${keyOf(message)}
        message=${message}
        actions=${actions}
        canEdit=${canEdit}
        editing=${message.id === editing}
        visible=${isLast && at >= group.length - AT_ONCE}
        isLast=${message === last}
        canRetry=${canRetry && message === last}
        hasPictures=${hasPictures && message === last}
      />`,
    )}
  </div>`;
}
