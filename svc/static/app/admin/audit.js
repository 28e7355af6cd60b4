// The audit log in words: who changed what, newest first.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Button, Empty, Field, List, Time, toast } from "../components.js";
import { saveFile } from "../files.js";
import { cost } from "../format.js";
import { html } from "../html.js";
import { link } from "../router.js";
import { me, pagedList } from "../state.js";
import { texts } from "../texts/en/wallet.js";
import { administration } from "./api.js";
import { adminTexts } from "../texts/en/admin.js";

const t = adminTexts.audit;
const names = signal(/** @type {Record<string, string>} */ ({})); // addresses of administrators by id
const action = signal("");
const OF_ACCOUNTS = /^(user\.(?!delete$)|support\.|share\.|credit$|debit$)/;
const OF_NAMES = /^(tool_server|prompts)\./; // of the operator's servers, of groups; or of accounts
const chosen = () => (action.peek() ? { action: action.peek() } : {});
const log = pagedList(async (after) => {
  const page = await administration.audit({ limit: 50, ...chosen(), after });
  for (const row of page.data) {
    if (row.action === "user.delete") names.value = { ...names.peek(), [row.subject]: t.gone };
  }
  await Promise.all([...new Set(page.data.map(({ actor }) => actor))].map(learn));
  return page;
});

/** Load the address of an administrator, once. A deleted one has none. */
async function learn(actor) {
  if (actor === "operator" || names.peek()[actor]) return;
  const email = await administration.users.show(actor).then(
    (user) => user.email,
    () => t.gone,
  );
  names.value = { ...names.peek(), [actor]: email };
}

export default function Audit() {
  useEffect(() => {
    log.reload();
  }, [action.value]);
  const saving = useSignal(false);
  const save = async () => {
    saving.value = true;
    try {
      saveFile(await administration.csv("audit", chosen()), "audit.csv");
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
          label=${t.action}
          value=${action.value}
          options=${[["", t.any], ...Object.entries(t.actions)]}
          onChange=${(event) => {
            action.value = event.currentTarget.value;
          }}
        />
      </div>
      <${Button} icon="download" busy=${saving.value} onClick=${save}>${texts.wallet.csv}<//>
    </div>
    <${List} of=${log} empty=${html`<${Empty} icon="docs" title=${t.none} />`}>
      ${(row) => html`<li key=${row.id}>
        <div class="grow">
          <p class="item-title">${said(row)}</p>
          <p class="quiet small">
            ${nameOf(row.actor)} · <${Time} at=${row.at} />
          </p>
        </div>
      </li>`}
    <//>
  `;
}

function nameOf(actor) {
  if (actor === "operator") return t.operator;
  return actor === me.data.value?.id ? t.you : names.value[actor];
}

/** What was done, and to whom. The address of the account links to it, as long as it exists. */
function said({ action, actor, subject, details }) {
  const { email, ...rest } = details;
  const named = OF_NAMES.test(action) && subject !== actor;
  const account = email
    ? html`<a href=${link("admin", "users", subject)}>${email}</a>`
    : named
      ? subject
      : (OF_ACCOUNTS.test(action) || OF_NAMES.test(action)) && t.deletedAccount;
  const what = Object.hasOwn(t.actions, action) ? t.actions[action] : action;
  return [what, account, ...detailsOf(action, rest)]
    .filter(Boolean)
    .map((part, at) => html`${at > 0 && " · "}<bdi>${part}</bdi>`);
}

/** The details of a row as texts; false ones are left out. */
function detailsOf(action, { name, admin, group, status, amount_micros: amount, file }) {
  const invited = action !== "user.change",
    d = t.details;
  return [
    status && (status === "suspended" ? d.suspended : d.reactivated),
    admin !== undefined && (admin ? d.admin : !invited && d.noAdmin),
    group !== undefined && groupText(group),
    !invited && name !== undefined && (name ? d.name(name) : d.noName),
    amount !== undefined && cost(amount),
    file,
  ];
}

function groupText(group) {
  if (group === null) return t.details.noGroup;
  return group === "auto" ? t.details.autoGroup : t.details.group(group);
}
