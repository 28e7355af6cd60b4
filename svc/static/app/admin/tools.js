// Tools: their calls, failures and cost in a month, and the state of the operator's tool servers.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Failed, Field, Loading, Money, Time } from "../components.js";
import { number } from "../format.js";
import { html } from "../html.js";
import { resource } from "../state.js";
import { nameOf } from "../tools/names.js";
import { administration } from "./api.js";
import { months } from "./months.js";
import { Table } from "./table.js";
import { adminTexts } from "../texts/en/admin.js";

const t = adminTexts.tools;
const LOOKS = { ready: "final", failed: "error", changed: "stopped" };
const month = signal(new Date().toISOString().slice(0, 7));
const report = resource(() => administration.tools(month.peek()));

export default function Tools() {
  useEffect(() => {
    report.reload();
  }, [month.value]);
  const found = report.data.value,
    error = report.error.value;
  return html`
    <p class="quiet part-intro">${t.intro}</p>
    <div class="filters more-space">
      <${Field}
        label=${adminTexts.spend.month}
        value=${month.value}
        options=${months()}
        onChange=${(event) => {
          month.value = event.currentTarget.value;
        }}
      />
    </div>
    ${error && html`<${Failed} error=${error} retry=${report.reload} />`}
    ${
      found
        ? html`<div class=${report.busy.value ? "is-busy" : undefined}>
          <${Used} tools=${found.data} />
          <h2>${t.servers}</h2>
          ${
            found.servers.length
              ? html`<${Servers} of=${found.servers} />`
              : html`<p class="quiet">${t.noServers}</p>`
          }
        </div>`
        : !error && html`<${Loading} />`
    }
  `;
}

function Used({ tools }) {
  const sorted = tools.toSorted((one, other) => other.calls - one.calls);
  return html`<${Table}
    label=${adminTexts.views.tools}
    cards
    head=${html`<th>${t.tool}</th><th>${t.source}</th><th>${t.asks}</th><th class="num">${t.calls}</th>
      <th class="num">${t.failures}</th><th class="num">${t.cost}</th>`}
  >
    ${sorted.map(
      ({ name, source, ask, available, calls, failures, cost_micros: cost }) => html`<tr key=${name}>
        <td class="table-name">${t.special[name] ?? nameOf(name)}</td>
        <td>
          ${source === "service" ? t.service : (source ?? (available ? "–" : t.gone))}
          ${source && !available && html` <span class="quiet small">${t.waits}</span>`}
        </td>
        <td>${ask === null ? "–" : ask ? t.yes : t.no}</td>
        <td class="num">${number(calls)}</td><td class="num">${number(failures)}</td>
        <td class="num"><${Money} micros=${cost} /></td>
      </tr>`,
    )}
  <//>`;
}

const Servers = ({ of }) => html`<ul class="list">
  ${of.map(
    ({ name, url, groups, state, waiting, detail, read_at: at }) => html`<li key=${name} class="list-tall">
      <div class="list-row">
        <div class="grow">
          <p class="item-title">${name}</p>
          <p class="quiet small">
            ${url} · ${groups ? groups.join(", ") : t.everyone} · ${t.read} ${
              at ? html`<${Time} at=${at} />` : t.never
            }
          </p>
        </div>
        <span class="status ${state ? `status-${LOOKS[state]}` : ""}">
          ${state ? t.states[state] : t.unread}
        </span>
      </div>
      ${detail && html`<p class="small"><bdi lang="en">${detail}</bdi></p>`}
      ${
        state !== null &&
        waiting.length > 0 &&
        html`<p class="small">${t.waiting(waiting)}</p>
          <p class="small">${t.accept} <code>svc tools accept ${name}</code></p>`
      }
    </li>`,
  )}
</ul>`;
