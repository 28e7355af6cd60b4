// Share a conversation by link: what the copy has, how long the link works, and the link, which is shown
// once.
import { useSignal } from "@preact/signals";
import { api } from "./api.js";
import { Button, CopyButton, Dialog, Failed, Field } from "./components.js";
import { html } from "./html.js";
import { link } from "./router.js";
import { texts } from "./texts/en/share.js";

const t = texts.share;
const DAYS = [1, 7, 30, 0];

/** `opened` is a signal of the conversation, null to close. */
export default function Share({ opened }) {
  const made = useSignal(null),
    busy = useSignal(false),
    error = useSignal(null);
  const close = () => {
    opened.value = null;
  };
  const create = async (event) => {
    event.preventDefault();
    const days = Number(event.target.elements.days.value) || null;
    [busy.value, error.value] = [true, null];
    try {
      made.value = await api.conversations.share(opened.peek().id, { expires_days: days });
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  const list = html`<${Button} kind="quiet" href=${link("shares")} onClick=${close}>${t.list}<//>`;
  if (made.value)
    return html`<${Dialog} title=${t.dialog} onClose=${close} footer=${list}>
      <${Field}
        label=${t.link}
        hint=${t.once}
        type="url"
        readonly
        value=${made.value.url}
        onFocus=${(event) => event.currentTarget.select()}
      />
      <div class="actions"><${CopyButton} withLabel text=${made.value.url} label=${t.copy} /></div>
    <//>`;
  return html`<${Dialog} title=${t.dialog} onClose=${close}>
    <form class="stack" onSubmit=${create}>
      <p>${t.about}</p>
      <p>${t.has}</p>
      <p>${t.hasNot}</p>
      <${Field}
        label=${t.ends}
        name="days"
        defaultValue="7"
        options=${DAYS.map((days) => [String(days), t.days(days)])}
      />
      ${error.value && html`<${Failed} manual error=${error.value} />`}
      <div class="actions dialog-foot">
        ${list}<${Button} kind="primary" type="submit" busy=${busy.value}>${t.create}<//>
      </div>
    </form>
  <//>`;
}
