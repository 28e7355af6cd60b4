// The route: the fragment of the address names a view and its object, as in #/chat/conv_….
import { signal } from "@preact/signals";

/** The views; main.js loads the module of each. */
export const NAMES = /** @type {const} */ ([
  "chat",
  "agents",
  "media",
  "artifacts",
  "projects",
  "prompts",
  "keys",
  "providers",
  "wallet",
  "settings",
  "imports",
  "memory",
  "tool-servers",
  "support",
  "admin",
  "shares",
  "shared",
]);
/** @typedef {(typeof NAMES)[number]} Name */

/** The current route: `{name, path: [segment…], query: {…}}`. */
export const route = signal(parse(location.hash));

function parse(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").filter(Boolean).map(decode);
  const query = Object.fromEntries(new URLSearchParams(search));
  const known = NAMES.find((view) => view === name);
  return known ? { name: known, path: rest, query } : { name: NAMES[0], path: [], query: {} };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Return the address of a view: link("chat", id), link("artifacts", {project_id}). */
export function link(name, ...parts) {
  const search = typeof parts.at(-1) === "object" ? new URLSearchParams(parts.pop()).toString() : "";
  return `#/${[name, ...parts.map(encodeURIComponent)].join("/")}${search && `?${search}`}`;
}

/** Open a view, with the arguments of `link`. `replace` adds no history entry. */
export function go(address, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", address);
  else if (location.hash !== address) history.pushState(null, "", address);
  route.value = parse(location.hash);
}

addEventListener("hashchange", () => {
  route.value = parse(location.hash);
});
addEventListener("popstate", () => {
  route.value = parse(location.hash);
});
