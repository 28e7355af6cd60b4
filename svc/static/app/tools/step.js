// A call of a tool: what it does, its input and its result, and the calls that it made itself.
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ArtifactCard } from "../artifact.js";
import { CodeBlock } from "../code.js";
import { html } from "../html.js";
import { Icon } from "../icons.js";
import { safe } from "../links.js";
import { tools } from "../tools.js";
import { argumentsOf, doing, hostOf, placeOf } from "./names.js";
import { toolTexts } from "../texts/en/tools.js";

const t = toolTexts.steps;
const ICONS = { search_web: "search", fetch_url: "docs", search_memory: "memory", find_in_files: "search" };

/** The artifact that a call has made, or null. */
const artifactOf = ({ ok, result }) => (ok && result?.id?.startsWith?.("art_") ? result : null);

/** What calls have made. */
export const Files = ({ entries }) =>
  entries.map((call) => artifactOf(call) && html`<${ArtifactCard} key=${call.id} of=${artifactOf(call)} />`);

const textOf = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

/** `entries`: calls of a timeline (run.js); `unfinished` is said of those without a result, if none run. */
export function Calls({ entries, goesOn, unfinished = t.unfinished }) {
  useEffect(() => {
    tools.ensure();
  }, []);
  const ids = new Set(entries.map(({ id }) => id));
  const outer = entries.filter(({ within }) => !ids.has(within));
  return outer.map(
    (call) => html`<${Call}
      key=${call.id}
      of=${call}
      inner=${entries.filter(({ within }) => within === call.id)}
      ...${{ goesOn, unfinished }}
    />`,
  );
}

function Call({ of, inner, goesOn, unfinished }) {
  const open = useSignal(false);
  const icon = of.ok === false ? "warning" : (ICONS[of.name] ?? "play");
  return html`
    <details
      class="tool"
      onToggle=${(event) => {
        open.value = event.currentTarget.open;
      }}
    >
      <summary>
        <${Icon} name=${icon} size=${16} /><span class="tool-name" dir="auto">${doing(of)}</span>
        <span class=${of.ok === false ? "tool-end bad" : "tool-end"}>
          ${
            of.done
              ? of.ok
                ? html`<${Icon} name="check" size=${16} />`
                : t.failed
              : goesOn
                ? html`<span class="spinner" role="img" aria-label=${t.running}></span>`
                : unfinished
          }
        </span>
      </summary>
      ${open.value && html`<${Details} of=${of} />`}
    </details>
    ${
      inner.length > 0 &&
      html`<div class="tool-inner">
        <${Calls} entries=${inner} goesOn=${goesOn} unfinished=${unfinished} />
      </div>`
    }
  `;
}

function Details({ of }) {
  const given = argumentsOf(of);
  return html`<div class="tool-body">
    ${
      of.name === "run_python" && typeof given?.code === "string"
        ? html`<${CodeBlock} text=${given.code} language="python" />`
        : html`<p class="quiet small">${t.arguments}</p>
          <pre tabindex="0">${given ? JSON.stringify(given, null, 2) : String(of.arguments)}</pre>`
    }
    ${of.done && html`<p class="quiet small">${t.result}</p><${Result} of=${of.result} />`}
  </div>`;
}

function Result({ of }) {
  const isListOf = (isOne) => Array.isArray(of) && of.length > 0 && of.every((one) => one && isOne(one));
  if (isListOf(({ url }) => safe(url)))
    return html`<ol class="found">
      ${of.map(
        ({ title, url, snippet }) => html`<li>
          <a href=${safe(url)} target="_blank" rel="noopener noreferrer" dir="auto">
            ${title || hostOf(url)}
          </a>
          <span class="quiet small"> ${hostOf(url)}</span>
          ${snippet && html`<p class="quiet small" dir="auto">${snippet}</p>`}
        </li>`,
      )}
    </ol>`;
  if (isListOf(({ file, from_line: line }) => file && line))
    return html`<ul class="found">
      ${of.map(
        (one) => html`<li>
          <span dir="auto">${one.name}</span> <span class="quiet small">[${one.number}] ${placeOf(one)}</span>
          <p class="quiet small plain-text" dir="auto">${one.text}</p>
        </li>`,
      )}
    </ul>`;
  return html`<pre tabindex="0" dir="auto">${textOf(of)}</pre>`;
}
