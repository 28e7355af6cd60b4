// The sentences for errors in the page's language, loaded with the first error. English pages show the
// service's own messages.
import { signal } from "@preact/signals";
import { LANGUAGE } from "./texts/locale.js";

/** Errors whose messages say more than a sentence can, such as the words of a model server. */
const DETAILED = new Set(
  "invalid_value unsupported_value missing_field upstream_error upstream_invalid_response".split(" "),
);
const sentences = signal(/** @type {Record<string, string>} */ (null));
let loading = null;

/** Load the sentences once. */
export async function loadSentences() {
  if (LANGUAGE === "en" || sentences.peek()) return;
  loading ??= import("./texts/en/errors.js");
  try {
    sentences.value = (await loading).errors;
  } catch {
    loading = null; // offline: the messages are shown
  }
}

/** The sentence for an error of the service, or its message until the sentences are loaded. */
export function sentenceOf({ code, message }) {
  const known = sentences.value;
  if (!known) loadSentences();
  return known && Object.hasOwn(known, code) ? known[code] : message;
}

/** What the service says in English beside the sentence, or null. */
export const detailOf = ({ code, message, detail = message }) =>
  LANGUAGE !== "en" && DETAILED.has(code) ? detail : null;
