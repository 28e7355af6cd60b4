import { limits } from "../../limits.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  support: {
    intro: "Write to the operator of this service. You can have one open conversation.",
    pro: "Support is part of Pro",
    proText: `Add $${limits.least_dollars} or more to your wallet to get Pro.`,
    oneActive: "You have an open conversation.",
    open: "Open it",
    earlier: "Conversations",
    none: "No conversations yet.",
    untitled: "No subject",
    statuses: { active: "Open", closed: "Closed" },
    subject: "Subject (optional)",
    message: "Message",
    messages: "Messages",
    send: "Send",
    back: "All conversations",
    roles: { user: "You", operator: "Operator" },
    close: "Close conversation",
    closeTitle: "Close this conversation?",
    closeText: "You can still read it and start a new one.",
    closed: "This conversation is closed.",
  },
};
