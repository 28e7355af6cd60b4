// The sources of an answer: those that it cites, and in a fold those that its tools found besides. A passage
// opens in its file. Quotations that are not in their passages are listed with a warning.
import { Notice } from "../components.js";
import { html } from "../html.js";
import { Lazy } from "../lazy.js";
import { FileCitation, citedIn, safe, shownSource } from "../links.js";
import { hostOf, placeOf } from "./names.js";
import { toolTexts } from "../texts/en/tools.js";

const t = toolTexts.sources;

export default function Sources({ text, sources, citations = [] }) {
  const numbers = citedIn(text),
    isCited = ({ number }) => numbers.has(`[${number}]`);
  const cited = sources.filter(isCited),
    others = sources.filter((source) => !isCited(source));
  const shown = shownSource.value;
  return html`<section class="sources" aria-label=${t.title}>
    <${Unverified} citations=${citations.filter(({ verified }) => verified === false)} sources=${sources} />
    ${cited.length > 0 && html`<p class="label">${t.title}</p><${List} of=${cited} />`}
    ${
      others.length > 0 &&
      html`<details class="fold">
        <summary>${cited.length ? t.more(others.length) : t.found(others.length)}</summary>
        <${List} of=${others} />
      </details>`
    }
    ${
      sources.includes(shown) &&
      html`<${Lazy}
        name="passage"
        from=${() => import("./passage.js")}
        source=${shown}
        onClose=${() => {
          shownSource.value = null;
        }}
      />`
    }
  </section>`;
}

function Unverified({ citations, sources }) {
  if (!citations.length) return null;
  return html`<${Notice} kind="warn" icon="warning">
    <p>${t.unverified(citations.length)}</p>
    <ul>
      ${citations.map(({ number, quotation }) => {
        const source = sources.find((one) => one.number === number);
        return html`<li dir="auto">
          “${quotation}” ${source && html`<${FileCitation} source=${source} />`}
        </li>`;
      })}
    </ul>
  <//>`;
}

const List = ({ of }) => html`<ol>
  ${of.map(
    (source) => html`<li key=${source.number}>
      <span class="quiet">[${source.number}]</span>
      <span class="source">
        <${source.kind === "file" ? OfFile : OfPage} source=${source} />
      </span>
    </li>`,
  )}
</ol>`;

const OfFile = ({
  source,
}) => html`<${FileCitation} source=${source}><span dir="auto">${source.name}</span><//>
  <span class="quiet small"> ${placeOf(source)}</span>`;

function OfPage({ source: { url, title } }) {
  const href = safe(url),
    host = hostOf(url ?? "");
  return html`
    ${
      href
        ? html`<a href=${href} target="_blank" rel="noopener noreferrer" dir="auto">${title || host}</a>`
        : html`<span dir="auto">${title || host}</span>`
    }
    ${title && host && html` <span class="quiet small">${host}</span>`}
  `;
}
