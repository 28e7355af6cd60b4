// The links of shared conversations: which there are, until when they work, and a button to end each.
import { useMemo } from "preact/hooks";
import { api } from "../api.js";
import { Button, Empty, List, Page, confirm, toast } from "../components.js";
import { date } from "../format.js";
import { html } from "../html.js";
import { link } from "../router.js";
import { pagedList } from "../state.js";
import { texts } from "../texts/en/share.js";

const t = texts.share;

export default function Shares() {
  const list = useMemo(() => pagedList((after) => api.shares.list({ after, limit: 50 })), []);
  const end = async ({ id }) => {
    if (!(await confirm({ title: t.endTitle, text: t.endText, action: t.end, danger: true }))) return;
    try {
      await api.shares.remove(id);
      list.drop(id);
      toast(t.ended, { kind: "good" });
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
  };
  return html`<${Page} title=${texts.views.shares} intro=${t.intro}>
    <${List} of=${list} empty=${html`<${Empty} icon="external" title=${t.none} />`}>
      ${(share) => html`<li key=${share.id}>
        <div class="grow">
          <p class="item-title">
            <a href=${link("chat", share.conversation_id)} dir="auto">${share.title ?? t.untitled}</a>
          </p>
          <p class="quiet small">
            ${t.sharedOn(date(share.created_at))} ·${" "}
            ${share.expires_at ? t.endsOn(date(share.expires_at)) : t.endless}
          </p>
        </div>
        <${Button} small onClick=${() => end(share)}>${t.end}<//>
      </li>`}
    <//>
  <//>`;
}
