// Messages of a conversation: new ones, changed ones, and the earlier ones that are sent to the model.
import { pictureParts } from "./pictures.js";

export const SENT_CHARACTERS = 400_000; // of earlier messages; older ones are not sent to the model

/** Whether a message is sent to the model. */
export const isSent = ({ role, content, unkept }) => role !== "system" && !unkept && content.trim() !== "";

export const size = (messages) => messages.reduce((sum, { content }) => sum + content.length, 0);

/** Return the latest messages that fit. */
export function latest(messages) {
  let left = SENT_CHARACTERS,
    first = messages.length;
  while (first > 0 && left - messages[first - 1].content.length > 0) left -= messages[--first].content.length;
  return messages.slice(first);
}

/** Return messages in the format of the chat interface, with their images. */
export const inChatFormat = (messages) =>
  Promise.all(messages.map(async ({ role, content }) => ({ role, content: await pictureParts(content) })));

/** A question that the service has not stored yet. */
export function newQuestion(content, pictures) {
  const id = `new-${Date.now()}`;
  const created_at = new Date().toISOString();
  return { id, key: id, role: "user", content, pictures, created_at, versions: [], unkept: true };
}

/** Return `known`, so that it is not drawn again, unless `message` differs. */
export function sameOr(known, message) {
  const facts = ({ content, status, versions }) => JSON.stringify([content.length, status, versions]);
  if (!known) return message;
  return facts(known) === facts(message) ? known : { ...message, key: known.key };
}
