// The line in a chat where the view of the model begins, and the summary of what comes before it.
import { useSignal } from "@preact/signals";
import { api } from "./api.js";
import { Button, Field, toast } from "./components.js";
import { estimate } from "./format.js";
import { html } from "./html.js";
import { limits } from "./limits.js";
import { models, wallet } from "./state.js";
import { texts } from "./texts/en/summary.js";

const t = texts.viewLine;
const SUMMARY_TOKENS = 600; // of a usual summary
const utf8 = new TextEncoder();

/** `message`: the first one that the newest answer's model got. */
export default function ViewLine({ thread, message }) {
  const busy = useSignal(false);
  const summary = thread.conversation.value?.summary;
  /** Ask for what changes the summary, and show the conversation then. */
  const change = async (ask) => {
    busy.value = true;
    try {
      await ask();
      thread.conversation.value = await api.conversations.show(thread.id);
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
    busy.value = false;
    wallet.reload();
  };
  const save = (text) => change(() => api.conversations.change(thread.id, { summary: text && { text } }));
  return html`<section class="view-line" aria-label=${t.label}>
    <p>${summary ? t.summarized : t.begins}</p>
    ${
      summary && html`<${Summary} key=${summary.text} text=${summary.text} busy=${busy.value} save=${save} />`
    }
    <p>
      <${Button} small busy=${busy.value}
        onClick=${() => change(() => api.conversations.summarize(thread.id))}>
        ${summary ? t.again : t.summarize}
      <//>
      <span class="quiet small"> ${costOf(thread, message)}</span>
    </p>
  </section>`;
}

function Summary({ text, busy, save }) {
  const written = useSignal(null); // while it is edited
  return html`<details class="fold">
    <summary>${t.summary}</summary>
    <form
      class="fold-body"
      onSubmit=${(event) => {
        event.preventDefault();
        save(written.value);
      }}
    >
      ${
        written.value === null
          ? html`<p class="plain-text" dir="auto">${text}</p>`
          : html`<${Field} label=${t.summary} hideLabel rows=${8} required
            maxlength=${limits.summary.text.maxlength}
            value=${written.value}
            onInput=${(event) => {
              written.value = event.currentTarget.value;
            }} />`
      }
      <div class="actions">
        ${
          written.value === null
            ? html`<${Button} small key="edit" onClick=${() => {
                written.value = text;
              }}>${t.edit}<//>
              <${Button} small key="remove" disabled=${busy} onClick=${() => save(null)}>${t.remove}<//>`
            : html`<${Button} small key="save" type="submit" busy=${busy}>${t.save}<//>
              <${Button} small key="cancel" onClick=${() => {
                written.value = null;
              }}>${t.cancel}<//>`
        }
      </div>
    </form>
  </details>`;
}

/** What a summary costs, about. */
function costOf(thread, message) {
  const messages = thread.messages.value ?? [];
  const name = messages.findLast(({ model }) => model)?.model;
  const model = models.data.value?.find(({ id }) => id === name);
  const { input_micros_per_million_tokens: input, output_micros_per_million_tokens: output } =
    model?.pricing ?? {};
  if (!model || model.byok || !(input || output)) return "";
  const before = messages.slice(0, messages.indexOf(message));
  const size = before.reduce((sum, { content }) => sum + utf8.encode(content).length, 0);
  const most = model.context_length ?? limits.unknown_context_tokens;
  const tokens = thread.older.value ? most : Math.min(size / limits.bytes_per_token, most);
  return t.cost(estimate(Math.ceil((tokens * input + SUMMARY_TOKENS * output) / 1_000_000)));
}
