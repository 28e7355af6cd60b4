// Versions of an answer side by side, also while models still write them, and the choice of one to go on
// with.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { SourceList, Steps } from "./answer-tools.js";
import { api } from "./api.js";
import { Button, Dialog, Failed, Loading, toast } from "./components.js";
import { modelName } from "./format.js";
import { html } from "./html.js";
import { Sources } from "./links.js";
import { Markdown } from "./markdown.js";
import { Facts } from "./message-foot.js";
import { texts } from "./texts/en/compare.js";

const t = texts.compare;
const MOST = 4; // the newest versions

/** `opened`: a signal of `{message}`, or `{}` for the answers that are being written; null to close. */
export default function Compare({ opened, thread }) {
  const stored = useSignal(/** @type {Api.Message[]} */ ([])),
    error = useSignal(null);
  const live = thread.live.value,
    last = (thread.messages.value ?? []).at(-1),
    message = opened.value.message ?? (!live && last?.role === "assistant" ? last : null);
  const load = async () => {
    try {
      const { data } = await api.conversations.versions(thread.id, message.id, { limit: MOST });
      [stored.value, error.value] = [data.reverse(), null];
    } catch (problem) {
      error.value = problem;
    }
  };
  useEffect(() => {
    if (message && !message.isLocal) load();
  }, [message?.id]);
  const close = () => {
    opened.value = null;
  };
  const take = async (id) => {
    try {
      if (id !== message?.id) await thread.showVersion(id);
      close();
    } catch (problem) {
      toast(problem.message, { kind: "bad" });
    }
  };
  const later = thread.next.value.slice(live ? 1 : 0);
  const isOver = !live && !later.length;
  return html`<${Dialog} wide class="compare-dialog" title=${t.title} onClose=${close}>
    ${error.value && html`<${Failed} error=${error.value} retry=${load} />`}
    ${thread.problem.value && html`<${Failed} manual error=${thread.problem.value.error} />`}
    <div class="compare" tabindex="0" role="group" aria-label=${t.title}>
      ${stored.value.map(
        (one) => html`<${Column} key=${one.id} model=${one.model}>
          <${Version} of=${one} />
          <div class="actions">
            ${
              isOver &&
              html`<${Button} small kind=${one.id === message?.id ? "primary" : "plain"}
                onClick=${() => take(one.id)}>${t.take}<//>`
            }
          </div>
        <//>`,
      )}
      ${live && html`<${Column} key="live" model=${live.model.value}><${Growing} live=${live} /><//>`}
      ${later.map(
        (model, place) => html`<${Column} key=${`later-${place}`} model=${model}>
          <p class="quiet">${t.later}</p>
        <//>`,
      )}
    </div>
    <p class="quiet small">${t.kept}</p>
  <//>`;
}

const Column = ({ model, children }) => html`<section class="compared" aria-label=${model ?? t.title}>
  <h3>${model ? modelName(model) : texts.models.standard}</h3>
  ${children}
</section>`;

function Version({ of }) {
  const { content, status, error, steps, sources } = of;
  return html`<div class="compared-text" tabindex="0" role="group" aria-label=${of.model ?? t.title}>
      <${Steps} steps=${steps} isLive=${false} isWaiting=${status === "waiting"} />
      <${Sources.Provider} value=${sources}><${Markdown} text=${content} /><//>
      <${SourceList} text=${content} sources=${sources} />
      ${status === "failed" && html`<p class="ending">${error?.message ?? t.failed}</p>`}
      ${texts.chat.endings[status] && html`<p class="ending">${texts.chat.endings[status]}</p>`}
    </div>
    <${Facts} message=${of} />`;
}

function Growing({ live }) {
  return html`<div class="compared-text" tabindex="0" role="group" aria-label=${t.writing} aria-busy="true">
    ${
      live.text.value.trim()
        ? html`<${Markdown} text=${live.text} />`
        : html`<${Loading} label=${t.writing} />`
    }
  </div>`;
}
