// Memory: the switch, what chats recall for a text, and forgotten messages.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { api } from "../api.js";
import { Button, Empty, Field, List, Page, Resource, Switch, Time, toast } from "../components.js";
import { html } from "../html.js";
import { limits } from "../limits.js";
import { link } from "../router.js";
import { pagedList, settings } from "../state.js";
import { texts } from "../texts/en/settings.js";
import { memoryTexts } from "../texts/en/views.js";

const t = memoryTexts;

export default function Memory() {
  const query = useSignal(""),
    forgotten = useSignal(false);
  const list = useMemo(() => {
    const values = { q: query.value.trim() || undefined, forgotten: forgotten.value ? "true" : undefined };
    return pagedList((after) => api.memory.list({ ...values, after }));
  }, [query.value, forgotten.value]);
  const search = (event) => {
    event.preventDefault();
    query.value = event.target.elements.q.value;
  };
  return html`<${Page} title=${texts.views.memory} intro=${t.intro}>
    <${Resource} of=${settings}>
      ${(now) => html`<div class="card"><${MemorySwitch} on=${now.memory_enabled} /></div>`}
    <//>
    <form class="card stack more-space" role="search" onSubmit=${search}>
      <${Field} label=${t.search} name="q" type="search" maxlength=${limits.memory.maxlength} />
      <${Button} type="submit" icon="search">${t.find}<//>
    </form>
    <${Switch}
      label=${t.forgotten}
      checked=${forgotten.value}
      onChange=${(on) => {
        forgotten.value = on;
      }}
    />
    <${List}
      of=${list}
      empty=${html`<${Empty} icon="memory" title=${forgotten.value ? t.noneForgotten : t.none} />`}
    >
      ${(item) => html`<${Item} key=${item.id} item=${item} list=${list} />`}
    <//>
  <//>`;
}

function MemorySwitch({ on }) {
  const change = async (enabled) => {
    try {
      settings.set(await api.user.changeSettings({ memory_enabled: enabled }));
    } catch (error) {
      toast(error.message, { kind: "bad" });
      settings.reload();
    }
  };
  return html`<${Switch}
    label=${texts.settings.memory}
    hint=${texts.settings.memoryHint}
    checked=${on}
    onChange=${change}
  />`;
}

function Item({ item, list }) {
  const attempt = async (work) => {
    try {
      await work();
      list.drop(item.id);
      return true;
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
  };
  const remember = () => attempt(() => api.memory.remember(item.id));
  const forget = async () => {
    if (!(await attempt(() => api.memory.forget(item.id)))) return;
    const undo = async () => {
      if (await remember()) list.reload();
    };
    toast(t.done, { action: { label: texts.common.undo, onSelect: undo } });
  };
  const address = item.conversation_id && link("chat", item.conversation_id, { message: item.id });
  const when = html`<${Time} at=${item.created_at} />`;
  return html`<li>
    <div class="grow">
      <p dir="auto">${item.text.length > 300 ? `${item.text.slice(0, 300)}…` : item.text}</p>
      <p class="quiet small">
        ${t.roles[item.role]} · ${address ? html`<a href=${address}>${when}</a>` : when}
      </p>
    </div>
    <${Button} onClick=${item.forgotten ? remember : forget}>${item.forgotten ? t.remember : t.forget}<//>
  </li>`;
}
