// Where one is: the fragment names a view and what it shows, as in #/chat/conv_…; each view is a module, loaded when first shown.
import { signal } from "@preact/signals";

/** name -> the module of the view. Its default export is a component, which gets `path` (the rest of the fragment) and `query`. */
export const views = {
  chat: () => import("./views/chat.js"),
  agents: () => import("./views/agents.js"),
  media: () => import("./views/media.js"),
  artifacts: () => import("./views/artifacts.js"),
  projects: () => import("./views/projects.js"),
  keys: () => import("./views/keys.js"),
  providers: () => import("./views/providers.js"),
  wallet: () => import("./views/wallet.js"),
  settings: () => import("./views/settings.js"),
  support: () => import("./views/support.js"),
};

/** `{name, path: [segment…], query: {…}}` of what is shown now. */
export const route = signal(parse(location.hash));

function parse(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").filter(Boolean).map(decode);
  const query = Object.fromEntries(new URLSearchParams(search));
  return Object.hasOwn(views, name ?? "") ? { name, path: rest, query } : { name: "chat", path: [], query: {} };
}

function decode(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

/** The address of a view: link("chat", id), link("artifacts", {project_id}). */
export function link(name, ...parts) {
  const search = typeof parts.at(-1) === "object" ? new URLSearchParams(parts.pop()).toString() : "";
  return `#/${[name, ...parts.map(encodeURIComponent)].join("/")}${search && `?${search}`}`;
}

/** Goes to a view; `replace` leaves no step to come back to. Takes what `link` gives. */
export function go(address, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", address);
  else if (location.hash !== address) history.pushState(null, "", address);
  route.value = parse(location.hash);
}

addEventListener("hashchange", () => { route.value = parse(location.hash); });
addEventListener("popstate", () => { route.value = parse(location.hash); });
