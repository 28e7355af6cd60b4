// Users: search, filters, the list and invitations. An address with an id shows one user.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Button, Dialog, Empty, Failed, Field, Loading, Money, Time } from "../components.js";
import { bytes } from "../format.js";
import { html } from "../html.js";
import { limits } from "../limits.js";
import { link } from "../router.js";
import { pagedList } from "../state.js";
import { texts } from "../texts.js";
import { administration } from "./api.js";
import { OneTimeLink, groupChoices, groups } from "./one-time-link.js";
import { PagedTable } from "./table.js";
import { adminTexts } from "../texts/en/admin.js";
import { User } from "./user.js";

const t = adminTexts.users;
const ANY = "*"; // no name of a group
const PAUSE_MS = 250; // after a key press in the search
const filter = signal({ q: "", group: ANY, status: "", sort: "created" });
const inviting = signal(false);
const users = pagedList((after) => {
  const { q, group, status, sort } = filter.peek();
  return administration.users.list({
    limit: 50,
    sort,
    ...(q.trim() && { q: q.trim() }),
    ...(group !== ANY && { group }),
    ...(status && { status }),
    ...(after && { after }),
  });
});

export default function Users({ path }) {
  return path[0] ? html`<${User} key=${path[0]} id=${path[0]} />` : html`<${Everybody} />`;
}

function Everybody() {
  const { q, group, status, sort } = filter.value;
  const filtered = q.trim() || group !== ANY || status;
  useEffect(() => {
    groups.reload();
  }, []);
  useEffect(() => {
    const timer = setTimeout(users.reload, users.items.peek() ? PAUSE_MS : 0);
    return () => clearTimeout(timer);
  }, [q, group, status, sort]);
  const set = (what) => {
    filter.value = { ...filter.peek(), ...what };
  };
  // A filter depends on the groups
  if (groups.data.value === undefined && !groups.error.value) return html`<${Loading} />`;
  const named = (groups.data.value ?? []).map((name) => [name, name]);
  const numeric = (text) => html`<th class="num">${text}</th>`;
  return html`
    <div class="section-head">
      <div class="filters">
        <${Field}
          label=${t.search}
          type="search"
          autocomplete="off"
          placeholder=${t.searchHint}
          maxlength=${limits.search.maxlength}
          value=${q}
          onInput=${(event) => set({ q: event.currentTarget.value })}
        />
        ${
          (groups.data.value?.length !== 0 || group !== ANY) &&
          html`<${Field}
            label=${t.group}
            value=${group}
            options=${[[ANY, t.anyGroup], ["", t.noGroup], ...named]}
            onChange=${(event) => set({ group: event.currentTarget.value })}
          />`
        }
        <${Field}
          label=${t.status}
          value=${status}
          options=${[["", t.anyStatus], ...Object.entries(t.statuses)]}
          onChange=${(event) => set({ status: event.currentTarget.value })}
        />
        <${Field}
          label=${t.sort}
          value=${sort}
          options=${Object.entries(t.orders)}
          onChange=${(event) => set({ sort: event.currentTarget.value })}
        />
      </div>
      <${Button}
        kind="primary"
        icon="plus"
        onClick=${() => {
          inviting.value = true;
        }}
      >${t.invite}<//>
    </div>
    <${PagedTable}
      of=${users}
      label=${adminTexts.views.users}
      head=${html`
        <th>${t.user}</th><th class="only-wide">${t.group}</th><th class="only-wide">${t.status}</th>
        ${numeric(t.spent)}<th class="num only-wide">${t.balance}</th>
        <th class="num only-wide">${t.stored}</th>
        <th class="only-wide">${t.lastSeen}</th>
      `}
      empty=${
        filtered
          ? html`<${Empty} icon="search" title=${t.noneFound}>
            <${Button} onClick=${() => set({ q: "", group: ANY, status: "" })}>${t.clear}<//>
          <//>`
          : html`<${Empty} icon="user" title=${t.none} text=${t.noneText} />`
      }
    >${(user) => html`<${Row} key=${user.id} of=${user} />`}<//>
    ${inviting.value && html`<${Invite} />`}
  `;
}

function Row({ of }) {
  const seen = of.last_seen_at ? html`<${Time} at=${of.last_seen_at} />` : t.never;
  const group = of.group ?? html`<span class="quiet">${t.noGroup}</span>`;
  return html`<tr>
    <td class="table-name">
      <a href=${link("admin", "users", of.id)}>${of.email}</a>
      ${of.admin && html` <span class="status status-running">${t.admin}</span>`}
      ${of.name && html`<br /><span class="quiet">${of.name}</span>`}
      <span class="quiet small only-narrow">
        ${of.status === "suspended" && html`<span class="danger">${t.statuses.suspended}</span> · `}
        ${of.group && html`${of.group} · `}
        ${t.balance} <${Money} as="balance" micros=${of.balance_micros} /> · ${t.stored}${" "}
        ${bytes(of.stored_bytes)}${of.last_seen_at && html` · ${t.lastSeen} ${seen}`}
      </span>
    </td>
    <td class="only-wide">${group}</td>
    <td class="only-wide"><${Status} of=${of} /></td>
    <td class="num"><${Money} as="balance" micros=${of.spent_month_micros} /></td>
    <td class="num only-wide"><${Money} as="balance" micros=${of.balance_micros} /></td>
    <td class="num only-wide">${bytes(of.stored_bytes)}</td>
    <td class="only-wide">${seen}</td>
  </tr>`;
}

function Status({ of }) {
  return html`<span class="status status-${of.status === "active" ? "final" : "error"}">
    ${t.statuses[of.status]}
  </span>`;
}

function Invite() {
  const made = useSignal(/** @type {Api.Invitation} */ (null)),
    busy = useSignal(false),
    error = useSignal(null);
  const close = () => {
    inviting.value = false;
  };
  const invite = async (event) => {
    event.preventDefault();
    const { email, name, group } = /** @type {Record<string, string>} */ (
      Object.fromEntries(new FormData(event.target))
    );
    [busy.value, error.value] = [true, null];
    try {
      made.value = await administration.users.invite({
        email: email.trim(),
        ...(name.trim() && { name: name.trim() }),
        ...groupChoices.parse(group),
      });
      users.reload();
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  if (made.value)
    return html`<${OneTimeLink} title=${t.invited} email=${made.value.email} url=${made.value.invite_url}
      onClose=${close} />`;
  const told = error.value?.param;
  const errorOf = (name) => (told === name ? error.value.message : null);
  return html`<${Dialog} title=${t.invite} onClose=${close}>
    <form class="stack" onSubmit=${invite}>
      <${Field}
        label=${texts.signIn.email}
        name="email"
        type="email"
        required
        autofocus
        autocomplete="off"
        maxlength=${limits.sign_up.email.maxlength}
        error=${errorOf("email")}
      />
      <${Field}
        label=${t.name}
        name="name"
        autocomplete="off"
        maxlength=${limits.sign_up.name.maxlength}
        error=${errorOf("name")}
      />
      <${Field}
        label=${t.group}
        name="group"
        hint=${t.groupHint}
        options=${groupChoices.of(groups.data.value ?? [])}
        defaultValue="auto"
        error=${errorOf("group")}
      />
      <p class="quiet small">${t.inviteText}</p>
      ${error.value && !["email", "name", "group"].includes(told) && html`<${Failed} error=${error.value} />`}
      <div class="actions dialog-foot">
        <${Button} onClick=${close}>${texts.common.cancel}<//>
        <${Button} kind="primary" type="submit" busy=${busy.value}>${t.inviteAction}<//>
      </div>
    </form>
  <//>`;
}
