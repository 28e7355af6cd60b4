// A chat without messages: a greeting, suggestions for the model, and how to connect a model server.
import { session } from "./api.js";
import { Button } from "./components.js";
import { html } from "./html.js";
import { chosenModel, isBuiltin } from "./model-picker.js";
import { link } from "./router.js";
import { models, modelsOf, settings } from "./state.js";
import { texts } from "./texts.js";

const t = texts.chat;

/** Suggestions for the model of the next chat, or none before it is known. */
function suggestions() {
  const model = chosenModel.value ?? settings.data.value?.chat_model;
  if (!model) return [];
  const [kind] = isBuiltin(model) ? model.slice("builtin/".length).split("-") : [];
  return t.suggestions[kind] ?? t.suggestions.other;
}

/** Links to connect a model server, if only the built-in models are there. */
function Connect() {
  if (!models.data.value || modelsOf("chat").some(({ id }) => !isBuiltin(id))) return null;
  if (settings.data.value?.own_providers_enabled === false) return null;
  const choices = { ...texts.providers.programs, own: texts.providers.own };
  return html`<section class="card connect" aria-label=${t.connectTitle}>
    <p class="item-title">${t.connectTitle}</p>
    <p class="quiet small">${t.connectText}</p>
    <div class="actions">
      ${Object.entries(choices).map(
        ([connect, label]) => html`<${Button} small href=${link("providers", { connect })}>${label}<//>`,
      )}
    </div>
  </section>`;
}

export function Welcome({ onSend }) {
  const { name } = session.value.user;
  const isKnown = (of) => of.data.value !== undefined || of.error.value;
  if (!isKnown(models) || !isKnown(settings)) return null; // what comes later would push the greeting
  return html`<div class="greeting">
    <p class="greeting-title">${name ? t.greetingTo(name) : t.greeting}</p>
    <ul class="suggestions">
      ${suggestions().map(
        (text) => html`<li>
        <button type="button" onClick=${() => onSend({ text })}>${text}</button>
      </li>`,
      )}
    </ul>
    <${Connect} />
  </div>`;
}
