// The wallet: balance, holds, adding funds, the ledger with filters, and spend per day.
import { computed, signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api } from "../api.js";
import { SpendChart } from "../chart.js";
import {
  Button,
  Dialog,
  Empty,
  Failed,
  Field,
  List,
  Loading,
  Money,
  Notice,
  Page,
  Progress,
  Resource,
  Time,
  comeBack,
  toast,
} from "../components.js";
import { csv, saveFile } from "../files.js";
import { balance, cost, date, dayOfMonth, number } from "../format.js";
import { html } from "../html.js";
import { link } from "../router.js";
import { LimitField, limitIn, SpendingBar } from "../spending.js";
import { isAllowanceLow, pagedList, resource, wallet } from "../state.js";
import { texts } from "../texts/en/wallet.js";

const t = texts.wallet,
  spending = texts.spending;
/** The descriptions that the service writes into the ledger, by the names of their texts. */
const PURPOSES = {
  funds: /^Added funds$/,
  testFunds: /^Added funds \(test money\)$/,
  allowance: /^Allowance (\d{4}-\d\d)$/,
  tokens: /^(.+): (\d+) input and (\d+) output tokens$/,
  cachedTokens: /^(.+): (\d+) input \((\d+) cached\) and (\d+) output tokens$/,
  images: /^(.+): (\d+) images?$/,
  searches: /^(.+): (\d+) search(?:es)?$/,
  speech: /^(.+): (\d+) audio tokens \(([\d.]+) s\)$/,
};

function purposeOf({ description, kind }) {
  for (const [name, pattern] of Object.entries(PURPOSES)) {
    const match = pattern.exec(description);
    if (match) return t.purposes[name](...match.slice(1).map((part) => (/^\d+$/.test(part) ? +part : part)));
  }
  return description || t.kinds[kind];
}
const ledger = pagedList((after) => api.billing.ledger({ limit: 100, after }));
const kind = signal("all");
const days = signal(30),
  by = signal("model");
const usage = resource(async () => {
  const values = { days: days.peek(), by: by.peek() };
  let page = await api.billing.usage(values);
  const rows = page.data;
  while (page.has_more) {
    page = await api.billing.usage({ ...values, after: rows.at(-1).id });
    rows.push(...page.data);
  }
  return rows;
});
const keyNames = resource(async () => new Map((await api.keys.list()).map(({ id, name }) => [id, name])));
const rows = computed(() =>
  usage.data.value?.map((row) => ({
    day: row.day,
    series: by.value === "key" ? (row.key_id ?? "") : row.model,
    micros: row.cost_micros,
    row,
  })),
);

export default function Wallet() {
  useEffect(() => {
    wallet.reload();
    ledger.reload();
    usage.reload();
  }, []);
  return html`<${Page} title=${texts.views.wallet} wide>
    <${Resource} of=${wallet}>${(account) => html`<${Balance} of=${account} /><${Limit} of=${account} />`}<//>
    <h2>${t.spend}</h2><${Spend} />
    <${Ledger} /><//>`;
}

/** How much of the month's allowance is left, with a bar of what is used. */
function Allowance({ of }) {
  const { allowance_micros: whole, allowance_renews_at: renewsAt } = of;
  const left = Math.max(0, Math.min(of.available_micros, whole));
  return html`<div class=${isAllowanceLow(of) ? "spending warn" : "spending"}>
    <${Progress}
      label=${t.allowance(balance(left), balance(whole), dayOfMonth(renewsAt))}
      value=${whole - left}
      max=${whole}
    />
  </div>`;
}

function Balance({ of }) {
  const addFunds =
    of.payments !== "none" &&
    html`<${Button} kind="primary" icon="plus" href="/checkout" onClick=${comeBack}>${t.addFunds}<//>`;
  return html`
    ${of.payments === "sandbox" && html`<${Notice} kind="warn" icon="warning">${t.testMoney}<//>`}
    <div class="figures">
      <div class="card figure">
        <p class="quiet">${t.balance}</p>
        <p class="figure-value"><${Money} as="balance" micros=${of.wallet_balance_micros} /></p>
      </div>
      <div class="card figure">
        <p class="quiet">${t.available}</p>
        <p class="figure-value"><${Money} as="balance" micros=${of.available_micros} /></p>
        ${of.allowance_micros > 0 && html`<${Allowance} of=${of} />`}
        <p class="hint">${of.held_micros ? t.held(cost(of.held_micros)) : t.nothingHeld}</p>
      </div>
      <div class="card figure">
        <p class="quiet">${t.tier}</p>
        <p class="figure-value">${t.tiers[of.tier]}</p>
        <p class="hint">${t.tierHints[of.tier]}</p>
      </div>
    </div>
    <div class="actions">${addFunds || html`<p class="quiet">${t.noPayments(of.contact)}</p>`}</div>
  `;
}

function Limit({ of }) {
  const editing = useSignal(false);
  const open = () => {
    editing.value = true;
  };
  const limited = of.monthly_limit_micros !== null;
  return html`<h2>${spending.limit}</h2><section class="card stack">
    ${limited ? html`<${SpendingBar} of=${of} />` : html`<p class="quiet">${spending.none}</p>`}
    <div class="actions">
      <${Button} onClick=${open}>${limited ? spending.change : spending.set}<//>
      <${Button} kind="quiet" href=${link("keys")}>${spending.keys}<//>
    </div>
    ${editing.value && html`<${LimitEditor} of=${of} onClose=${() => (editing.value = false)} />`}
  </section>`;
}

function LimitEditor({ of, onClose }) {
  const busy = useSignal(false),
    error = useSignal(null);
  const save = async (event) => {
    event.preventDefault();
    [busy.value, error.value] = [true, null];
    try {
      await api.user.changeSettings({ monthly_limit_micros: limitIn(event.currentTarget) });
      await wallet.reload();
      onClose();
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  const title = of.monthly_limit_micros === null ? spending.set : spending.change;
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form class="stack" onSubmit=${save}>
      <${LimitField} micros=${of.monthly_limit_micros} error=${error.value} autofocus />
      ${error.value && !error.value.param && html`<${Failed} error=${error.value} />`}
      <div class="actions dialog-foot"><${Button} onClick=${onClose}>${texts.common.cancel}<//>
        <${Button} kind="primary" type="submit" busy=${busy.value}>${texts.common.save}<//></div>
    </form>
  <//>`;
}

function Spend() {
  useEffect(() => {
    keyNames.ensure();
  }, []);
  const set = (value, to) => {
    value.value = to;
    usage.reload();
  };
  const labelOf = (series) =>
    by.value === "key" ? (series ? (keyNames.data.value?.get(series) ?? t.deletedKey) : t.session) : series;
  const spent = rows.value?.filter(({ micros }) => micros > 0) ?? [];
  return html`
    <div class="filters">
      <${Field}
        label=${t.period}
        value=${String(days.value)}
        options=${[7, 30, 90].map((count) => [String(count), t.days(count)])}
        onChange=${(event) => set(days, Number(event.currentTarget.value))}
      />
      <${Field}
        label=${t.by}
        value=${by.value}
        options=${Object.entries(t.series)}
        onChange=${(event) => set(by, event.currentTarget.value)}
      />
    </div>
    ${
      usage.error.value
        ? html`<${Failed} error=${usage.error.value} retry=${usage.reload} />`
        : rows.value === undefined
          ? html`<${Loading} />`
          : html`<div class="card ${usage.busy.value ? "is-busy" : ""}">
            ${
              spent.length
                ? html`<${SpendChart} rows=${rows.value} days=${days.value} labelOf=${labelOf} />`
                : html`<p class="quiet">${rows.value.length ? t.onlyFree : t.noSpend}</p>`
            }
            ${
              rows.value.length > 0 &&
              html`<details class="table-fold">
                <summary>${t.asTable}</summary>
                <div class="table-scroll" tabindex="0" role="region" aria-label=${t.asTable}>
                  <table class="table">
                    <thead>
                      <tr>
                        <th>${t.day}</th><th>${t.series[by.value]}</th><th class="num">${t.requests}</th>
                        <th class="num">${t.input}</th><th class="num">${t.output}</th>
                        <th class="num">${t.cost}</th>
                      </tr>
                    </thead>
                    <tbody>
                      ${rows.value.map(
                        ({ row, series, day }) => html`<tr>
                          <td>${date(day)}</td><td>${labelOf(series)}</td>
                          <td class="num">${number(row.requests)}</td>
                          <td class="num">${number(row.input_tokens)}</td>
                          <td class="num">${number(row.output_tokens)}</td>
                          <td class="num"><${Money} micros=${row.cost_micros} /></td>
                        </tr>`,
                      )}
                    </tbody>
                  </table>
                </div>
              </details>`
            }
          </div>`
    }
  `;
}

function Ledger() {
  const saving = useSignal(null);
  const save = async () => {
    const all = [];
    saving.value = 0;
    try {
      for (let page; !page || page.has_more; ) {
        page = await api.billing.ledger({ limit: 100, after: all.at(-1)?.id });
        all.push(...page.data);
        saving.value = all.length;
      }
      const columns = [
        "created_at",
        "kind",
        "amount_micros",
        "balance_after_micros",
        "description",
        "reference",
        "model",
        "input_tokens",
        "output_tokens",
        "request_id",
        "key_id",
        "id",
        "cached_input_tokens",
      ];
      saveFile(
        csv([columns, ...all.map((entry) => columns.map((name) => entry[name]))]),
        `ledger-${new Date().toISOString().slice(0, 10)}.csv`,
      );
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
    saving.value = null;
  };
  const shows = (entry) => kind.value === "all" || entry.kind === kind.value;
  const { length: loaded = 0 } = ledger.items.value ?? [];
  const none = loaded > 0 && !ledger.items.value.some(shows),
    searching = none && ledger.more.value && !ledger.error.value;
  useEffect(() => {
    if (searching) ledger.loadMore();
  }, [searching, loaded]); // until an entry is found or no page is left
  return html`
    <div class="section-head">
      <h2>${t.ledger}</h2>
      <div class="actions">
        <${Field}
          label=${t.filter}
          hideLabel
          value=${kind.value}
          options=${Object.entries(t.kinds)}
          onChange=${(event) => {
            kind.value = event.currentTarget.value;
          }}
        />
        <${Button} icon="download" busy=${saving.value !== null} onClick=${save}>
          ${saving.value ? t.saving(saving.value) : t.csv}
        <//>
      </div>
    </div>
    ${
      searching
        ? html`<${Loading} label=${t.searching(loaded)} />`
        : none && html`<p class="quiet">${t.noneOfKind}</p>`
    }
    <${List}
      of=${ledger}
      empty=${html`<${Empty} icon="wallet" title=${t.noLedger} text=${t.noLedgerText} />`}
    >
      ${(entry) =>
        shows(entry) &&
        html`<li key=${entry.id}>
          <div class="grow">
            <p class="item-title">${purposeOf(entry)}</p>
            <p class="quiet small">
              <${Time} at=${entry.created_at} /> · ${t.after} <${Money}
                micros=${entry.balance_after_micros}
              />
            </p>
          </div>
          <p class=${entry.amount_micros > 0 ? "amount good" : "amount"}>
            ${entry.amount_micros > 0 ? "+" : "−"}
            <${Money} micros=${Math.abs(entry.amount_micros)} />
          </p>
        </li>`}
    <//>
  `;
}
