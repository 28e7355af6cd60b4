// Spending of a month or of days: totals, a chart by day, and a table by user, model, group, key or day; CSV.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { SpendChart } from "../chart.js";
import { Button, Empty, Failed, Field, Loading, Money, toast } from "../components.js";
import { saveFile } from "../files.js";
import { compact, date, number } from "../format.js";
import { html } from "../html.js";
import { resource } from "../state.js";
import { LOCALE } from "../texts/locale.js";
import { texts } from "../texts/en/wallet.js";
import { administration } from "./api.js";
import { monthName, months } from "./months.js";
import { Table } from "./table.js";
import { adminTexts } from "../texts/en/admin.js";

const t = adminTexts.spend;
const percent = new Intl.NumberFormat(LOCALE, { style: "percent" });
const MOST_ROWS = 200; // drawn at once; the CSV file has all
const DAY_MS = 86_400_000;
const month = signal(new Date().toISOString().slice(0, 7));
const by = signal("user");
const RANGE = "range"; // no month
const range = signal({
  from: new Date().toISOString().slice(0, 10),
  to: new Date().toISOString().slice(0, 10),
});
const period = () => (month.peek() === RANGE ? range.peek() : { month: month.peek() });
const days = resource(() => administration.usage({ ...period(), by: "day" }));
const table = resource(() => administration.usage({ ...period(), by: by.peek() }));

/** The last day of the month that is drawn: today, or the month's end. */
function lastDay(name) {
  const [year, number] = name.split("-").map(Number);
  const end = new Date(Date.UTC(year, number, 0)).toISOString().slice(0, 10);
  const today = new Date().toISOString().slice(0, 10);
  return today.startsWith(name) ? today : end;
}

export default function Spend() {
  const saving = useSignal(false);
  useEffect(() => {
    days.reload();
  }, [month.value, range.value]);
  useEffect(() => {
    table.reload();
  }, [month.value, range.value, by.value]);
  const save = async () => {
    saving.value = true;
    try {
      const blob = await administration.csv("usage", { ...period(), by: by.peek() });
      saveFile(blob, `spend-${Object.values(period()).join("-")}-by-${by.peek()}.csv`);
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
    saving.value = false;
  };
  const busy = days.busy.value || table.busy.value;
  return html`
    <div class="section-head">
      <div class="filters">
        <${Field}
          label=${t.month}
          value=${month.value}
          options=${[...months(), [RANGE, t.range]]}
          onChange=${(event) => {
            month.value = event.currentTarget.value;
          }}
        />
        ${
          month.value === RANGE &&
          ["from", "to"].map(
            (end) => html`<${Field}
              key=${end}
              label=${t.ends[end]}
              type="date"
              required
              value=${range.value[end]}
              onChange=${({ currentTarget: { value } }) => {
                if (value) range.value = { ...range.peek(), [end]: value };
              }}
            />`,
          )
        }
        <${Field}
          label=${texts.wallet.by}
          value=${by.value}
          options=${Object.entries(t.kinds)}
          onChange=${(event) => {
            by.value = event.currentTarget.value;
          }}
        />
      </div>
      <${Button} icon="download" busy=${saving.value} onClick=${save}>${texts.wallet.csv}<//>
    </div>
    <div class=${busy ? "is-busy" : undefined}><${Month} /></div>
  `;
}

function Month() {
  const error = days.error.value ?? table.error.value;
  const again = () => {
    days.reload();
    table.reload();
  };
  if (error) return html`<${Failed} error=${error} retry=${again} />`;
  const byDay = days.data.value,
    rows = table.data.value;
  if (!byDay || !rows) return html`<${Loading} />`;
  const { total } = byDay;
  if (!total.requests) return html`<${Empty} icon="wallet" title=${t.none} />`;
  const { from, to } = range.value;
  const until = byDay.month ? lastDay(byDay.month) : to;
  const length = byDay.month
    ? Number(until.slice(8))
    : Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1;
  const figure = (label, value) => html`<div class="card figure">
    <p class="quiet">${label}</p><p class="figure-value">${value}</p>
  </div>`;
  return html`
    <div class="figures">
      ${figure(texts.wallet.cost, html`<${Money} as="balance" micros=${total.cost_micros} />`)}
      ${figure(texts.wallet.requests, compact(total.requests))}
      ${figure(texts.wallet.input, compact(total.input_tokens))}
      ${figure(texts.wallet.output, compact(total.output_tokens))}
    </div>
    <div class="card">
      <${SpendChart}
        rows=${byDay.data.map(({ key, cost_micros }) => ({ day: key, series: "all", micros: cost_micros }))}
        days=${Math.max(length, 1)}
        until=${until}
        label=${t.chartLabel(byDay.month ? monthName(byDay.month) : `${date(from)} – ${date(to)}`)}
        labelOf=${() => t.everybody}
      />
    </div>
    <h2>${t.by[rows.by]}</h2>
    <${Rows} of=${rows} />
  `;
}

function Rows({ of }) {
  const kinds = of.by.split(",");
  const name = (key) => (of.by === "day" ? date(key) : (t.special[key] ?? key));
  const names = (row) => kinds.map((kind) => name(row.key ?? row[kind])).join(" · ");
  const { total } = of;
  const cells = (row) => html`
    <td class="num"><${Money} micros=${row.cost_micros} /></td>
    <td class="num only-wide"><${Share} of=${row.cost_micros} all=${total.cost_micros} /></td>
    <td class="num">${number(row.requests)}</td>
    <td class="num only-wide">${number(row.input_tokens)}</td>
    <td class="num only-wide">${number(row.output_tokens)}</td>
  `;
  return html`
    <${Table}
      label=${t.by[of.by]}
      head=${html`
        <th>${t.kinds[of.by]}</th><th class="num">${texts.wallet.cost}</th>
        <th class="num only-wide">${t.share}</th><th class="num">${texts.wallet.requests}</th>
        <th class="num only-wide">${texts.wallet.input}</th>
        <th class="num only-wide">${texts.wallet.output}</th>
      `}
    >
      ${of.data
        .slice(0, MOST_ROWS)
        .map(
          (row) => html`<tr key=${names(row)}><td class="table-name">${names(row)}</td>${cells(row)}</tr>`,
        )}
      <tr class="table-total"><td>${t.total}</td>${cells(total)}</tr>
    <//>
    ${
      of.data.length > MOST_ROWS &&
      html`<p class="quiet small more-space">
        ${t.rest(MOST_ROWS, `${of.has_more ? t.over : ""}${number(of.data.length)}`)}
      </p>`
    }
  `;
}

function Share({ of, all }) {
  const part = all ? of / all : 0;
  return html`${percent.format(part)}<span class="share"><i style=${{ width: `${part * 100}%` }}></i></span>`;
}
