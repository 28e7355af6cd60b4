// Settings of one conversation: temperature and the limit of its answers. Its export as Markdown.
import { useSignal } from "@preact/signals";
import { api } from "./api.js";
import { Button, Dialog, Failed, Field } from "./components.js";
import { saveFile } from "./files.js";
import { html } from "./html.js";
import { limits } from "./limits.js";
import { texts } from "./texts/en/chat-settings.js";

const t = texts.conversations;
/** Save a conversation as a Markdown file. */
export async function saveConversation({ id, title }) {
  const name = (title ?? t.untitled).replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
  saveFile(await api.conversations.exported(id), `${name || "conversation"}.md`);
}

const numberOf = (text) => (text === "" ? null : Number(text));

/** `opened` is a signal of the conversation, null to close. `onSaved` gets the changed conversation. */
export default function ChatSettings({ opened, onSaved }) {
  const conversation = opened.value,
    busy = useSignal(false),
    error = useSignal(null);
  const close = () => {
    opened.value = null;
  };
  const save = async (event) => {
    event.preventDefault();
    const { temperature, length } = /** @type {Record<string, string>} */ (
      Object.fromEntries(new FormData(event.target))
    );
    [busy.value, error.value] = [true, null];
    try {
      const changes = { temperature: numberOf(temperature), max_output_tokens: numberOf(length) };
      onSaved(await api.conversations.change(conversation.id, changes));
      close();
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  return html`<${Dialog} title=${t.settings} onClose=${close}>
    <form class="stack" onSubmit=${save}>
      <${Field}
        label=${t.temperature}
        hint=${t.temperatureHint}
        name="temperature"
        type="number"
        step="any"
        inputmode="decimal"
        ...${limits.conversation.temperature}
        defaultValue=${conversation.temperature ?? ""}
        error=${error.value?.param === "temperature" ? error.value.message : null}
      />
      <${Field}
        label=${t.maxOutput}
        hint=${t.maxOutputHint}
        name="length"
        type="number"
        inputmode="numeric"
        ...${limits.conversation.max_output_tokens}
        defaultValue=${conversation.max_output_tokens ?? ""}
        error=${error.value?.param === "max_output_tokens" ? error.value.message : null}
      />
      ${error.value && !error.value.param && html`<${Failed} manual error=${error.value} />`}
      <div class="actions dialog-foot">
        <${Button} onClick=${close}>${texts.common.cancel}<//>
        <${Button} kind="primary" type="submit" busy=${busy.value}>${texts.common.save}<//>
      </div>
    </form>
  <//>`;
}
