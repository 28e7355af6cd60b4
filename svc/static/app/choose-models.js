// The choice of one to three models that answer a question, with what all of them cost together.
import { useSignal } from "@preact/signals";
import { Button, Dialog, Field } from "./components.js";
import { Estimate } from "./estimate.js";
import { modelName, price } from "./format.js";
import { html } from "./html.js";
import { isBuiltin } from "./model-picker.js";
import { modelsOf } from "./state.js";
import { texts } from "./texts/en/compare.js";

const t = texts.compare;
export const MOST = 3;
const SEARCHED_FROM = 8; // models

/**
 * `opened`: a signal of `{message}`, the answer that is given again, or `{}` for the next question; null to
 * close. `onChoose(models, message)`.
 */
export default function ChooseModels({ opened, thread, onChoose }) {
  const { message } = opened.value,
    chosen = useSignal([]),
    query = useSignal(""),
    isEmpty = useSignal(false);
  const close = () => {
    opened.value = null;
  };
  const all = modelsOf("chat") ?? [],
    sorted = [...all.filter(({ id }) => !isBuiltin(id)), ...all.filter(({ id }) => isBuiltin(id))];
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean),
    shown = sorted.filter(({ id }) => words.every((word) => id.toLowerCase().includes(word)));
  const submit = (event) => {
    event.preventDefault();
    isEmpty.value = !chosen.value.length;
    if (isEmpty.value) return;
    onChoose(chosen.value, message);
    close();
  };
  const pick = (id, isOn) => {
    isEmpty.value = false;
    chosen.value = isOn ? [...chosen.value, id] : chosen.value.filter((one) => one !== id);
  };
  return html`<${Dialog} title=${message ? t.again : t.next} onClose=${close}>
    <form class="stack" onSubmit=${submit}>
      <p class="quiet">${t.hint(MOST)} ${!message && t.hintNext}</p>
      ${
        all.length >= SEARCHED_FROM &&
        html`<${Field}
          label=${t.search}
          hideLabel
          type="search"
          placeholder=${t.search}
          value=${query.value}
          onInput=${(event) => {
            query.value = event.currentTarget.value;
          }}
        />`
      }
      <div class="model-choice" role="group" aria-label=${texts.models.choose}>
        ${shown.map(
          (model) => html`<${Choice} key=${model.id} ...${{ model, chosen: chosen.value, pick }} />`,
        )}
        ${!shown.length && html`<p class="quiet" role="status">${t.none}</p>`}
      </div>
      ${message && html`<${Cost} thread=${thread} message=${message} models=${chosen.value} />`}
      ${isEmpty.value && html`<p class="field-error" role="alert">${t.choose}</p>`}
      <div class="actions dialog-foot">
        <${Button} onClick=${close}>${texts.common.cancel}<//>
        <${Button} kind="primary" type="submit">${(message ? t.ask : t.use)(chosen.value.length)}<//>
      </div>
    </form>
  <//>`;
}

function Choice({ model, chosen, pick }) {
  const isChosen = chosen.includes(model.id);
  return html`<label class="check">
    <input
      type="checkbox"
      checked=${isChosen}
      disabled=${!isChosen && chosen.length >= MOST}
      onChange=${(event) => pick(model.id, event.currentTarget.checked)}
    />
    <span class="grow">${modelName(model.id)}</span>
    <span class="quiet small">${model.byok ? texts.models.byok : (price(model) ?? texts.models.free)}</span>
  </label>`;
}

/** What the answers cost: the question and the messages before it are sent to each model. */
function Cost({ thread, message, models }) {
  const messages = thread.messages.value ?? [],
    at = messages.findLastIndex(({ role }, place) => role === "user" && place < messages.indexOf(message));
  if (at < 0 || !models.length) return null;
  return html`<${Estimate}
    id="estimate-all"
    modelIds=${models}
    messages=${messages.slice(0, at)}
    conversation=${thread.conversation.value}
    draft=${messages[at].content}
    pictures=${0}
  />`;
}
