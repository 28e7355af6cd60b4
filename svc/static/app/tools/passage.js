// A cited passage in its file: the text around it, in a dialog, with the passage marked.
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { api } from "../api.js";
import { Button, Dialog, Failed, Loading, Notice } from "../components.js";
import { html } from "../html.js";
import { link } from "../router.js";
import { placeOf } from "./names.js";
import { toolTexts } from "../texts/en/tools.js";

const t = toolTexts.sources;
const BEGIN_CHARACTERS = 200; // of a passage, in a query

export default function Passage({ source, onClose }) {
  const { file, name, from_line: line } = source;
  const shown = useSignal(/** @type {Api.PassageList & { step: number }} */ (null)),
    error = useSignal(null),
    box = useRef(null);
  const load = async (place, join) => {
    error.value = null;
    try {
      const page = await api.artifacts.passages(file, place);
      shown.value = join(page);
    } catch (problem) {
      error.value = problem;
    }
  };
  const begin = [...source.text.slice(0, 2 * BEGIN_CHARACTERS)].slice(0, BEGIN_CHARACTERS).join("");
  const open = () => load({ line, begin }, (page) => ({ ...page, step: page.data.length }));
  useEffect(() => {
    open();
  }, []);
  const pages = shown.value ? pagesOf(shown.value.data, source) : [];
  const marked = pages.flatMap(({ parts }) => parts.flatMap(({ text, isCited }) => (isCited ? text : [])));
  const isFound = signsOf(marked.join("")) > signsOf(source.text) / 2; // a changed file may share some lines
  const isGone = error.value?.status === 404 || (shown.value && !isFound);
  useLayoutEffect(() => {
    box.current?.querySelector("mark")?.scrollIntoView({ block: "center" });
    box.current?.focus({ preventScroll: true });
  }, [shown.value !== null]);
  return html`<${Dialog} title=${name} wide onClose=${onClose}>
    <p class="quiet small">
      ${placeOf(source)} · <a href=${link("artifacts", file)} onClick=${onClose}>${t.artifact}</a>
    </p>
    ${
      isGone
        ? html`<${Notice} kind="warn" icon="warning">${t.changed}<//>
          <blockquote class="plain-text" dir="auto"><mark>${source.text}</mark></blockquote>`
        : error.value
          ? html`<${Failed} error=${error.value} retry=${open} />`
          : !shown.value && html`<${Loading} />`
    }
    ${
      isFound &&
      html`<div class="artifact-text passages" tabindex="0" role="region" aria-label=${name} ref=${box}>
        <${Text} pages=${pages} shown=${shown.value} load=${load} />
      </div>`
    }
  <//>`;
}

const signsOf = (text) => text.replace(/\s/g, "").length;

function Text({ pages, shown, load }) {
  const { data, offset, total, step } = shown,
    end = offset + data.length;
  const earlier = () =>
    load({ offset: Math.max(0, offset - step) }, (page) => ({
      ...shown,
      offset: page.offset,
      data: [...page.data.slice(0, offset - page.offset), ...data],
    }));
  const later = () => load({ offset: end }, (page) => ({ ...shown, data: [...data, ...page.data] }));
  return html`
    ${offset > 0 && html`<${Button} small onClick=${earlier}>${t.earlier}<//>`}
    ${pages.map(
      ({ page, parts }) => html`
        ${page && html`<p class="label">${t.pageHead(page)}</p>`}
        <p class="plain-text" dir="auto">
          ${parts.map(({ text, isCited }) => (isCited ? html`<mark>${text}</mark>` : text))}
        </p>
      `,
    )}
    ${end < total && html`<${Button} small onClick=${later}>${t.later}<//>`}
  `;
}

/**
 * Join passages to pages: `{page, parts: [{text, isCited}]}`. A long line has several passages, so a line is
 * cited if the source has its text too.
 * @param {Api.Passage[]} passages
 * @param {Api.Source} source
 */
function pagesOf(passages, { from_line: from, to_line: to, text: cited }) {
  const pages = [];
  let last = null;
  for (const { page, from_line: first, to_line: end, text } of passages) {
    if (!pages.length || page !== pages.at(-1).page) pages.push({ page, parts: [] });
    const { parts } = pages.at(-1);
    text.split("\n").forEach((line, at) => {
      const number = first + at,
        isCited = number >= from && number <= to && cited.includes(line);
      if (parts.length && number !== last) parts.at(-1).text += "\n";
      if (parts.at(-1)?.isCited === isCited) parts.at(-1).text += line;
      else parts.push({ text: line, isCited });
    });
    last = end;
  }
  return pages;
}
