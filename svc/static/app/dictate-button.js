// The microphone of the composer, where there is a model for transcriptions. The recorder is loaded when it
// is first used.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { IconButton, toast } from "./components.js";
import { clock, cost } from "./format.js";
import { html } from "./html.js";
import { go, link } from "./router.js";
import { usedModel } from "./model-picker.js";
import { wallet } from "./state.js";
import { texts } from "./texts.js";

const t = texts.dictation;

function tell(error) {
  const action = error.status === 402 && {
    label: texts.common.toWallet,
    onSelect: () => go(link("wallet")),
  };
  const message = error instanceof TypeError ? texts.common.viewFailed : error.message;
  toast(message, { kind: "bad", seconds: 10, ...(action && { action }) });
}

const running = signal(null); // a Dictation

/** End a dictation, and wait for its last words. Return whether there was one. */
export async function finishDictation() {
  const dictation = running.peek();
  dictation?.stop();
  await dictation?.ended.catch(() => {}); // the button tells the error
  return dictation !== null;
}

/** `area`: a ref of the text area that gets the words. */
export function DictateButton({ area }) {
  const model = usedModel("transcription");
  useEffect(() => () => running.peek()?.cancel(), []);
  if (!model) return null;
  const begin = async () => {
    try {
      const { Dictation } = await import("./dictation.js");
      const dictation = new Dictation(area.current, model.id);
      running.value = dictation;
      await dictation.ended;
      if (dictation.hasText)
        toast(t.done, { action: { label: texts.common.undo, onSelect: () => dictation.undo() } });
    } catch (error) {
      tell(error);
    }
    running.value = null;
    if (model.pricing?.micros_per_audio_minute) wallet.reload();
  };
  const price = model.pricing?.micros_per_audio_minute;
  const start = price ? t.startFor(cost(price)) : t.start;
  if (!running.value) return html`<${IconButton} icon="mic" label=${start} onClick=${begin} />`;
  return html`<${IconButton}
      class="dictating"
      icon="mic"
      label=${t.stop}
      aria-pressed="true"
      onClick=${() => running.peek().stop()}
    />
    <${Level} of=${running.value} />`;
}

function Level({ of }) {
  return html`<span class="dictation-level" title=${t.cancel}>
    <span class="hidden-text" role="status">${of.finishing.value ? t.finishing : t.listening}</span>
    <meter aria-hidden="true" min="0" max="1" value=${of.level.value}></meter>
    <span class="quiet small">${clock(of.seconds.value)}</span>
  </span>`;
}
