// English texts of shared conversations.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

const share = {
  dialog: "Share conversation",
  about:
    "Anyone with the link can read a copy of the conversation as it is now. " +
    "Later messages are not added to it.",
  has:
    "The copy has the title, the questions with the text of attached files, " +
    "and the answers with their pictures.",
  hasNot:
    "It does not have your name, your instructions, recalled passages, reasoning, what tools did, " +
    "or pictures that you attached.",
  ends: "The link works for",
  days: (n) => (n ? count(n, "day", "days") : "No time limit"),
  create: "Create link",
  link: "Link",
  copy: "Copy link",
  once: "Copy the link now. It is not shown again.",
  list: "Manage shared links",
  intro:
    "Each link shows a copy of a conversation to everyone who has it. " +
    "The links themselves are not stored, so they cannot be shown again.",
  none: "You have not shared a conversation.",
  sharedOn: (day) => `Shared on ${day}`,
  endsOn: (day) => `ends on ${day}`,
  endless: "no time limit",
  end: "End link",
  endTitle: "End this link?",
  endText: "It opens for no one any more, and the copy is deleted. Your conversation stays.",
  ended: "The link no longer works.",
  untitled: "Untitled",
  readOnly: (day) => `A copy of ${day}. It cannot be changed.`,
  gone: "This conversation is not shared. The link may have expired, or its owner has ended it.",
  goOn: "Continue in my account",
  signIn: "Sign in to continue",
  you: "Question",
  assistant: "Answer",
  picture: "Picture of the answer",
  cut: "This answer is not complete.",
};

export const texts = { ...first, share };
