// Support: the conversations with the operator, for pro accounts.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api } from "../api.js";
import { Button, Empty, Failed, Field, List, Notice, Page, Resource, Time } from "../components.js";
import { html } from "../html.js";
import { limits } from "../limits.js";
import { go, link } from "../router.js";
import { pagedList, remembered, wallet } from "../state.js";
import { SupportConversation } from "../support-conversation.js";
import { texts } from "../texts/en/support.js";

const t = texts.support;
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
            ? html`<${SupportConversation}
              key=${path[0]}
              id=${path[0]}
              source=${api.support}
              back=${link("support")}
              draft=${draft}
              writer="user"
              roles=${t.roles}
              closeText=${t.closeText}
            />`
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
