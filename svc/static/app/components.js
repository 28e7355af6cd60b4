// Components of the views. Each accepts the attributes of a plain element (class, id, data-…) too.
import { signal, useSignal } from "@preact/signals";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { online } from "./api.js";
import { ago, balance, cost, dateTime, dayOfMonth } from "./format.js";
import { html } from "./html.js";
import { Icon } from "./icons.js";
import { link } from "./router.js";
import { detailOf, sentenceOf } from "./sentences.js";
import { wallet } from "./state.js";
import { texts } from "./texts.js";

const t = texts.common;
const ONLINE_RETRIES = 5;
const names = (...list) => list.filter(Boolean).join(" ");

/**
 * A button. `kind`: "primary", "plain" (the default), "quiet" or "danger"; `icon`; `busy` shows work in
 * progress.
 */
export function Button({
  kind = "plain",
  icon,
  busy,
  small,
  children,
  class: extra,
  disabled,
  href,
  ...rest
}) {
  const content = html`
    ${
      busy
        ? html`<span class="spinner" aria-hidden="true"></span>`
        : icon && html`<${Icon} name=${icon} size=${18} />`
    }
    ${children}
  `;
  const look = names("button", `button-${kind}`, small && "button-small", extra);
  if (href) return html`<a class=${look} href=${href} ...${rest}>${content}</a>`;
  return html`<button
    type="button"
    class=${look}
    disabled=${disabled || busy}
    aria-busy=${busy ? "true" : undefined}
    ...${rest}
  >${content}</button>`;
}

/** An icon button. `label` is its accessible name and tooltip. */
export function IconButton({ icon, label, size = 20, class: extra, href, ...rest }) {
  const look = names("icon-button", extra);
  const content = html`<${Icon} name=${icon} size=${size} />`;
  if (href)
    return html`<a class=${look} href=${href} aria-label=${label} title=${label} ...${rest}>${content}</a>`;
  return html`<button type="button" class=${look} aria-label=${label} title=${label} ...${rest}>
    ${content}
  </button>`;
}

/**
 * A labelled input. `hint` and `error` describe it. `rows` makes it a text area, `options` ([value, text]) a
 * select.
 */
export function Field({ label, hint, error, rows, options, hideLabel, class: extra, ...input }) {
  const id = useId();
  const told = names(hint && `${id}-hint`, error && `${id}-error`) || undefined;
  const common = { id, "aria-describedby": told, "aria-invalid": error ? "true" : undefined, ...input };
  const control = options
    ? html`<select class="input" ...${common}>
      ${options.map(
        ([value, text]) => html`<option
        value=${value}
        selected=${value === (input.value ?? input.defaultValue)}
      >${text}</option>`,
      )}
    </select>`
    : rows
      ? html`<textarea class="input" rows=${rows} ...${common}></textarea>`
      : html`<input class="input" ...${common} />`;
  return html`<div class=${names("field", extra)}>
    <label for=${id} class=${hideLabel ? "hidden-text" : undefined}>${label}</label>
    ${control}
    ${hint && html`<p class="hint" id="${id}-hint">${hint}</p>`}
    ${error && html`<p class="field-error" id="${id}-error">${error}</p>`}
  </div>`;
}

/** A switch that is on or off: `onChange(on)`. */
export function Switch({ label, hint, checked, onChange, disabled }) {
  const id = useId();
  return html`<div class="switch-row">
    <div><label for=${id}>${label}</label>${hint && html`<p class="hint" id="${id}-hint">${hint}</p>`}</div>
    <input
      id=${id}
      class="switch"
      type="checkbox"
      role="switch"
      checked=${checked}
      disabled=${disabled}
      aria-describedby=${hint ? `${id}-hint` : undefined}
      onChange=${(event) => onChange(event.currentTarget.checked)}
    />
  </div>`;
}

/** The frame of a page: a heading, actions at its right, and the content in a column (`wide` for tables). */
export function Page({ title, intro, actions, wide, children }) {
  return html`<div class=${names("page", wide && "page-wide")}>
    <header class="page-head">
      <div><h1 tabindex="-1">${title}</h1>${intro && html`<p class="quiet">${intro}</p>`}</div>
      ${actions && html`<div class="actions">${actions}</div>`}
    </header>
    ${children}
  </div>`;
}

export function Loading({ label = t.loading }) {
  return html`<div class="state" role="status">
    <span class="spinner" aria-hidden="true"></span><span>${label}</span>
  </div>`;
}

/** An empty state. Children are actions. */
export function Empty({ icon, title, text, children }) {
  return html`<div class="empty">
    ${icon && html`<${Icon} name=${icon} size=${28} />`}<p class="empty-title">${title}</p>
    ${text && html`<p class="quiet">${text}</p>`}
    ${children && html`<div class="actions">${children}</div>`}
  </div>`;
}

/**
 * An error with an action: no funds links to the wallet, a limit counts down, a lost connection can be
 * retried, and is retried when the browser is online again unless `manual`, and if `mayRetry()` then.
 * `retries`: a ref of the caller, if this component does not stay during a retry. `actions`: further
 * buttons.
 */
export function Failed({ error, retry, manual, mayRetry = () => true, retries, actions, children }) {
  const ownRetries = useRef(0);
  retries ??= ownRetries; // left; the first request on a new connection may fail as well
  const wasOffline = useRef(false);
  wasOffline.current ||= error.status === 0 && !online.value;
  useEffect(() => {
    if (error.status !== 0 || manual || !retry) return undefined;
    if (!online.value) retries.current = ONLINE_RETRIES;
    if (!online.value || !retries.current) return undefined;
    const timer = setTimeout(() => mayRetry() && retry(), (ONLINE_RETRIES - retries.current) * 1000);
    retries.current--;
    return () => clearTimeout(timer);
  }, [error, online.value]);
  const left = useCountdown(error.retryAfter, error);
  const offline = error.status === 0;
  const noFunds = error.code === "insufficient_funds";
  const lost = online.value ? (wasOffline.current ? t.wasOffline : t.unreachable) : t.offline;
  const text = offline ? lost : noFunds ? fundsText() : sentenceOf(error),
    detail = offline ? null : detailOf(error);
  return html`<div class="notice notice-bad" role="alert">
    <${Icon} name="warning" />
    <div class="notice-text">
      <p>${error.code === "connection_lost" ? t.connectionLost : text}</p>${children}
      ${detail && html`<small lang="en" dir="ltr">${detail}</small>`}
      ${error.request_id && html`<small>${t.requestId} ${error.request_id}</small>`}
    </div>
    <div class="actions">
      ${actions}
      ${
        noFunds &&
        wallet.data.value?.payments !== "none" &&
        html`<${Button} small kind="primary" icon="plus" href="/checkout" onClick=${comeBack}>
          ${t.addFunds}
        <//>`
      }
      ${
        error.code === "spending_limit_reached" &&
        html`<${Button} small href=${link("wallet")}>${t.toWallet}<//>`
      }
      ${
        retry &&
        html`<${Button} small icon="retry" disabled=${left > 0} onClick=${retry}>
          ${left > 0 ? t.retryIn(left) : t.retry}
        <//>`
      }
    </div>
  </div>`;
}

/** Return here after the payment (main.js). */
export const comeBack = () => sessionStorage.setItem("svc.checkout-return", location.hash);

function fundsText() {
  const account = wallet.data.value;
  if (!account) return t.noFunds;
  const { available_micros: available, payments, allowance_renews_at: renewsAt } = account;
  return [
    t.noFundsOf(balance(available)),
    renewsAt && t.renews(dayOfMonth(renewsAt)),
    payments === "none" && texts.wallet.noPayments(account.contact),
  ]
    .filter(Boolean)
    .join(" ");
}

/** The remaining seconds of `seconds` since `key` changed, counting down. */
function useCountdown(seconds, key) {
  const left = useSignal(seconds ?? 0);
  useEffect(() => {
    const end = Date.now() + (seconds ?? 0) * 1000;
    const tell = () => {
      left.value = Math.max(0, Math.ceil((end - Date.now()) / 1000));
    };
    tell();
    const timer = setInterval(tell, 250);
    return () => clearInterval(timer);
  }, [key]);
  return left.value;
}

/** An inline notice. `kind`: "info" (the default), "good" or "bad". */
export function Notice({ kind = "info", icon, children, action }) {
  return html`<div class="notice notice-${kind}" role=${kind === "bad" ? "alert" : "status"}>
    ${icon && html`<${Icon} name=${icon} />`}<div class="notice-text">${children}</div>${action}</div>`;
}

/** A resource (state.js) in its four states. The child is a function of its data. */
export function Resource({ of, children }) {
  useEffect(() => {
    of.ensure();
  }, [of]);
  if (of.data.value !== undefined) return children(of.data.value);
  return of.error.value
    ? html`<${Failed} error=${of.error.value} retry=${of.reload} />`
    : html`<${Loading} />`;
}

/** A paged list (state.js). `children` draws one item; `empty` is the empty state. */
export function List({ of, empty, children, class: extra = "list", as = "ul" }) {
  useEffect(() => {
    of.ensure();
  }, [of]);
  const items = of.items.value,
    error = of.error.value;
  if (items === undefined)
    return error ? html`<${Failed} error=${error} retry=${of.reload} />` : html`<${Loading} />`;
  if (!items.length && !error) return empty;
  return html`<${as} class=${extra}>${items.map(children)}<//>
    ${
      error
        ? html`<${Failed} error=${error} retry=${items.length ? of.loadMore : of.reload} />`
        : of.more.value &&
          html`<div class="more"><${Button} busy=${of.busy.value} onClick=${of.loadMore}>${t.more}<//></div>`
    }`;
}

/** Focus the view, so that the next Tab starts there and not at the top of the page. */
export const focusContent = () => document.getElementById("content")?.focus({ preventScroll: true });

/** A modal dialog; Escape or a click outside closes it. `footer`: its buttons. */
export function Dialog({ title, onClose, footer, wide, children, class: extra, dismissable = true }) {
  const dialog = useRef(null),
    id = useId();
  useLayoutEffect(() => {
    const box = dialog.current;
    box.showModal();
    return () => {
      box.close(); // also focuses the element that had the focus before
      if (document.activeElement === document.body) focusContent();
    };
  }, []);
  const cancel = (event) => {
    event.preventDefault();
    if (dismissable) onClose();
  };
  const outside = (event) => {
    const isFirst = event.detail < 2; // the second click of the one that opened it is none
    if (event.target === dialog.current && dismissable && isFirst) onClose();
  };
  return html`<dialog
    ref=${dialog}
    class=${names("dialog", wide && "dialog-wide", extra)}
    aria-labelledby=${id}
    onCancel=${cancel}
    onMouseDown=${outside}
  >
    <div class="dialog-inner">
      <header class="dialog-head"><h2 id=${id}>${title}</h2>
        ${dismissable && html`<${IconButton} icon="close" label=${t.close} onClick=${onClose} />`}</header>
      <div class="dialog-body">${children}</div>
      ${footer && html`<footer class="actions dialog-foot">${footer}</footer>`}
    </div>
  </dialog>`;
}

const question = signal(null);

/** Ask for confirmation: `await confirm({title, text, action, danger})` is true if the user confirms. */
export function confirm(what) {
  return new Promise((resolve) => {
    question.value = { ...what, resolve };
  });
}

/**
 * A button with a menu. `items` are `{label, icon, onSelect or href, danger, checked}`; false items are left
 * out.
 */
export function Menu({ label, icon = "more", items, trigger, class: extra }) {
  const open = useSignal(false),
    box = useRef(null);
  const close = (refocus) => {
    open.value = false;
    if (refocus) box.current.querySelector("[aria-haspopup]").focus();
  };
  useLayoutEffect(() => {
    if (!open.value) return undefined;
    const list = box.current.querySelector("[role=menu]");
    placeBeside(list, box.current);
    list.querySelector("[role^=menuitem]")?.focus();
    const outside = (event) => {
      if (!box.current.contains(event.target)) close(false);
    };
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, [open.value]);
  const move = (event) => {
    const entries = [...box.current.querySelectorAll("[role^=menuitem]")],
      at = entries.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + entries.length, Home: 0, End: entries.length - 1 }[
      event.key
    ];
    if (event.key === "Escape") {
      event.stopPropagation();
      close(true);
    } else if (event.key === "Tab") close(false);
    else if (to !== undefined) {
      event.preventDefault();
      entries[to % entries.length].focus();
    }
  };
  const entry = ({ label: text, icon: sign, onSelect, href, danger, checked }) => {
    const content = html`
      ${sign && html`<${Icon} name=${sign} size=${18} />`}<span>${text}</span>
      ${checked && html`<${Icon} name="check" size=${18} />`}
    `;
    const common = {
      role: checked === undefined ? "menuitem" : "menuitemradio",
      "aria-checked": checked,
      tabindex: -1,
      class: names("menu-item", danger && "danger"),
    };
    const select = () => {
      close(true);
      onSelect?.();
    };
    return href
      ? html`<a ...${common} href=${href} onClick=${() => close(false)}>${content}</a>`
      : html`<button type="button" ...${common} onClick=${select}>${content}</button>`;
  };
  const toggle = {
    "aria-haspopup": "menu",
    "aria-expanded": String(open.value),
    onClick: () => {
      open.value = !open.value;
    },
  };
  return html`<div class=${names("menu", extra)} ref=${box} onKeyDown=${open.value ? move : undefined}>
    ${trigger ? trigger(toggle) : html`<${IconButton} icon=${icon} label=${label} ...${toggle} />`}
    ${
      open.value &&
      html`<div class="menu-list" role="menu" popover="manual" aria-label=${label}>
        ${items.filter(Boolean).map(entry)}
      </div>`
    }
  </div>`;
}

/** Show `list` on top, below `anchor` or above it if there is no room. */
export function placeBeside(list, anchor) {
  list.showPopover();
  const place = anchor.getBoundingClientRect(),
    gap = 4,
    margin = 8;
  const below = place.bottom + gap,
    fits = below + list.offsetHeight + margin <= innerHeight;
  const [left, right] = [place.left, place.right - list.offsetWidth],
    fromRight = document.dir === "rtl" ? right >= margin : left + list.offsetWidth + margin > innerWidth;
  const start = fromRight ? right : left;
  list.style.top = `${fits ? below : Math.max(margin, place.top - gap - list.offsetHeight)}px`;
  list.style.left = `${Math.max(margin, Math.min(start, innerWidth - list.offsetWidth - margin))}px`;
}

const toasts = signal([]);
let lastToast = 0;

/**
 * Show a toast. `action`: {label, onSelect}; `onGone(acted)` is called when it closes. Returns a function
 * that closes it.
 * @param {string} text
 * @param {{action?: {label: string, onSelect: () => void}, kind?: string, seconds?: number,
 *   onGone?: (acted: boolean) => void}} [options]
 */
export function toast(text, { action, kind = "info", seconds = action ? 8 : 4, onGone } = {}) {
  const id = ++lastToast;
  const end = (acted) => {
    if (!toasts.peek().some((one) => one.id === id)) return;
    toasts.value = toasts.peek().filter((one) => one.id !== id);
    onGone?.(acted);
  };
  toasts.value = [...toasts.peek(), { id, text, action, kind, seconds, end }];
  return () => end(false);
}

function Toast({ text, action, kind, seconds, end }) {
  const timer = useRef(null);
  const hold = () => clearTimeout(timer.current);
  const go = () => {
    hold();
    timer.current = setTimeout(() => end(false), seconds * 1000);
  };
  useEffect(() => {
    go();
    return hold;
  }, []);
  return html`<div
    class="toast toast-${kind}"
    onMouseEnter=${hold}
    onMouseLeave=${go}
    onFocusin=${hold}
    onFocusout=${go}
  >
    <span>${text}</span>
    ${
      action &&
      html`<button
        type="button"
        class="toast-action"
        onClick=${() => {
          action.onSelect();
          end(true);
        }}
      >${action.label}</button>`
    }
    <${IconButton} icon="close" size=${16} label=${t.dismiss} onClick=${() => end(false)} />
  </div>`;
}

/** The layer above every view: the confirmation dialog and the toasts. */
export function Overlays() {
  const asked = question.value;
  const answer = async (yes) => {
    question.value = null;
    asked.resolve(yes);
    if (!yes || !asked.danger) return;
    // The deleted entry has the focus; it disappears.
    await new Promise((resolve) => {
      setTimeout(resolve);
    });
    focusContent();
  };
  return html`
    ${
      asked &&
      html`<${Dialog}
        key=${asked.title}
        title=${asked.title}
        onClose=${() => answer(false)}
        footer=${html`
          <${Button} onClick=${() => answer(false)}>${t.cancel}<//>
          <${Button} kind=${asked.danger ? "danger" : "primary"} onClick=${() => answer(true)}>
            ${asked.action}
          <//>
        `}
      ><p>${asked.text}</p><//>`
    }
    <div class="toasts" role="status" aria-live="polite">
      ${toasts.value.map((one) => html`<${Toast} key=${one.id} ...${one} />`)}
    </div>
  `;
}

/** Copy text and announce it. `text` may be a function. */
export function CopyButton({ text, label = t.copy, withLabel = false, ...rest }) {
  const done = useSignal(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
      done.value = true;
      setTimeout(() => {
        done.value = false;
      }, 2000);
    } catch {
      toast(t.cannotCopy, { kind: "bad" });
    }
  };
  const icon = done.value ? "check" : "copy",
    says = done.value ? t.copied : label;
  return withLabel
    ? html`<${Button} small icon=${icon} onClick=${copy} aria-live="polite" ...${rest}>${says}<//>`
    : html`<${IconButton} icon=${icon} size=${18} label=${says} onClick=${copy} ...${rest} />`;
}

/** Format micros: a cost to its last digit, or whole cents with `as="balance"`. */
export function Money({ micros, as = "cost" }) {
  return html`<span class="money">${as === "balance" ? balance(micros) : cost(micros)}</span>`;
}

/** A relative time ("5 minutes ago"); the tooltip is the exact time. */
export function Time({ at }) {
  return html`<time datetime=${at} title=${dateTime(at)}>${ago(at)}</time>`;
}

/** A progress bar; without `value` it is indeterminate. */
export function Progress({ label, value, max }) {
  return html`<div class="progress" role="status">
    <span>${label}</span>
    <progress aria-label=${label} value=${value} max=${max}></progress>
  </div>`;
}
