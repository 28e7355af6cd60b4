// How tools and their calls are named for people.
import { tools } from "../tools.js";
import { isolated } from "../texts/locale.js";
import { toolTexts } from "../texts/en/tools.js";

const known = (name) => tools.data.value?.find((tool) => tool.name === name);

/** Return `{server, tool}` for a tool of a server, or null for one of the service. */
export function atServer(name) {
  const source = known(name)?.source;
  if (source === "service" || Object.hasOwn(toolTexts.toolNames, name)) return null;
  const server = source ?? name.split("__", 1)[0];
  return name.startsWith(`${server}__`) ? { server, tool: name.slice(server.length + 2) } : null;
}

export function nameOf(name) {
  const there = atServer(name);
  return there ? toolTexts.ofServer(there.server, there.tool) : (toolTexts.toolNames[name] ?? name);
}

/** Return the arguments of a call as an object, or null if they are none. Those of chats are JSON. */
export function argumentsOf({ arguments: given }) {
  try {
    const value = typeof given === "string" ? JSON.parse(given || "{}") : given;
    return value && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** Return what a call does, in one line: "Searching the web: …". */
export function doing(call) {
  const said = Object.hasOwn(toolTexts.doing, call.name) && toolTexts.doing[call.name];
  if (!said) return nameOf(call.name);
  const { query, url, expression, name, path, file } = argumentsOf(call) ?? {};
  const what = String(url ? hostOf(url) : (query ?? expression ?? name ?? path ?? file ?? ""));
  return said(what && isolated(what)).replace(/[:：\s]+$/, "");
}

export function hostOf(url) {
  try {
    return new URL(url).host.replace(/^www\./, "") || url;
  } catch {
    return String(url);
  }
}

/** Return where a passage stands in its file. */
export const placeOf = ({ page, from_line: from, to_line: to }) =>
  page ? toolTexts.sources.page(page) : toolTexts.sources.lines(from, to);

const HIDDEN = /(?![\n\t ])[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\p{Zs}\u115f\u1160\u3164\uffa0]/gu;

/** Return a text with codes for characters that are invisible or change the direction. */
export const visible = (text) =>
  text.replace(HIDDEN, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
