// The sources of an answer: those that it cites, and in a fold those that its tools found besides.
import { html } from "../html.js";
import { citedIn, safe } from "../links.js";
import { hostOf } from "./names.js";
import { toolTexts } from "../texts/en/tools.js";

const t = toolTexts.sources;

export default function Sources({ text, sources }) {
  const numbers = citedIn(text),
    isCited = ({ number }) => numbers.has(`[${number}]`);
  const cited = sources.filter(isCited),
    others = sources.filter((source) => !isCited(source));
  return html`<section class="sources" aria-label=${t.title}>
    ${cited.length > 0 && html`<p class="label">${t.title}</p><${List} of=${cited} />`}
    ${
      others.length > 0 &&
      html`<details class="fold">
        <summary>${cited.length ? t.more(others.length) : t.found(others.length)}</summary>
        <${List} of=${others} />
      </details>`
    }
  </section>`;
}

const List = ({ of }) => html`<ol>
  ${of.map(({ number, url, title }) => {
    const href = safe(url),
      host = hostOf(url ?? "");
    return html`<li key=${number}>
      <span class="quiet">[${number}]</span>
      <span class="source">
        ${
          href
            ? html`<a href=${href} target="_blank" rel="noopener noreferrer" dir="auto">${title || host}</a>`
            : html`<span dir="auto">${title || host}</span>`
        }
        ${title && host && html` <span class="quiet small">${host}</span>`}
      </span>
    </li>`;
  })}
</ol>`;
