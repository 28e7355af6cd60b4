// Read an answer aloud: its text without code, in pieces that are spoken one after the other.
import { signal } from "@preact/signals";
import { api, wasAborted } from "./api.js";
import { IconButton, toast } from "./components.js";
import { cost } from "./format.js";
import { html } from "./html.js";
import { go, link } from "./router.js";
import { modelsOf, remembered, wallet } from "./state.js";
import { blocksOf } from "./syntax.js";
import { texts } from "./texts.js";

const t = texts.chat;
const VOICE = "builtin/voice";
const PIECE = 600; // characters: half a minute of speech
const TOKENS_PER_CHARACTER = 2; // 4,096 audio tokens are about 400 words
const SILENT = new Set(["code", "html", "space", "def", "hr", "formula", "image", "reference", "footnote"]);

/** What was chosen for speech in "Images and audio". */
export const speech = remembered("media-sound", {
  text: "",
  voice: "alloy",
  speed: 1,
  cap: 4096,
  model: null,
});
const reading = signal(null); // {id, stop: AbortController, begun} of the message that is read

/** Return the words of Markdown, with an empty line after each block. */
function wordsOf(tokens) {
  return tokens
    .map((token) => {
      if (SILENT.has(token.type)) return "";
      if (token.type === "table") return wordsOf([token.header, ...token.rows].flat());
      const words = token.items || token.tokens ? wordsOf(token.items ?? token.tokens) : (token.text ?? " ");
      return /^(?:paragraph|heading|list_item)$/.test(token.type) ? `${words}\n\n` : words;
    })
    .join("");
}

/** Split a text at the ends of paragraphs and sentences. */
export function piecesOf(text) {
  const pieces = [""];
  for (const part of wordsOf(blocksOf(text)).match(/[\s\S]{1,600}(?:\n\n|[.!?:]\s|$)|[\s\S]{1,600}/g) ?? [])
    if (pieces.at(-1).length + part.length <= PIECE) pieces[pieces.length - 1] += part;
    else pieces.push(part);
  return pieces.map((piece) => piece.trim()).filter(Boolean);
}

const speak = (input, abort) =>
  api.media.speak(
    {
      input,
      model: VOICE,
      voice: speech.peek().voice,
      speed: speech.peek().speed,
      tts_max_tokens: Math.max(
        512,
        Math.ceil((input.length * 2 * TOKENS_PER_CHARACTER) / speech.peek().speed),
      ),
    },
    { signal: abort },
  );

/** Play a piece to its end, or until `abort`. */
function play(player, blob, abort) {
  const url = URL.createObjectURL(blob);
  return new Promise((resolve, reject) => {
    abort.addEventListener("abort", () => reject(abort.reason), { once: true });
    player.onended = resolve;
    player.onerror = () => reject(new Error(t.cannotRead));
    player.src = url;
    player.play().catch(reject);
  }).finally(() => URL.revokeObjectURL(url));
}

async function read(id, text) {
  const stop = new AbortController(),
    player = new Audio(),
    pieces = piecesOf(text);
  reading.peek()?.stop.abort();
  reading.value = { id, stop };
  try {
    for (let at = 0, next = speak(pieces[0], stop.signal); at < pieces.length; at++) {
      const { blob } = await next;
      if (at + 1 < pieces.length) next = speak(pieces[at + 1], stop.signal);
      next.catch(() => {}); // told when its turn comes
      await play(player, blob, stop.signal);
    }
  } catch (error) {
    const action = error.status === 402 && {
      label: texts.common.toWallet,
      onSelect: () => go(link("wallet")),
    };
    if (!wasAborted(error)) toast(error.message, { kind: "bad", ...(action && { action }) });
  }
  player.pause();
  if (reading.peek()?.stop === stop) reading.value = null;
  wallet.reload();
}

/** A button at an answer, if this service can speak. */
export function ReadAloud({ id, text }) {
  const model = modelsOf("speech")?.find((one) => one.id === VOICE);
  if (!model || !text.trim()) return null;
  if (reading.value?.id === id)
    return html`<${IconButton}
      icon="stop"
      size=${18}
      label=${t.stopReading}
      onClick=${() => reading.peek().stop.abort(new DOMException("", "AbortError"))}
    />`;
  const each = model.pricing?.micros_per_thousand_audio_tokens ?? 0;
  const price = Math.round((text.length * TOKENS_PER_CHARACTER * each) / 1000 / 1000) * 1000;
  return html`<${IconButton}
    icon="sound"
    size=${18}
    label=${each ? t.readFor(cost(Math.max(1000, price))) : t.read}
    onClick=${() => read(id, text)}
  />`;
}
