// Support: the conversation with the operator, for pro accounts. New answers appear automatically.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { api } from "../api.js";
import {
  Button,
  confirm,
  Empty,
  Failed,
  Field,
  List,
  Loading,
  Notice,
  Page,
  Resource,
  Time,
  toast,
} from "../components.js";
import { html } from "../html.js";
import { limits } from "../limits.js";
import { go, link } from "../router.js";
import { pagedList, remembered, wallet } from "../state.js";
import { texts } from "../texts.js";

const t = texts.support;
const LOOK_AGAIN_MS = 5000;
const conversations = pagedList((after) => api.support.list({ limit: 50, after }));
const draft = remembered("support-draft", "");

export default function Support({ path }) {
  return html`<${Page} title=${texts.views.support} intro=${t.intro}>
    <${Resource} of=${wallet}>
      ${(account) =>
        account.tier !== "pro"
          ? html`<${Empty} icon="support" title=${t.pro} text=${t.proText}>
            <${Button} kind="primary" href=${link("wallet")}>${texts.common.toWallet}<//>
          <//>`
          : path[0]
            ? html`<${Conversation} key=${path[0]} id=${path[0]} />`
            : html`<${Desk} />`}
    <//>
  <//>`;
}

function Desk() {
  useEffect(() => {
    conversations.reload();
  }, []);
  const active = conversations.items.value?.find(({ status }) => status === "active");
  return html`
    ${
      active
        ? html`<${Notice}
          kind="info"
          icon="support"
          action=${html`<${Button} small href=${link("support", active.id)}>${t.open}<//>`}
        >${t.oneActive}<//>`
        : conversations.items.value && html`<${Begin} />`
    }
    <h2>${t.earlier}</h2>
    <${List} of=${conversations} empty=${html`<p class="quiet">${t.none}</p>`}>
      ${(one) => html`<li key=${one.id}>
        <a class="grow item-link" href=${link("support", one.id)}>
          <p class="item-title">${one.subject || t.untitled}</p>
          <p class="quiet small">${t.statuses[one.status]} · <${Time} at=${one.updated_at} /></p>
        </a>
      </li>`}
    <//>
  `;
}

function Begin() {
  const busy = useSignal(false),
    error = useSignal(null);
  const begin = async (event) => {
    event.preventDefault();
    const given = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(event.target)));
    const { subject, message } = given;
    [busy.value, error.value] = [true, null];
    try {
      const made = await api.support.create({ message, ...(subject.trim() && { subject: subject.trim() }) });
      draft.value = "";
      conversations.put(made);
      go(link("support", made.id));
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  return html`<form class="card stack" onSubmit=${begin}>
    <${Field} label=${t.subject} name="subject" maxlength=${limits.support.subject.maxlength} />
    <${Field}
      label=${t.message}
      name="message"
      rows="5"
      required
      maxlength=${limits.support.message.maxlength}
      value=${draft.value}
      onInput=${(event) => {
        draft.value = event.currentTarget.value;
      }}
    />
    ${error.value && html`<${Failed} error=${error.value} />`}
    <div class="actions"><${Button} kind="primary" type="submit" busy=${busy.value}>${t.send}<//></div>
  </form>`;
}

function Conversation({ id }) {
  const whole = useSignal(/** @type {Api.SupportConversationWithMessages} */ (undefined)),
    error = useSignal(null);
  const load = async () => {
    try {
      [whole.value, error.value] = [await api.support.show(id), null];
    } catch (problem) {
      error.value = problem;
    }
  };
  useEffect(() => {
    load();
    // A hidden page does not poll; it polls when it is shown again.
    const look = () => {
      if (!document.hidden && whole.peek()?.status !== "closed") load();
    };
    const timer = setInterval(look, LOOK_AGAIN_MS);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, []);
  if (whole.value === undefined)
    return error.value ? html`<${Failed} error=${error.value} retry=${load} />` : html`<${Loading} />`;
  const { subject, status, messages } = whole.value;
  const close = async () => {
    if (!(await confirm({ title: t.closeTitle, text: t.closeText, action: t.close }))) return;
    try {
      await api.support.close(id);
      await load();
    } catch (problem) {
      toast(problem.message, { kind: "bad" });
    }
  };
  return html`
    <div class="section-head">
      <div>
        <p class="back"><a href=${link("support")}>${t.back}</a></p><h2>${subject || t.untitled}</h2>
        <p class="quiet small">${t.statuses[status]}</p>
      </div>
      ${status === "active" && html`<${Button} small onClick=${close}>${t.close}<//>`}
    </div>
    ${error.value && html`<${Failed} error=${error.value} retry=${load} />`}
    <ol class="desk-messages" aria-live="polite" aria-label=${t.messages}>
      ${messages.map(
        (message) => html`<li key=${message.id} class="desk-message desk-message-${message.role}">
          <p class="quiet small">${t.roles[message.role]} · <${Time} at=${message.created_at} /></p>
          <p class="plain-text">${message.content}</p>
        </li>`,
      )}
    </ol>
    ${
      status === "active"
        ? html`<${Answer} id=${id} onSent=${load} />`
        : html`<p class="quiet">${t.closed}</p>`
    }
  `;
}

function Answer({ id, onSent }) {
  const busy = useSignal(false),
    error = useSignal(null),
    form = useRef(null);
  const send = async (event) => {
    event.preventDefault();
    [busy.value, error.value] = [true, null];
    try {
      await api.support.addMessage(id, draft.peek());
      draft.value = "";
      await onSent();
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  const onKey = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.current.requestSubmit();
  };
  return html`<form class="stack" ref=${form} onSubmit=${send} onKeyDown=${onKey}>
    <${Field}
      label=${t.message}
      rows="3"
      required
      maxlength=${limits.support.message.maxlength}
      value=${draft.value}
      onInput=${(event) => {
        draft.value = event.currentTarget.value;
      }}
    />
    ${error.value && html`<${Failed} error=${error.value} />`}
    <div class="actions">
      <${Button} kind="primary" type="submit" icon="send" busy=${busy.value}>${t.send}<//>
    </div>
  </form>`;
}
