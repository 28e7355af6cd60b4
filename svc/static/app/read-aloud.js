// The button that reads an answer aloud.
import { signal } from "@preact/signals";
import { wasAborted } from "./api.js";
import { IconButton, toast } from "./components.js";
import { cost } from "./format.js";
import { html } from "./html.js";
import { go, link } from "./router.js";
import { modelsOf, remembered, wallet } from "./state.js";
import { texts } from "./texts.js";

const t = texts.chat;
const VOICE = "builtin/voice";
const TOKENS_PER_CHARACTER = 2; // 4,096 audio tokens are about 400 words

/** What was chosen for speech in "Images and audio". */
export const speech = remembered("media-sound", {
  text: "",
  voice: "alloy",
  speed: 1,
  cap: 4096,
  model: null,
});
/** `{id, stop: AbortController}` of the message that is read, or null. */
const reading = signal(null);

async function start(id, text) {
  const stop = new AbortController(),
    { voice, speed } = speech.peek();
  reading.peek()?.stop.abort();
  reading.value = { id, stop };
  try {
    const { read } = await import("./reader.js"); // loaded when it is first used
    const tokens = (TOKENS_PER_CHARACTER * 2) / speed; // of a character, twice what is usual
    await read(text, { model: VOICE, voice, speed }, tokens, stop.signal);
  } catch (error) {
    const action = error.status === 402 && {
      label: texts.common.toWallet,
      onSelect: () => go(link("wallet")),
    };
    const message = error instanceof TypeError ? texts.common.viewFailed : error.message;
    if (!wasAborted(error)) toast(message, { kind: "bad", ...(action && { action }) });
  }
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
    onClick=${() => start(id, text)}
  />`;
}
