// The frame of every view: navigation with the conversations (a drawer on a narrow page), and notices above.
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { expired, online, session, signOut } from "./api.js";
import { IconButton, Menu, Notice } from "./components.js";
import { balance, cost, dayOfMonth } from "./format.js";
import { html } from "./html.js";
import { Icon } from "./icons.js";
import { Lazy } from "./lazy.js";
import { go, link } from "./router.js";
import { isAllowanceLow, isNearLimit, me, preview, remembered, theme, wallet } from "./state.js";
import { texts } from "./texts.js";
import { pair } from "./texts/locale.js";
import { Conversations, focusSearch } from "./conversations.js";

const t = texts.shell;
const MAIN = [
  ["agents", "agents"],
  ["media", "image"],
  ["artifacts", "artifacts"],
  ["projects", "folder"],
];
const ACCOUNT = [
  ["prompts", "edit"],
  ["keys", "key"],
  ["providers", "provider"],
  ["wallet", "wallet"],
  ["settings", "settings"],
  ["support", "support"],
];
const LOW_MICROS = 1_000_000;
const lowBalanceShown = remembered("low-balance-shown", "");
const nearLimitShown = remembered("near-limit-shown", "");
const keyLimitShown = remembered("key-limit-shown", "");
// Whether it is open, and whether the search has the focus
const isSandbox = remembered("sandbox", false); // so that the next load shows it from the start
const drawer = signal(/** @type {boolean | "search"} */ (false));
const keyList = signal(false);
const warnings = signal(/** @type {{text: string, label: string, href: string}[]} */ ([]));
const signInAgain = signal(null); // the component, once it is needed

/** Load the component. After an upgrade of the service, that needs the new page. */
async function loadSignInAgain() {
  try {
    signInAgain.value = (await import("./sign-in-again.js")).SignInAgain;
  } catch {
    if (online.peek()) location.reload();
  }
}

/** Whether a key press is typing. */
const isTyping = ({ target }) => target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);

export default function Shell({ view, children }) {
  const main = useRef(null),
    first = useRef(true);
  useEffect(() => {
    wallet.ensure();
    if (view !== "settings") me.ensure(); // the settings load it themselves
  }, []);
  useEffect(() => {
    if (expired.value && !signInAgain.peek()) loadSignInAgain();
  }, [expired.value, online.value]);
  useEffect(() => {
    if (wallet.data.value) isSandbox.value = wallet.data.value.payments === "sandbox";
    tellLow(wallet.data.value);
  }, [wallet.data.value]);
  useEffect(() => {
    drawer.value = false;
    preview.value = null;
    // Move focus to the heading of the new view for screen readers. The first view keeps the browser's
    // focus.
    if (!first.current && !isTyping({ target: document.activeElement }))
      main.current.focus({ preventScroll: true });
    first.current = false;
  }, [view]);
  useEffect(() => {
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return html`
    <a
      class="skip"
      href="#content"
      onClick=${(event) => {
        event.preventDefault();
        main.current.focus();
      }}
    >${t.skip}</a>
    <div class=${view === "chat" ? "shell in-chat" : "shell"}>
      <${Sidebar} view=${view} />
      <main id="content" class="main" tabindex="-1" ref=${main}>
        <div class="top-bar">
          <${IconButton}
            icon="menu"
            label=${t.openNavigation}
            aria-expanded=${String(Boolean(drawer.value))}
            onClick=${() => {
              drawer.value = true;
            }}
          />
          <a class="brand top-title" href=${link("chat")} tabindex="-1" aria-hidden="true">${texts.name}</a>
          ${isSandbox.value && html`<span class="badge top-badge">${t.testMoney}</span>`}
          <${IconButton} icon="edit" label=${t.newChat} href=${link("chat")} />
        </div>
        ${!online.value && html`<p class="offline" role="status">${t.offline}</p>`}
        ${warnings.value.map((one) => html`<${Warning} key=${one.text} of=${one} />`)}
        ${children}
      </main>
      ${preview.value && html`<${preview.value.Panel} ...${preview.value} />`}
    </div>
    ${
      keyList.value &&
      html`<${Lazy} quiet name="shortcuts" from=${() => import("./shortcuts.js")} opened=${keyList} />`
    }
    ${expired.value && signInAgain.value && html`<${signInAgain.value} />`}
  `;
}

/**
 * Warn of a low balance, but not an account that never had funds, of an allowance of which 80 % is used,
 * and of a limit of the account or of an API key that is reached or nearly reached.
 */
function tellLow(account) {
  if (!account) return;
  const { available_micros: left, allowance_renews_at: renewsAt, key_with_least_left: key } = account;
  const low = left < LOW_MICROS && (account.tier === "pro" || account.wallet_balance_micros > 0);
  if (low || isAllowanceLow(account)) {
    const renews = renewsAt ? texts.common.renews(dayOfMonth(renewsAt)) : "";
    warnOnceADay(lowBalanceShown, `${texts.wallet.low(balance(left))} ${renews}`);
  }
  if (isNearLimit(account)) tellLimit(nearLimitShown, account);
  if (key && isNearLimit(key)) tellLimit(keyLimitShown, key, key);
}

/** Warn of the limit of the account or of a key, once a day that it is near, and once that it is reached. */
function tellLimit(shown, { monthly_limit_micros: limit, spent_this_month_micros: spent }, key = null) {
  const tell = spent < limit ? "nearLimit" : "limitReached";
  const text = texts.wallet[tell](texts.wallet.limitOf(key?.name), cost(spent), cost(limit));
  warnOnceADay(shown, text, key ? "keys" : "wallet", `${tell} ${key?.id ?? ""}`);
}

/** Show a warning above the view, with a link to the view `to`. */
function warnOnceADay(shown, text, to = "wallet", about = "") {
  const today = `${new Date().toISOString().slice(0, 10)} ${about}`;
  if (shown.peek() === today) return;
  shown.value = today;
  const label = to === "keys" ? texts.views.keys : texts.common.toWallet;
  warnings.value = [...warnings.peek(), { text, label, href: link(to) }];
}

function Warning({ of }) {
  const dismiss = () => {
    warnings.value = warnings.peek().filter((one) => one !== of);
  };
  return html`<${Notice} kind="warn" action=${html`
    <${IconButton} icon="close" size=${16} label=${texts.common.dismiss} onClick=${dismiss} />
  `}>${of.text} <a href=${of.href} onClick=${dismiss}>${of.label}</a><//>`;
}

function Sidebar({ view }) {
  const side = useRef(null);
  useLayoutEffect(() => {
    if (!drawer.value) return undefined;
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    if (drawer.value === "search") focusSearch();
    else side.current.querySelector("a, button").focus();
    const onEscape = (event) => {
      if (event.key === "Escape") drawer.value = false;
    };
    addEventListener("keydown", onEscape);
    return () => {
      removeEventListener("keydown", onEscape);
      if (before?.isConnected) before.focus();
    };
  }, [drawer.value]);
  const item = ([
    name,
    icon,
  ]) => html`<li><a class="nav-item" href=${link(name)} aria-current=${view === name ? "page" : undefined}>
    <${Icon} name=${icon} size=${18} />${texts.views[name]}</a></li>`;
  return html`
    ${
      drawer.value &&
      html`<div
        class="scrim"
        onClick=${() => {
          drawer.value = false;
        }}
      ></div>`
    }
    <nav class="sidebar ${drawer.value ? "sidebar-open" : ""}" aria-label=${t.navigation} ref=${side}>
      <div class="sidebar-head">
        <a class="brand" href=${link("chat")}>
          <span class="brand-mark" aria-hidden="true"><i></i><i></i><i></i></span>${texts.name}
        </a>
        <${IconButton}
          class="drawer-close"
          icon="close"
          label=${t.closeNavigation}
          onClick=${() => {
            drawer.value = false;
          }}
        />
      </div>
      <a
        class="nav-item nav-new"
        href=${link("chat")}
        onClick=${() => {
          drawer.value = false;
        }}
      ><${Icon} name="edit" size=${18} />${t.newChat}<kbd aria-hidden="true">N</kbd></a>
      <ul class="nav-list">${MAIN.map(item)}${me.data.value?.admin && item(["admin", "user"])}</ul>
      <${Conversations} onChoose=${() => {
        drawer.value = false;
      }} />
      <${Account} view=${view} />
    </nav>
  `;
}

function Account({ view }) {
  const { user } = session.value;
  const themes = Object.entries(t.themes).map(([name, label]) => ({
    label: pair(t.theme, label),
    icon: "theme",
    checked: name === theme.value,
    onSelect: () => {
      theme.value = name;
    },
  }));
  const items = [
    ...ACCOUNT.map(([name, icon]) => ({ label: texts.views[name], icon, href: link(name) })),
    { label: t.reference, icon: "docs", href: "/docs" },
    {
      label: t.shortcuts,
      icon: "keyboard",
      onSelect: () => {
        keyList.value = true;
      },
    },
    ...themes,
    { label: t.signOut, icon: "signOut", onSelect: signOut },
  ];
  const money = wallet.data.value;
  return html`<div class="sidebar-foot">
    ${
      money &&
      html`<a
        class="nav-item wallet-chip"
        href=${link("wallet")}
        aria-current=${view === "wallet" ? "page" : undefined}
      >
        <${Icon} name="wallet" size=${18} />
        <span class="hidden-text">${texts.views.wallet}: </span>
        <span class="money">${balance(money.available_micros)}</span>
        ${money.payments === "sandbox" && html`<span class="badge">${t.testMoney}</span>`}
      </a>`
    }
    <${Menu}
      label=${t.account}
      items=${items}
      trigger=${(toggle) => html`<button type="button" class="nav-item account-button" ...${toggle}>
        <span class="avatar" aria-hidden="true">${(user.name || user.email).slice(0, 1).toUpperCase()}</span>
        <span class="account-name">${user.name || user.email}</span><${Icon} name="more" size=${18} />
      </button>`}
    />
  </div>`;
}

function onKey(event) {
  const command = event.ctrlKey || event.metaKey,
    key = event.key.toLowerCase();
  if (document.querySelector("dialog[open]") || event.defaultPrevented) return;
  const free = !command && !event.altKey && !isTyping(event);
  if ((free && key === "n") || (command && event.shiftKey && key === "o")) go(link("chat"));
  else if ((free && key === "/") || (command && !event.shiftKey && key === "k")) {
    if (innerWidth < 800) drawer.value = "search";
    else focusSearch();
  } else if (free && event.key === "?") keyList.value = true;
  else return;
  event.preventDefault();
}
