// Support: the conversations of all users, and the answers to them.
import { signal } from "@preact/signals";
import { Empty, Field, List, Time } from "../components.js";
import { html } from "../html.js";
import { usePolling } from "../polling.js";
import { link } from "../router.js";
import { pagedList, remembered } from "../state.js";
import { SupportConversation } from "../support-conversation.js";
import { texts } from "../texts/en/support.js";
import { administration } from "./api.js";
import { adminTexts } from "../texts/en/admin.js";

const t = adminTexts.support;
const PAGE = 50;
const LOOK_AGAIN_MS = 15_000;
const drafts = remembered("admin-support-drafts", {}); // by conversation
const status = signal("active");
const inbox = pagedList((after) =>
  administration.support.list({ limit: PAGE, after, status: status.peek() }),
);

export default function Inbox({ path: [id] }) {
  if (!id) return html`<${Everything} />`;
  return html`<${SupportConversation}
    key=${id}
    id=${id}
    source=${administration.support}
    back=${link("admin", "support")}
    draft=${{
      peek: () => drafts.peek()[id] ?? "",
      get value() {
        return drafts.value[id] ?? "";
      },
      set value(text) {
        const { [id]: _, ...others } = drafts.peek();
        drafts.value = text ? { ...others, [id]: text } : others;
      },
    }}
    writer="operator"
    roles=${t.roles}
    closeText=${t.closeText}
    about=${({ account_id, email }) => html`<a href=${link("admin", "users", account_id)}>${email}</a> · `}
  />`;
}

function Everything() {
  // Later pages are not loaded again.
  usePolling(inbox.reload, LOOK_AGAIN_MS, () => (inbox.items.peek()?.length ?? 0) <= PAGE);
  return html`
    <div class="filters part-intro">
      <${Field}
        label=${t.show}
        value=${status.value}
        options=${[...Object.entries(texts.support.statuses), ["", t.all]]}
        onChange=${(event) => {
          status.value = event.currentTarget.value;
          inbox.reload();
        }}
      />
    </div>
    <${List} of=${inbox} empty=${html`<${Empty} icon="support" title=${t.none} text=${t.noneText} />`}>
      ${(one) => html`<li key=${one.id}>
        <a class="grow item-link" href=${link("admin", "support", one.id)}>
          <p class="item-title"><bdi>${one.subject || texts.support.untitled}</bdi></p>
          <p class="quiet small">${one.email} · <${Time} at=${one.updated_at} /></p>
        </a>
        ${
          one.status === "closed"
            ? html`<span class="status">${texts.support.statuses.closed}</span>`
            : one.waiting
              ? html`<span class="status status-stopped">${t.waiting}</span>`
              : html`<span class="status status-final">${t.answered}</span>`
        }
      </li>`}
    <//>
  `;
}
