// The catalog in use: model servers, models, prices and groups, with the file that is the only place to
// change them.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Button, Notice, Resource, toast } from "../components.js";
import { balance, price } from "../format.js";
import { html } from "../html.js";
import { resource } from "../state.js";
import { administration } from "./api.js";
import { Table } from "./table.js";
import { adminTexts } from "../texts/en/admin.js";

const t = adminTexts.catalog;
const catalog = resource(administration.catalog);

export default function Catalog() {
  const found = useSignal(/** @type {Api.Reloaded} */ (null)),
    busy = useSignal(false);
  useEffect(() => {
    catalog.reload();
  }, []);
  const reload = async () => {
    busy.value = true;
    try {
      found.value = await administration.reload();
      await catalog.reload();
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
    busy.value = false;
  };
  return html`<${Resource} of=${catalog}>
    ${(of) => html`
      <div class="section-head">
        <p class="quiet">${of.file ? html`${t.file} <code>${of.file}</code>` : t.noFile}</p>
        <${Button} icon="retry" busy=${busy.value} onClick=${reload}>${t.reload}<//>
      </div>
      ${found.value && html`<${Found} of=${found.value} />`}
      <${Servers} of=${of.providers} />
      <${Models} of=${of} />
      <${Groups} of=${of} />
    `}
  <//>`;
}

/** What a reload has found. */
function Found({ of: { errors, notes } }) {
  const kind = errors.length ? "bad" : notes.length ? "warn" : "good";
  return html`<${Notice} kind=${kind} icon=${kind === "good" ? "check" : "warning"}>
    ${errors.length ? t.stays : t.reloaded}
    <ul>${[...errors, ...notes].map((text) => html`<li><bdi lang="en">${text}</bdi></li>`)}</ul>
  <//>`;
}

function Servers({ of }) {
  return html`<h2>${t.servers}</h2>
    ${
      of.length
        ? html`<${Table}
          label=${t.servers}
          cards
          head=${html`<th>${t.name}</th><th>${t.address}</th><th>${t.key}</th>`}
        >
          ${of.map(
            (one) => html`<tr key=${one.name}>
              <td class="table-name">${one.name}</td><td><bdi dir="ltr">${one.base_urls.join(", ")}</bdi></td>
              <td>${one.has_key ? t.hasKey : t.noKey}</td>
            </tr>`,
          )}
        <//>`
        : html`<p class="quiet">${adminTexts.status.noProviders}</p>`
    }`;
}

function Models({ of: { models, default_model: standard } }) {
  return html`<h2>${t.models}</h2>
    <${Table}
      label=${t.models}
      cards
      head=${html`<th>${t.model}</th><th>${t.source}</th><th class="num">${t.price}</th>`}
    >
      ${models.map(
        (one) => html`<tr key=${one.id}>
          <td class="table-name">
            ${one.id}
            ${one.id === standard && html` <span class="status status-running">${t.standard}</span>`}
            ${one.aliases.length > 0 && html`<br /><span class="quiet">${t.aliases(one.aliases)}</span>`}
            ${one.fallback && html`<br /><span class="quiet">${t.fallback(one.fallback)}</span>`}
          </td>
          <td>${t.sources[one.source]}</td><td class="num">${price(one) ?? t.free}</td>
        </tr>`,
      )}
    <//>`;
}

function Groups({ of: { access, groups } }) {
  if (!access) return html`<h2>${t.groups}</h2><p class="quiet">${t.noGroups}</p>`;
  return html`<h2>${t.groups}</h2>
    <${Table}
      label=${t.groups}
      cards
      head=${html`<th>${t.name}</th><th>${t.mayUse}</th><th>${t.members}</th>
        <th class="num">${t.allowance}</th>`}
    >
      ${[...groups, access].map(
        (one) => html`<tr key=${one.name}>
          <td class="table-name">${one.name || t.others}</td>
          <td><bdi dir="ltr">${one.models.join(", ")}</bdi></td>
          <td><bdi dir="ltr">${[...one.emails, ...one.claims].join(", ") || "–"}</bdi></td>
          <td class="num">${one.allowance_micros ? balance(one.allowance_micros) : "–"}</td>
        </tr>`,
      )}
    <//>`;
}
