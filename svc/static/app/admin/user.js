// One user: facts, name, group and administrator, suspension, API keys, deletion.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import {
  Button,
  confirm,
  Dialog,
  Failed,
  Field,
  IconButton,
  List,
  Money,
  Notice,
  Resource,
  Switch,
  Time,
  toast,
} from "../components.js";
import { bytes } from "../format.js";
import { html } from "../html.js";
import { Icon } from "../icons.js";
import { limits } from "../limits.js";
import { go, link } from "../router.js";
import { me, pagedList, resource } from "../state.js";
import { texts } from "../texts/en/keys.js";
import { texts as ofSettings } from "../texts/en/delete-account.js";
import { administration } from "./api.js";
import { Wallet } from "./money.js";
import { OneTimeLink, groupChoices, groups } from "./one-time-link.js";
import { adminTexts } from "../texts/en/admin.js";

const t = adminTexts.users;

export function User({ id }) {
  const user = useMemo(() => resource(() => administration.users.show(id)), []);
  useEffect(() => {
    groups.reload();
  }, []);
  return html`
    <p class="back more-space"><a href=${link("admin", "users")}>${t.back}</a></p>
    <${Resource} of=${user}>${(shown) => html`<${Shown} of=${shown} onChange=${user.set} />`}<//>
  `;
}

function Shown({ of, onChange }) {
  const made = useSignal(/** @type {Api.Invitation} */ (null)),
    deleting = useSignal(false);
  const suspended = of.status === "suspended",
    own = of.id === me.data.value?.id;
  const failed = (error) => toast(error.message, { kind: "bad", seconds: 8 });
  const makeLink = async () => {
    const question = { title: t.linkTitle, text: t.linkText(of.email), action: t.makeLink };
    if (!(await confirm(question))) return;
    try {
      made.value = await administration.users.resetLink(of.id);
    } catch (error) {
      failed(error);
    }
  };
  const suspend = async () => {
    const question = {
      title: t.suspendTitle,
      text: t.suspendText(of.email),
      action: t.suspend,
      danger: true,
    };
    if (!suspended && !(await confirm(question))) return;
    try {
      onChange(await administration.users.change(of.id, { status: suspended ? "active" : "suspended" }));
      toast(suspended ? t.reactivated : t.isSuspended, { kind: "good" });
    } catch (error) {
      failed(error);
    }
  };
  return html`
    <div class="section-head">
      <div>
        <h2>${of.name || of.email}</h2>
        <p class="quiet">${of.name && of.email}</p>
      </div>
      <div class="actions">
        <${Button} icon="key" onClick=${makeLink}>${t.makeLink}<//>
        ${!own && html`<${Button} onClick=${suspend}>${suspended ? t.reactivate : t.suspend}<//>`}
      </div>
    </div>
    ${suspended && html`<${Notice} kind="warn" icon="pause">${t.suspendedText}<//>`}
    ${own && html`<${Notice}>${t.own}<//>`}
    <${Facts} of=${of} />
    <h2>${t.account}</h2>
    <${Changes} key=${[of.name, of.group, of.group_chosen, of.admin].join()} of=${of} onChange=${onChange} />
    <${Wallet} of=${of} onChange=${onChange} />
    <${Keys} of=${of} onChange=${onChange} />
    ${
      !own &&
      html`
        <h2>${t.delete}</h2>
        <div class="card section-row">
          <p class="grow">${t.deleteText}</p>
          <${Button}
            kind="danger"
            onClick=${() => {
              deleting.value = true;
            }}
          >${t.delete}<//>
        </div>
      `
    }
    ${
      made.value &&
      html`<${OneTimeLink}
        title=${t.linkMade}
        email=${of.email}
        url=${made.value.invite_url}
        onClose=${() => {
          made.value = null;
        }}
      />`
    }
    ${
      deleting.value &&
      html`<${Delete}
        of=${of}
        onClose=${() => {
          deleting.value = false;
        }}
      />`
    }
  `;
}

function Facts({ of }) {
  const money = (micros) => html`<${Money} as="balance" micros=${micros} />`;
  const facts = [
    [t.spent, money(of.spent_month_micros)],
    [t.balance, money(of.balance_micros)],
    [texts.wallet.tier, texts.wallet.tiers[of.tier]],
    [t.group, of.group ?? t.noGroup],
    [t.verified, of.email_verified ? t.yes : t.no],
    [t.stored, bytes(of.stored_bytes)],
    [t.lastSeen, of.last_seen_at ? html`<${Time} at=${of.last_seen_at} />` : t.never],
    [t.since, html`<${Time} at=${of.created_at} />`],
  ];
  return html`<dl class="card account-facts facts-wide more-space">
    ${facts.map(([what, value]) => html`<div><dt>${what}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

function Changes({ of, onChange }) {
  const name = useSignal(of.name ?? ""),
    group = useSignal(groupChoices.valueOf(of)),
    admin = useSignal(of.admin),
    busy = useSignal(false),
    error = useSignal(null);
  const changes = {
    ...(name.value.trim() !== (of.name ?? "") && { name: name.value.trim() || null }),
    ...(group.value !== groupChoices.valueOf(of) && groupChoices.parse(group.value)),
    ...(admin.value !== of.admin && { admin: admin.value }),
  };
  const save = async (event) => {
    event.preventDefault();
    [busy.value, error.value] = [true, null];
    try {
      onChange(await administration.users.change(of.id, changes));
      if (of.id === me.data.peek()?.id) me.reload();
      toast(texts.common.saved, { kind: "good" });
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  const known = groups.data.value ?? [];
  const names = !of.group || known.includes(of.group) ? known : [...known, of.group];
  return html`<form class="card stack" onSubmit=${save}>
    <${Field}
      label=${t.name}
      autocomplete="off"
      maxlength=${limits.sign_up.name.maxlength}
      value=${name.value}
      onInput=${(event) => {
        name.value = event.currentTarget.value;
      }}
    />
    <${Field}
      label=${t.group}
      hint=${t.groupHint}
      value=${group.value}
      options=${groupChoices.of(names)}
      onChange=${(event) => {
        group.value = event.currentTarget.value;
      }}
    />
    <${Switch}
      label=${t.admin}
      hint=${t.adminHint}
      checked=${admin.value}
      onChange=${(on) => {
        admin.value = on;
      }}
    />
    ${error.value && html`<${Failed} error=${error.value} />`}
    <div class="actions">
      <${Button} kind="primary" type="submit" busy=${busy.value} disabled=${!Object.keys(changes).length}>
        ${texts.common.save}
      <//>
    </div>
  </form>`;
}

function Keys({ of, onChange }) {
  const keys = useMemo(
    () => pagedList((after) => administration.keys.list(of.id, { limit: 20, after })),
    [of.id],
  );
  const remove = async (question, work) => {
    if (!(await confirm({ ...question, action: texts.common.delete, danger: true }))) return;
    try {
      await work();
      await keys.reload();
      onChange(await administration.users.show(of.id));
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
  };
  const removeOne = ({ id, name }) =>
    remove({ title: texts.keys.deleteTitle, text: texts.keys.deleteText(name) }, () =>
      administration.keys.remove(of.id, id),
    );
  const removeAll = () =>
    remove({ title: t.deleteKeysTitle, text: t.deleteKeysText(of.keys) }, () =>
      administration.keys.removeAll(of.id),
    );
  return html`
    <div class="section-head">
      <h2>${texts.views.keys}</h2>
      ${keys.items.value?.length > 0 && html`<${Button} small onClick=${removeAll}>${t.deleteKeys}<//>`}
    </div>
    <${List} of=${keys} empty=${html`<p class="quiet">${texts.keys.none}</p>`}>
      ${(key) => html`<li key=${key.id}>
        <${Icon} name="key" />
        <div class="grow">
          <p class="item-title">${key.name}</p>
          <p class="quiet small">
            <code>${key.key_prefix}…</code> · ${texts.keys.made} <${Time} at=${key.created_at} /> · ${
              key.last_used_at
                ? html`${texts.keys.used} <${Time} at=${key.last_used_at} />`
                : texts.keys.neverUsed
            } · ${texts.keys.spent} <${Money} micros=${key.spent_micros} />
          </p>
        </div>
        <${IconButton}
          icon="trash"
          label=${texts.keys.deleteNamed(key.name)}
          onClick=${() => removeOne(key)}
        />
      </li>`}
    <//>
  `;
}

function Delete({ of, onClose }) {
  const busy = useSignal(false),
    error = useSignal(null),
    differs = useSignal(false);
  const remove = async (event) => {
    event.preventDefault();
    const typed = String(new FormData(event.target).get("confirm"));
    differs.value = typed.trim().toLowerCase() !== of.email.toLowerCase();
    if (differs.value) return;
    [busy.value, error.value] = [true, null];
    try {
      await administration.users.remove(of.id);
      toast(t.deleted(of.email), { kind: "good" });
      go(link("admin", "users"));
    } catch (problem) {
      [busy.value, error.value] = [false, problem];
    }
  };
  return html`<${Dialog} title=${t.deleteTitle(of.email)} onClose=${onClose}>
    <form class="stack" onSubmit=${remove}>
      <p>${t.deleteWhat}</p>
      <${Field}
        label=${ofSettings.settings.endConfirm(of.email)}
        name="confirm"
        type="email"
        autocomplete="off"
        required
        autofocus
        error=${differs.value ? ofSettings.settings.endDiffers : null}
      />
      ${error.value && html`<${Failed} error=${error.value} />`}
      <div class="actions dialog-foot">
        <${Button} onClick=${onClose}>${texts.common.cancel}<//>
        <${Button} kind="danger" type="submit" busy=${busy.value}>${t.delete}<//>
      </div>
    </form>
  <//>`;
}
