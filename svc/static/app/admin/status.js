// Status: what to check, work in progress, model servers, money, backup, certificate. Refreshed while shown.
import { Button, Failed, Loading, Money, Notice, Time } from "../components.js";
import { bytes, date, number } from "../format.js";
import { html } from "../html.js";
import { usePolling } from "../polling.js";
import { resource } from "../state.js";
import { administration } from "./api.js";
import { Backup } from "./backup.js";
import { Table } from "./table.js";
import { adminTexts } from "../texts/en/admin.js";

const t = adminTexts.status;
const LOOK_AGAIN_MS = 15_000;
const LOOKS = { wrong: "error", look: "stopped", ok: "final" };
const status = resource(administration.status);

/** What a check has found. Rare texts, such as those of errors, are English. */
function toldOf({ text, code, values }) {
  const told = t.checks[code];
  if (!told) return html`<bdi lang="en">${text[0].toUpperCase() + text.slice(1)}</bdi>`;
  return typeof told === "function" ? told(...values) : told;
}

export default function Status() {
  usePolling(status.reload, LOOK_AGAIN_MS);
  const found = status.data.value,
    error = status.error.value;
  return html`
    ${error && html`<div class="more-space"><${Failed} error=${error} retry=${status.reload} /></div>`}
    ${found ? html`<${Found} of=${found} />` : !error && html`<${Loading} />`}
  `;
}

function Found({ of }) {
  const { gauges } = of;
  const figure = (label, value, hint) => html`<div class="card figure">
    <p class="quiet">${label}</p><p class="figure-value">${value}</p>
    ${hint && html`<p class="hint">${hint}</p>`}
  </div>`;
  const wrong = of.findings.filter(({ grade }) => grade === "wrong").length,
    look = of.findings.filter(({ grade }) => grade === "look").length;
  const waiting = gauges.svc_writer_waiting_jobs + gauges.svc_reader_waiting_jobs;
  const money = (micros) => html`<${Money} as="balance" micros=${micros} />`;
  const database = (gauges.svc_database_bytes ?? 0) + (gauges.svc_wal_bytes ?? 0);
  const size = (name) => (name in gauges ? bytes(gauges[name]) : "–");
  return html`
    <div class="section-head">
      <${Notice}
        kind=${wrong ? "bad" : look || of.draining ? "warn" : "good"}
        icon=${wrong || look ? "warning" : "check"}
      >
        ${of.draining ? t.draining : wrong ? t.wrong(wrong) : look ? t.look(look) : t.fine}
      <//>
      <${Button} icon="retry" busy=${status.busy.value} onClick=${status.reload}>${t.again}<//>
    </div>
    <div class="figures">
      ${figure(t.answers, number(gauges.svc_open_answers), t.runs(gauges.svc_open_runs))}
      ${figure(t.held, money(of.held_micros), t.holds(of.holds))}
      ${figure(t.wallets, money(of.balance_micros), t.accounts(of.wallets))}
      ${figure(t.disk, size("svc_disk_free_bytes"), t.database(bytes(database)))}
    </div>
    <dl class="card account-facts facts-wide">
      <div>
        <dt>${t.backup}</dt>
        <dd>${of.last_backup_at ? html`<${Time} at=${of.last_backup_at} />` : t.noBackup}</dd>
      </div>
      <div>
        <dt>${t.certificate}</dt>
        <dd>
          ${of.certificate_expires_at ? date(of.certificate_expires_at) : t.proxy}
        </dd>
      </div>
      <div><dt>${t.waiting}</dt><dd>${number(waiting)}</dd></div>
      <div><dt>${t.memory}</dt><dd>${size("process_resident_memory_bytes")}</dd></div>
      <div><dt>${t.started}</dt><dd><${Time} at=${of.started_at} /></dd></div>
      <div><dt>${t.version}</dt><dd>${of.version}</dd></div>
      <div><dt>${t.address}</dt><dd>${of.base_url}</dd></div>
    </dl>
    <h2>${t.findings}</h2>
    <ul class="list">
      ${["wrong", "look", "ok"].flatMap((grade) =>
        of.findings
          .filter((one) => one.grade === grade)
          .map(
            (one) => html`<li>
              <div class="grow">
                <p class="item-title">${t.subjects[one.about] ?? one.about}</p>
                <p class="quiet small">${toldOf(one)}</p>
              </div>
              <span class="status status-${LOOKS[grade]}">${t.grades[grade]}</span>
            </li>`,
          ),
      )}
    </ul>
    <${Backup} of=${of.backups} onStart=${status.reload} />
    <h2>${t.providers}</h2>
    ${
      of.providers.length
        ? html`<${Table}
          label=${t.providers}
          head=${html`<th>${t.provider}</th><th class="num">${t.models}</th><th>${t.state}</th>`}
        >
          ${of.providers.map(
            ({ name, models, answers }) => html`<tr key=${name}>
              <td class="table-name">${name}</td><td class="num">${number(models)}</td>
              <td>
                <span class="status ${answers === null ? "" : answers ? "status-final" : "status-error"}">
                  ${answers === null ? t.neverAsked : answers ? t.up : t.down}
                </span>
              </td>
            </tr>`,
          )}
        <//>`
        : html`<p class="quiet">${t.noProviders}</p>`
    }
    ${
      of.servers.length > 0 &&
      html`<${Table}
        label=${t.servers}
        cards
        head=${html`<th>${t.server}</th><th class="num">${t.calls}</th>
          <th class="num">${t.failures}</th><th>${t.state}</th>`}
      >
        ${of.servers.map(
          ({ provider, server, calls, failures, skipped }) => html`<tr key=${provider + server}>
            <td class="table-name">${t.serverOf(provider, server)}</td>
            <td class="num">${number(calls)}</td><td class="num">${number(failures)}</td>
            <td>
              <span class="status status-${skipped ? "error" : "final"}">
                ${skipped ? t.skipped : t.used}
              </span>
            </td>
          </tr>`,
        )}
      <//>`
    }
  `;
}
