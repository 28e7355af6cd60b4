// Sign-ins, also refused ones, newest first; CSV.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Button, Empty, Field, Time, toast } from "../components.js";
import { saveFile } from "../files.js";
import { html } from "../html.js";
import { link } from "../router.js";
import { pagedList } from "../state.js";
import { texts } from "../texts/en/wallet.js";
import { administration } from "./api.js";
import { PagedTable } from "./table.js";
import { adminTexts } from "../texts/en/admin.js";

const t = adminTexts.signIns;
const code = signal("");
const chosen = () => (code.peek() ? { code: code.peek() } : {});
const list = pagedList((after) =>
  administration.signIns({ limit: 50, ...chosen(), ...(after && { after }) }),
);

export default function SignIns() {
  const saving = useSignal(false);
  useEffect(() => {
    list.reload();
  }, [code.value]);
  const save = async () => {
    saving.value = true;
    try {
      saveFile(await administration.csv("sign-ins", chosen()), "sign-ins.csv");
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
    saving.value = false;
  };
  return html`
    <p class="quiet part-intro">${t.intro}</p>
    <div class="section-head">
      <div class="filters">
        <${Field}
          label=${t.result}
          value=${code.value}
          options=${[["", t.any], ...Object.entries(t.codes)]}
          onChange=${(event) => {
            code.value = event.currentTarget.value;
          }}
        />
      </div>
      <${Button} icon="download" busy=${saving.value} onClick=${save}>${texts.wallet.csv}<//>
    </div>
    <${PagedTable}
      of=${list}
      label=${adminTexts.views["sign-ins"]}
      cards
      head=${html`<th>${adminTexts.users.user}</th><th>${t.result}</th>
        <th>${t.way}</th><th>${t.at}</th>`}
      empty=${html`<${Empty} icon="user" title=${t.none} />`}
    >${(row) => html`<${Row} key=${row.id} of=${row} />`}<//>
  `;
}

function Row({ of }) {
  const account = of.email && html`<a href=${link("admin", "users", of.account_id)}>${of.email}</a>`;
  return html`<tr>
    <td class="table-name">${account ?? html`<span class="quiet">${t.unknown}</span>`}</td>
    <td>${t.codes[of.code] ?? of.code}</td>
    <td>${t.ways[of.way] ?? of.way}</td>
    <td><${Time} at=${of.at} /></td>
  </tr>`;
}
