// "Loading the model: 4 s", while the service loads the GGUF file that is to answer.
import { useSignal } from "@preact/signals";
import { api } from "./api.js";
import { html } from "./html.js";
import { usePolling } from "./polling.js";
import { settings } from "./state.js";
import { texts } from "./texts.js";

const LOCAL = "local/",
  EVERY_MS = 1000;

/** Shown below the dots of an answer without a text. `model` is null for the default model. */
export default function LoadingModel({ model }) {
  const id = model ?? settings.data.value?.chat_model;
  return id?.startsWith(LOCAL) && html`<${Loading} key=${id} id=${id} />`;
}

function Loading({ id }) {
  const since = useSignal(0),
    seconds = useSignal(0);
  usePolling(async () => {
    const { state } = await api.models.show(id).catch(() => ({ state: null }));
    since.value = state === "loading" ? since.peek() || Date.now() : 0;
    seconds.value = since.value && 1 + Math.floor((Date.now() - since.value) / 1000);
  }, EVERY_MS);
  return (
    seconds.value > 0 && html`<p class="ending" role="status">${texts.chat.loadingModel(seconds.value)}</p>`
  );
}
