// The messages of a conversation, in sections of groups that are laid out only near the screen.
import { Component, h } from "preact";
import { html } from "./html.js";
import { Lazy } from "./lazy.js";
import { FarMessage, Message, remsOf } from "./message.js";
import { useNear } from "./viewport.js";

const GROUP = 12;
const SECTION = 5 * GROUP; // groups of a section far from the screen cost no time in a frame
const AT_ONCE = 3; // messages at the end; other visible messages follow within a few frames

const keyOf = (message) => message.key ?? message.id;

/** Split `messages` into parts. A part that starts at one of `starts` (keys) never changes its start. */
function partsOf(messages, size, starts) {
  const parts = [];
  for (const message of messages) {
    if (!parts.length || parts.at(-1).length >= size || starts?.has(keyOf(message))) parts.push([]);
    parts.at(-1).push(message);
  }
  return parts;
}

/**
 * `editing`: the id of the edited message, or null; `canEdit`, `canRetry`; `hasPictures`: whether the last
 * question has images; `actions`: as of Message; `thread`: whose messages they are, for the line
 * where the view of the model begins.
 */
export default function Messages({ messages, starts, ...rest }) {
  const viewed = messages.findLast(
    ({ first_sent_message_id: id, role }) => role === "assistant" && id !== undefined,
  )?.first_sent_message_id;
  return inParts(Section, partsOf(messages, SECTION, starts), { ...rest, viewed, isLast: true });
}

/**
 * Draw each part with `component`. It gets `editing` and `viewed` only if it has the message with this id.
 * @param {{[name: string]: any}} shared
 */
function inParts(component, parts, shared) {
  const { isLast, editing, viewed, ...rest } = shared;
  const within = (part, id) => (part.some((message) => message.id === id) ? id : null);
  return parts.map((part, at) =>
    h(component, {
      ...rest,
      key: keyOf(part[0]),
      messages: part,
      isLast: isLast && at === parts.length - 1,
      editing: within(part, editing),
      viewed: within(part, viewed),
    }),
  );
}

/** A component that is drawn again only if one of its messages or another property has changed. */
const ofMessages = (component) =>
  class extends Component {
    shouldComponentUpdate({ messages, ...next }) {
      const { messages: shown, ...before } = this.props;
      return (
        messages.length !== shown.length ||
        messages.some((message, at) => message !== shown[at]) ||
        Object.keys(next).some((name) => next[name] !== before[name])
      );
    }

    render(props) {
      return h(component, props);
    }
  };

const classOf = (name, isLast) => (isLast ? `${name} last` : name);
const heightOf = (messages) => {
  const rems = messages.reduce((sum, message) => sum + remsOf(message), 0);
  return { containIntrinsicBlockSize: `auto ${rems.toFixed(1)}rem` };
};

const Section = ofMessages(
  ({ messages, ...rest }) => html`<div
    class=${classOf("message-section", rest.isLast)}
    style=${heightOf(messages)}
  >${inParts(Group, partsOf(messages, GROUP), rest)}</div>`,
);

const Group = ofMessages(
  ({ messages, isLast, editing, viewed, canEdit, canRetry, hasPictures, actions, thread }) => {
    const { near, box } = useNear(isLast);
    const style = heightOf(messages);
    if (!near)
      return html`<div class="message-group" style=${style} ref=${box}>
      ${messages.map((message) => html`<${FarMessage} key=${keyOf(message)} message=${message} />`)}
    </div>`;
    const last = isLast ? messages.at(-1) : null;
    return html`<div class=${classOf("message-group", isLast)} style=${style} ref=${box}>
    ${messages.map(
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
        isNear=${isLast && at >= messages.length - AT_ONCE}
        isLast=${message === last}
        canRetry=${canRetry && message === last}
        hasPictures=${hasPictures && message === last}
      />`,
    )}
  </div>`;
  },
);
