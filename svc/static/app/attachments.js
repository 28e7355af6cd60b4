// Attachments of a message before it is sent: images, text files, and PDFs, whose text the service reads.
import { api, wasAborted } from "./api.js";
import { toast } from "./components.js";
import { contentOf, split } from "./content.js";
import { number } from "./format.js";
import { TYPES, picture, storedPicture } from "./pictures.js";
import { attachmentTexts as t } from "./texts/en/attachments.js";
import { temporaryTexts } from "./texts/en/views.js";

const MOST_PICTURES = 4;
const MOST_FILES = 10;
const MOST_CHARACTERS = 300_000; // of all files of a message: about 75,000 tokens
const MOST_FILE_BYTES = 4 * MOST_CHARACTERS;
const TEXT_NAME = /\.(?:csv|html?|ini|json|log|md|sql|srt|tex|tsv|txt|xml|ya?ml)$/i;

const isPdf = ({ name, type }) => type === "application/pdf" || /\.pdf$/i.test(name);
const filesOf = (items) => items.filter(({ kind }) => kind === "file");
export const picturesOf = (items) => items.filter(({ kind }) => kind === "picture");

/** The content of a message with its attached files; the images follow when they are stored. */
export const withFiles = (text, items) => contentOf(text, filesOf(items));

/** The content of a message with all its attachments. Stores the images that are not stored yet. */
export async function withAll(text, items) {
  for (const item of picturesOf(items)) item.id ??= (await item.store()).id;
  return contentOf(text, filesOf(items), picturesOf(items));
}

/** What a draft keeps of its attachments: the files, and the images that are stored. */
export const kept = (items) =>
  contentOf(
    "",
    filesOf(items),
    picturesOf(items).filter(({ id }) => id),
  );

/**
 * Attach `files` to `attached`, a signal of items: `{kind: "picture", name, url, store()}`,
 * `{kind: "file", name, size, text}`, or `{kind: "reading", name, size}` while it is read. Refusals are
 * shown as toasts. `onlyTexts`: images and PDFs are refused, since they become artifacts.
 */
export async function attach(files, attached, onlyTexts = false) {
  for (const file of files) {
    const isText = !TYPES.includes(file.type) && !isPdf(file);
    const refusal =
      onlyTexts && !isText
        ? temporaryTexts.files
        : await (TYPES.includes(file.type) ? addPicture : addFile)(file, attached);
    if (refusal) toast(refusal, { kind: "bad", seconds: 8 });
  }
  await Promise.allSettled(picturesOf(attached.peek()).map(storeEarly));
}

/**
 * Store an image before its message is sent, so that the draft keeps it. What fails is tried again when it is
 * sent.
 */
async function storeEarly(item) {
  item.id ??= (await item.store()).id;
  if (item.isRemoved) deleteStored(item);
}

const add = (attached, item) => {
  attached.value = [...attached.peek(), item];
};

/** Replace an item that may have been removed meanwhile. */
const replace = (attached, old, item) => {
  attached.value = attached.peek().flatMap((one) => (one !== old ? [one] : item ? [item] : []));
};

async function addPicture(file, attached) {
  if (picturesOf(attached.peek()).length >= MOST_PICTURES) return t.tooManyPictures(MOST_PICTURES);
  try {
    add(attached, { kind: "picture", ...(await picture(file)), isNew: true });
  } catch {
    return t.unreadable(file.name);
  }
}

async function addFile(file, attached) {
  const count = attached.peek().filter(({ kind }) => kind !== "picture").length;
  if (count >= MOST_FILES) return t.tooManyFiles(MOST_FILES);
  if (!file.size) return t.emptyFile(file.name);
  const pdf = isPdf(file);
  if (!pdf && file.size > MOST_FILE_BYTES) return t.fileTooLong(file.name, number(MOST_CHARACTERS));
  const reading = { kind: "reading", name: file.name, size: file.size, stop: new AbortController() };
  add(attached, reading);
  try {
    const read = pdf
      ? await textOfPdf(file, reading.stop.signal)
      : { text: await textOf(file), truncated: false };
    if (!attached.peek().includes(reading)) return null;
    const used = filesOf(attached.peek()).reduce((sum, { text }) => sum + text.length, 0);
    const room = MOST_CHARACTERS - used;
    const isCut = read.truncated || read.text.length > room;
    if (isCut && (!pdf || room <= 0)) throw new Error(t.fileTooLong(file.name, number(MOST_CHARACTERS)));
    const item = { kind: "file", name: file.name, size: file.size, ...read, text: read.text.slice(0, room) };
    replace(attached, reading, item);
    return isCut ? t.fileCut(file.name, number(item.text.length)) : null;
  } catch (error) {
    replace(attached, reading, null);
    return wasAborted(error) ? null : error.message;
  }
}

/** Return the text of a file. Throws an error for people if it is not a text. */
async function textOf(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const decode = (encoding) =>
    new TextDecoder(encoding, { fatal: true }).decode(bytes).replace(/\r\n?/g, "\n");
  try {
    if (bytes[0] === 0xff && bytes[1] === 0xfe) return decode("utf-16le");
    if (!bytes.includes(0)) return decode("utf-8");
  } catch {
    // Spreadsheets write CSV in this encoding.
    if (file.type.startsWith("text/") || TEXT_NAME.test(file.name)) return decode("windows-1252");
  }
  throw new Error(t.unreadable(file.name));
}

/** Store a PDF as an artifact and return its text, as the service reads it. */
async function textOfPdf(file, signal) {
  const { id } = await api.artifacts.create({
    name: file.name,
    content: "",
    content_type: "application/pdf",
  });
  try {
    await api.artifacts.replaceContent(id, file, { signal, type: "application/pdf" });
    return { ...(await api.artifacts.text(id, { signal })), id, isNew: true };
  } catch (error) {
    api.artifacts.remove(id).catch(() => {});
    if (error.status === 415) throw new Error(t.noPdf);
    if (error.code === "PAYLOAD_TOO_LARGE") throw new Error(t.fileTooLarge(file.name));
    if (error.status === 422) throw new Error(t.ofFile(file.name, error.message));
    throw error;
  }
}

/** Remove an item, and the artifact that was stored for it. */
export function detach(item, attached) {
  attached.value = attached.peek().filter((one) => one !== item);
  item.stop?.abort();
  item.isRemoved = true;
  deleteStored(item);
}

const deleteStored = ({ id, isNew }) => id && isNew && api.artifacts.remove(id).catch(() => {});

/** Return the text and the items of a message's content. Deleted images are left out. */
export async function unpacked(content) {
  const { text, files, images } = split(content);
  const pictures = await Promise.allSettled(images.map(storedPicture));
  return {
    text,
    items: [
      ...files.map((file) => ({ kind: "file", size: new Blob([file.text]).size, ...file })),
      ...pictures
        .filter((one) => one.status === "fulfilled")
        .map(({ value }) => ({ kind: "picture", ...value })),
    ],
  };
}
