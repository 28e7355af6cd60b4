// Messages of a conversation: new ones, changed ones, and the earlier ones that are sent to the model.
import { split } from "./content.js";
import { pictureParts } from "./pictures.js";

const MOST_CHARACTERS = 5_000_000; // of earlier messages: a request has 16 MiB, and no model reads more

/** Whether a message is sent to the model. */
export const isSent = ({ role, content, unkept }) => role !== "system" && !unkept && content.trim() !== "";

/** Whether no further message is loaded. The service leaves out what the model cannot read. */
export const isFull = (messages) =>
  messages.reduce((sum, { content }) => sum + content.length, 0) >= MOST_CHARACTERS;

/** Return messages in the format of the chat interface, with their images. */
export const inChatFormat = (messages) =>
  Promise.all(messages.map(async ({ role, content }) => ({ role, content: await pictureParts(content) })));

/** Return messages of which no answer waits for an approval: the next question refuses it. */
export const withoutWaiting = (messages) =>
  messages.map((message) => (message.status === "waiting" ? { ...message, status: "complete" } : message));

/** The title of a conversation that begins with this content, or null. */
export function titleOf(content) {
  const { text, files } = split(content);
  return (text || files[0]?.name || "").replace(/\s+/g, " ").trim().slice(0, 80) || null;
}

/** A question that the service has not stored yet. */
export function newQuestion(content, pictures) {
  const id = `new-${Date.now()}`;
  const created_at = new Date().toISOString();
  return { id, key: id, role: "user", content, pictures, created_at, versions: [], unkept: true };
}

/** Return `known`, so that it is not drawn again, unless `message` differs. */
export function sameOr(known, message) {
  const facts = ({ content, status, versions, steps }) =>
    JSON.stringify([content.length, status, versions, steps?.length]);
  if (!known) return message;
  return facts(known) === facts(message) ? known : { ...message, key: known.key };
}
