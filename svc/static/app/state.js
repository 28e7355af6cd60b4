// Shared state: cached resources, paged lists, and values stored by this browser.
import { signal, effect } from "@preact/signals";
import { api, wasAborted } from "./api.js";

/**
 * A resource that is loaded when it is first needed. `data` (undefined until loaded), `error` and `busy` are
 * signals. `ensure()` loads it once, `reload()` loads it again and keeps the old data until then,
 * `set(value)` replaces it.
 * @template T
 * @param {() => Promise<T>} load
 */
export function resource(load) {
  const data = signal(/** @type {T} */ (undefined)),
    error = signal(null),
    busy = signal(false);
  let turn = 0;
  async function reload() {
    const mine = ++turn;
    busy.value = true;
    try {
      const value = await load();
      if (mine === turn) [data.value, error.value] = [value, null];
    } catch (problem) {
      if (mine === turn && !wasAborted(problem)) error.value = problem;
    }
    if (mine === turn) busy.value = false;
  }
  return {
    data,
    error,
    busy,
    reload,
    ensure() {
      if (data.peek() === undefined && !busy.peek()) return reload();
    },
    set(value) {
      turn++;
      [data.value, error.value, busy.value] = [value, null, false];
    },
  };
}

/**
 * A paged list. `loadPage(afterId)` returns `{data, has_more}`. `items` is undefined until the first page;
 * `more` says whether others follow; `put(item)` replaces or prepends an item; `drop(id)` removes it.
 * @template {{id: string}} T
 * @param {(after?: string) => Promise<{data: T[], has_more: boolean}>} loadPage
 */
export function pagedList(loadPage) {
  const items = signal(/** @type {T[]} */ (undefined)),
    more = signal(false),
    error = signal(null),
    busy = signal(false);
  let turn = 0;
  async function ask(after) {
    const mine = ++turn;
    busy.value = true;
    try {
      const page = await loadPage(after);
      if (mine !== turn) return;
      const known = after ? items.peek() : [];
      const ids = new Set(known.map((item) => item.id));
      items.value = [...known, ...page.data.filter((item) => !ids.has(item.id))];
      [more.value, error.value] = [page.has_more, null];
    } catch (problem) {
      if (mine === turn && !wasAborted(problem)) error.value = problem;
    }
    if (mine === turn) busy.value = false;
  }
  return {
    items,
    more,
    error,
    busy,
    reload: () => ask(),
    ensure() {
      if (items.peek() === undefined && !busy.peek()) return ask();
    },
    loadMore() {
      if (more.peek() && !busy.peek()) return ask(items.peek().at(-1)?.id);
    },
    put(item) {
      const known = items.peek() ?? [];
      const there = known.some(({ id }) => id === item.id);
      items.value = there ? known.map((old) => (old.id === item.id ? item : old)) : [item, ...known];
    },
    drop(id) {
      items.value = items.peek()?.filter((item) => item.id !== id);
    },
  };
}

export const me = resource(api.user.me);
export const settings = resource(api.user.settings);
/** What is available includes the rest of the allowance, which the next paid request adds. */
export const wallet = resource(async () => {
  const account = await api.billing.account();
  return { ...account, available_micros: account.available_micros + account.allowance_due_micros };
});
/** Whether the account, or a key, has spent 80 % of its monthly limit. */
export const isNearLimit = ({ monthly_limit_micros: limit, spent_this_month_micros: spent }) =>
  limit !== null && spent >= limit * 0.8;
/** Whether 80 % of the monthly allowance is used. */
export const isAllowanceLow = ({ allowance_micros: allowance, available_micros: left }) =>
  allowance > 0 && left <= allowance * 0.2;
export const models = resource(api.models.list);
export const projects = resource(async () => {
  const all = [];
  for (let page; !page || page.has_more; ) {
    page = await api.projects.list({ limit: 100, after: all.at(-1)?.id });
    all.push(...page.data);
  }
  return all;
});

/** The models of a kind (`chat`, `image`, `speech`), or undefined until loaded. */
export const modelsOf = (kind) => models.data.value?.filter((model) => model.kind === kind);

/** A signal stored under `name` by this browser (by this tab with `sessionStorage`) until sign-out. */
export function remembered(name, initial, storage = localStorage) {
  const key = `svc.${name}`;
  let start = initial;
  try {
    start = JSON.parse(storage.getItem(key)) ?? initial;
  } catch {
    /* what cannot be read is not there */
  }
  const value = signal(start);
  let first = true;
  effect(() => {
    const text = JSON.stringify(value.value);
    if (!first) remember(storage, key, text);
    first = false;
  });
  return value;
}

function remember(storage, key, text) {
  try {
    storage.setItem(key, text);
  } catch {
    /* a full storage only forgets */
  }
}

/** The open preview of preview-panel.js: `{Panel, kind, text, stored}`, or null. */
export const preview = signal(null);

/** `light`, `dark` or `system`. */
export const theme = remembered("theme", "system");
effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
