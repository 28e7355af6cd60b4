// Render Markdown: each token of marked's lexer becomes an element. HTML in the text is shown as text, and
// external images become links, so no request leaves this origin.
import { signal } from "@preact/signals";
import { Component, createRef } from "preact";
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { growing, rawOf } from "./blocks.js";
import { CodeBlock } from "./code.js";
import { html } from "./html.js";
import { cited, safe } from "./links.js";
import { whenVisible } from "./viewport.js";
import { Picture } from "./picture.js";
import { TextBlocks, linesOf } from "./text-blocks.js";
import { schedule } from "./scheduler.js";
import { inlineOf } from "./syntax.js";
import { texts } from "./texts.js";

const NAMED = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  copy: "©",
  hellip: "…",
  mdash: "—",
  ndash: "–",
  times: "×",
  rarr: "→",
  larr: "←",
};
const MOST_DEPTH = 30; // nested tokens; deeper ones are shown as plain text
const ARTIFACT = /^\/artifacts\/(art_\w+)\/content$/;

/** Decode the character references in `text`, as a browser does in HTML. */
function plain(text) {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(\w{2,8}));/gi, (whole, decimal, hex, name) => {
    if (name) return Object.hasOwn(NAMED, name) ? NAMED[name] : whole;
    const code = decimal ? Number(decimal) : parseInt(hex, 16);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

const FIRST_LETTER = /\p{L}/u;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
/** The direction of a text by its first letter. `dir="auto"` skips parts with a direction of their own. */
const directionOf = (text) => (RIGHT_TO_LEFT.test(FIRST_LETTER.exec(text)?.[0] ?? "") ? "rtl" : "ltr");

const inline = (tokens) => tokens?.map(element);
const Source = ({ text }) => html`<p class="said" dir="auto"><${TextBlocks} text=${text} /></p>`;
let depth = 0,
  inLink = false;

/** Elements are cached by token, so an unchanged token is not drawn again. */
function element(token) {
  if (token.element !== undefined) return token.element;
  depth++;
  try {
    token.element = depth > MOST_DEPTH ? html`<${Source} text=${token.raw} />` : made(token);
  } finally {
    depth--;
  }
  return token.element;
}

function made(token) {
  switch (token.type) {
    case "source":
      return html`<${Source} text=${token.raw} />`;
    case "html":
      return token.block ? htmlBlock(token.raw) : token.raw;
    case "space":
    case "def":
      return null;
    case "heading":
      return html`<h3 class="md-h${token.depth}" dir="auto">${inline(token.tokens)}</h3>`;
    case "paragraph":
      return html`<p class=${continued(token) || undefined} dir="auto">${inline(token.tokens)}</p>`;
    case "text":
      if (token.tokens) return inline(token.tokens);
      return inLink ? plain(token.text) : cited(plain(token.text));
    case "escape":
      return token.text;
    case "strong":
      return html`<strong>${inline(token.tokens)}</strong>`;
    case "em":
      return html`<em>${inline(token.tokens)}</em>`;
    case "del":
      return html`<del>${inline(token.tokens)}</del>`;
    case "element":
      return html`<${token.name}>${inline(token.tokens)}<//>`;
    case "codespan":
      return html`<code>${token.text}</code>`;
    case "br":
      return html`<br />`;
    case "hr":
      return html`<hr />`;
    case "code":
      return html`<${CodeBlock} text=${token.text} language=${token.lang?.split(/\s/)[0] ?? ""} />`;
    case "blockquote":
      return html`<blockquote class=${continued(token) || undefined} dir=${directionOf(token.text)}>
        ${inline(token.tokens)}
      </blockquote>`;
    case "list":
      return list(token);
    case "table":
      return table(token);
    case "link":
      return linked(token);
    case "image":
      return picture(token);
    case "formula":
      return html`<${Formula} text=${token.text} source=${token.raw.trim()} display=${token.display} />`;
    case "reference":
      return html`<sup><button
        type="button"
        class="footnote-link"
        aria-label=${texts.chat.footnote(token.name)}
        onClick=${toFootnote(token.name)}
      >${token.name}</button></sup>`;
    case "footnote":
      return html`<p class="footnote" dir="auto" tabindex="-1" data-footnote=${token.name}>
        <sup>${token.name}</sup> ${inline(token.tokens)}
      </p>`;
    case "details":
      return html`<${Details} summary=${inline(token.tokens)} text=${token.text} />`;
    case "checkbox":
      return null; // its list item shows it
    default:
      return token.raw;
  }
}

/** A block that begins with an element that is drawn inside a paragraph is a paragraph. */
function htmlBlock(raw) {
  const tokens = inlineOf(raw);
  return tokens[0]?.type === "br" || tokens[0]?.type === "element"
    ? html`<p dir="auto">${inline(tokens)}</p>`
    : html`<${Source} text=${raw} />`;
}

const formula = signal(null); // the component, loaded with the first formula

function Formula(props) {
  useEffect(() => {
    const loaded = (/** @type {typeof import("./math.js")} */ module) => {
      formula.value = module.Formula;
    };
    if (!formula.peek()) import("./math.js").then(loaded, () => {}); // offline: the source stays
  }, []);
  return formula.value ? html`<${formula.value} ...${props} />` : props.source;
}

/** Show a footnote. If it is not drawn yet, show the end of the text, where footnotes usually are. */
const toFootnote = (name) => (event) => {
  const text = event.currentTarget.closest(".md");
  const note = text.querySelector(`[data-footnote="${CSS.escape(name)}"]`) ?? text.lastElementChild;
  note.scrollIntoView({ block: "nearest" });
  note.focus?.({ preventScroll: true });
};

/** A folded section. Its text is drawn when it is first opened. */
function Details({ summary, text }) {
  const [open, setOpen] = useState(false);
  return html`<details class="md-details" onToggle=${(event) => setOpen(event.currentTarget.open || open)}>
    <summary dir="auto">${summary.length ? summary : texts.chat.details}</summary>
    ${open && html`<${Markdown} text=${text} />`}
  </details>`;
}

/** The class of a part that continues the part before it. */
const continued = (token) => (token?.continued ? `continued-${token.type}` : "");

function list({ ordered, start, items, ...token }) {
  const entries = items.map(
    (item) => html`<li class=${item.continued ? "continued" : item.task ? "task" : undefined}>
      ${
        item.task &&
        !item.continued &&
        html`<input
          type="checkbox"
          checked=${item.checked}
          disabled
          aria-label=${plain(item.text.slice(0, 80))}
        />`
      }
      ${inline(item.tokens)}
    </li>`,
  );
  const dir = directionOf(items.map(({ text }) => text).join(" "));
  // Content left of its part is not painted
  const digits = String(Number(start) + items.length - 1).length;
  return ordered
    ? html`<ol
      dir=${dir}
      start=${start}
      style=${digits > 1 ? { paddingInlineStart: `${digits + 2}ch` } : undefined}
      class=${continued(token) || undefined}
    >${entries}</ol>`
    : html`<ul dir=${dir} class=${continued(token) || undefined}>${entries}</ul>`;
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const NARROW = 12,
  PADDING = 5,
  LEAST_WIDE = 22; // in characters: a narrow column keeps its width, the others share the rest
const inWidths = (widths) => ({
  width: `min(100%, ${sum(widths.map((width) => width + PADDING))}ch)`,
  minWidth: `${sum(widths.map((width) => (width > NARROW ? LEAST_WIDE : width + PADDING)))}ch`,
});

function table({ header, rows, align, widths, ...token }) {
  const cell = (tag) => (one, at) =>
    html`<${tag}
      class=${align[at] ? `align-${align[at]}` : undefined}
      scope=${tag === "th" ? "col" : undefined}
      dir="auto"
    >${inline(one.tokens)}<//>`;
  return html`<div
    class="md-table ${continued(token)}"
    dir=${directionOf(header.map(({ text }) => text).join(" "))}
    tabindex="0"
    role="group"
    aria-label=${header.map(({ text }) => text).join(", ")}
  >
    <table class=${widths && "in-widths"} style=${widths && inWidths(widths)}>
      ${
        widths &&
        html`<colgroup>
          ${widths.map(
            (width) => html`<col
            style=${{ width: width > NARROW ? "auto" : `${width + PADDING}ch` }}
          />`,
          )}
        </colgroup>`
      }
      <thead class=${token.continued ? "hidden-text" : undefined}><tr>${header.map(cell("th"))}</tr></thead>
      <tbody>${rows.map((row) => html`<tr>${row.map(cell("td"))}</tr>`)}</tbody>
    </table>
  </div>`;
}

function linked(token) {
  const href = safe(token.href);
  if (!href) return inline(token.tokens);
  inLink = true; // a citation there stays text
  const inside = inline(token.tokens);
  inLink = false;
  return html`<a href=${href} target="_blank" rel="noopener noreferrer" title=${href}>
    ${inside}
  </a>`;
}

function picture({ href, text }) {
  const artifact = ARTIFACT.exec(href)?.[1];
  if (artifact) return html`<${Picture} id=${artifact} name=${plain(text)} />`;
  const address = safe(href);
  return address
    ? html`<a href=${address} target="_blank" rel="noopener noreferrer" title=${address}>
      ${plain(text) || address}
    </a>`
    : plain(text);
}

const READ_AT_ONCE = 1_500; // characters
const SLICE_CHARACTERS = [100, 50_000]; // minimum (also of the first slice) and maximum
const SLICE_MS = 4;
const IDLE_SHARE = 3; // while a text grows: milliseconds for other work per millisecond of drawing
const SECTION = 20; // groups of blocks

/**
 * Return the next `size` characters of `whole` after `known`, or its first ones if it does not start with
 * `known`.
 */
const onward = (known, whole, size) =>
  whole.slice(0, (whole.startsWith(known) ? known.length : 0) + Math.round(size));
const normal = (text) => (text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text);

/**
 * Render Markdown. `text`: a string, or a signal while it grows. A long text is parsed in slices so that the
 * page stays responsive. Until a string is parsed, its plain text is shown.
 */
export function Markdown({ text }) {
  const [, draw] = useState(0),
    isLive = typeof text !== "string";
  const now = useMemo(
    () => ({
      read: growing(),
      known: "",
      groups: [],
      drawn: null,
      shown: Infinity, // characters
      slice: SLICE_CHARACTERS[0],
      rest: 0,
      cancel: null,
      plan: null,
    }),
    [],
  );
  const whole = () => normal(isLive ? text.peek() : text);
  const show = () => {
    [now.drawn, now.shown] = [now.groups, now.known.length];
    draw((times) => times + 1);
  };
  // A timer runs after the frame. Its layout takes most of the time in a long text.
  const restFrom = (begun) => {
    now.rest = Infinity;
    setTimeout(() => {
      const end = performance.now();
      now.rest = end + (end - begun) * IDLE_SHARE;
      now.plan();
    });
  };
  const step = () => {
    const begun = performance.now(),
      wasLong = now.drawn !== now.groups,
      [least, most] = SLICE_CHARACTERS;
    now.known = onward(now.known, whole(), now.slice);
    now.groups = now.read(now.known);
    // A slice that takes long, as the first one that runs the parser, is drawn in another frame.
    const mayDraw = wasLong || performance.now() - begun < SLICE_MS;
    if (mayDraw && (isLive || now.known.length > now.shown)) show();
    const spent = performance.now() - begun;
    if (isLive) restFrom(begun);
    now.slice = Math.min(most, Math.max(least, now.slice * Math.min(4, SLICE_MS / spent)));
    now.cancel = null;
    now.plan();
  };
  now.plan = () => {
    const isRead = now.known === whole();
    if (now.cancel || (isRead && now.drawn === now.groups)) return;
    const turn = () => {
      now.cancel = schedule(
        isRead
          ? () => {
              now.cancel = null;
              show();
            }
          : step,
      );
    };
    const wait = now.rest - performance.now();
    if (wait === Infinity) return;
    if (wait <= 0) return turn();
    const timer = setTimeout(turn, wait);
    now.cancel = () => clearTimeout(timer);
  };
  if (!now.drawn && whole().length <= READ_AT_ONCE) {
    now.known = whole();
    now.drawn = now.groups = now.read(now.known);
    now.shown = now.known.length;
  }
  useLayoutEffect(() => now.plan(), [text]);
  useEffect(() => (isLive ? text.subscribe(() => now.plan()) : undefined), [text]);
  useEffect(() => () => now.cancel?.(), []);
  if (!now.drawn) return html`<div class="md far"><${Source} text=${whole()} /></div>`;
  const atOnce = isLive || now.drawn.length < 3,
    sections = [];
  for (let at = 0; at < now.drawn.length; at += SECTION) sections.push(now.drawn.slice(at, at + SECTION));
  const inSection = (groups, isLast) => inParts(groups, (tokens) => tokens.map(element), isLast, atOnce);
  return html`<div class="md">
    ${inParts(sections, inSection, true, true)}
  </div>`;
}

/**
 * Draw `parts`, each a list, with `draw(part, isLast)`. The last one is drawn at once if `atOnce`, the
 * others when they come near the screen.
 */
const inParts = (parts, draw, areLast, atOnce) =>
  parts.map((part, at) => {
    const isLast = areLast && at === parts.length - 1;
    return html`<${Part} key=${at} part=${part} draw=${draw} isLast=${isLast} atOnce=${atOnce && isLast} />`;
  });

const LINE_HEIGHTS = { table: 1.5, list: 1.15, code: 0.9 };
const linesHigh = (tokens) => sum(tokens.map(({ type, raw }) => linesOf(raw) * (LINE_HEIGHTS[type] ?? 1)));

/**
 * Plain text until it is near the screen, and laid out only while it is. `part`: tokens, or groups of
 * tokens.
 */
class Part extends Component {
  state = { visible: this.props.atOnce };
  box = createRef();

  componentDidMount() {
    this.cancelDraw = whenVisible(this.box.current, () => this.setState({ visible: true }));
  }

  componentWillUnmount() {
    this.cancelDraw?.();
  }

  shouldComponentUpdate({ part, isLast }, { visible }) {
    const shown = this.props.part;
    return (
      visible !== this.state.visible ||
      isLast !== this.props.isLast ||
      part.length !== shown.length ||
      part.some((one, at) => one !== shown[at])
    );
  }

  render({ part, draw, isLast }, { visible }) {
    const tokens = part.flat(),
      classes = `md-part ${continued(tokens[0])} ${isLast ? "last" : ""}`;
    const style = isLast
      ? undefined
      : { containIntrinsicBlockSize: `auto ${linesHigh(tokens).toFixed(1)}lh` };
    if (!visible)
      return html`<div class="${classes} said far" style=${style} ref=${this.box}>
        <${TextBlocks} text=${rawOf(tokens)} />
      </div>`;
    return html`<div class=${classes} style=${style}>${draw(part, isLast)}</div>`;
  }
}
