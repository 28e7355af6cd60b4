// The reader of an answer: its text without code, in pieces that are spoken one after the other. It is
// loaded when it is first used.
import { api } from "./api.js";
import { blocksOf } from "./syntax.js";
import { texts } from "./texts.js";

const t = texts.chat;
const PIECE = 600; // characters: half a minute of speech
const SILENT = new Set(["code", "html", "space", "def", "hr", "formula", "image", "reference", "footnote"]);

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

/**
 * Read an answer aloud, to its end or until `stop`. `tokens` are the most audio tokens of a character.
 */
export async function read(text, voice, tokens, stop) {
  const player = new Audio(),
    pieces = piecesOf(text);
  const speak = (input) => {
    const tts_max_tokens = Math.max(512, Math.ceil(input.length * tokens));
    return api.media.speak({ input, ...voice, tts_max_tokens }, { signal: stop });
  };
  try {
    for (let at = 0, next = speak(pieces[0]); at < pieces.length; at++) {
      const { blob } = await next;
      if (at + 1 < pieces.length) next = speak(pieces[at + 1]);
      next.catch(() => {}); // told when its turn comes
      await play(player, blob, stop);
    }
  } finally {
    player.pause();
  }
}
