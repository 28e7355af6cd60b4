// Saved prompts: the client, the list that the composer offers, the variables of a text, and files.
import { get, patch, post, put, remove } from "../api.js";
import { limits } from "../limits.js";
import { resource } from "../state.js";
import { texts } from "../texts/en/prompts.js";

const t = texts.prompts;
const pathOf = (id) => `/prompts/${encodeURIComponent(id)}`;

export const prompts = {
  list: (values) => get("/prompts", values),
  create: (body) => post("/prompts", body),
  change: (id, body) => patch(pathOf(id), body),
  remove: (id) => remove(pathOf(id)),
  importAll: (list) => post("/prompts/import", { prompts: list }),
  shared: async () => (await get("/prompts/shared")).data,
  ofAllGroups: async () => (await get("/admin/prompts")).data,
  share: async (group, list) => (await put("/admin/prompts", { group, prompts: list })).data,
};

const FILE_BYTES = 10_000_000;
const REQUEST_BYTES = 900_000; // the service takes 1 MiB
const AT_ONCE = 500;

/** All prompts of the account. */
export async function ownPrompts() {
  const all = [];
  for (let page; !page || page.has_more; ) {
    page = await prompts.list({ limit: 100, after: all.at(-1)?.id });
    all.push(...page.data);
  }
  return all;
}

/** What the composer offers: own prompts, then shared ones, each by name. */
export const offered = resource(async () => {
  const [own, shared] = await Promise.all([ownPrompts(), prompts.shared()]);
  return [...own.toSorted((one, other) => one.name.localeCompare(other.name)), ...shared];
});

const VARIABLE = /\{\{\s*([^{}\n]{1,60}?)\s*\}\}/g;

/** The names of the variables of a text, each once, in its order. */
export const variablesOf = (text) => [...new Set([...text.matchAll(VARIABLE)].map(([, name]) => name))];

/** The text with the values of its variables, by their names. */
export const filled = (text, values) => text.replace(VARIABLE, (_, name) => values[name]);

/** The file of an export. */
export function fileOf(list) {
  const kept = list.map(({ name, text }) => ({ name, text }));
  return new Blob([JSON.stringify({ prompts: kept }, null, 2)], { type: "application/json" });
}

/**
 * The prompts of a file of this service, or of Open WebUI. Throws an Error that says what is wrong.
 * @param {File} file
 */
export async function promptsIn(file) {
  if (file.size > FILE_BYTES) throw new Error(t.tooLarge);
  let found;
  try {
    found = JSON.parse(await file.text());
  } catch {
    throw new Error(t.notJson);
  }
  const list = Array.isArray(found) ? found : found?.prompts;
  if (!Array.isArray(list) || !list.length) throw new Error(t.noPrompts);
  return list.map((one, at) => ({
    name: checked(one?.name ?? one?.title ?? one?.command, at, "name"),
    text: checked(one?.text ?? one?.content, at, "text"),
  }));
}

function checked(value, at, field) {
  const most = limits.prompt[field].maxlength;
  if (typeof value === "string" && value.trim() && [...value].length <= most) return value;
  throw new Error(t.wrong(at + 1, t[field].toLowerCase(), most));
}

/** Import prompts in as many requests as their size needs. Returns `{imported, skipped}`. */
export async function importAll(list) {
  const sum = { imported: 0, skipped: 0 };
  let part = [],
    bytes = 0;
  const send = async () => {
    const { imported, skipped } = await prompts.importAll(part);
    sum.imported += imported;
    sum.skipped += skipped.length;
    [part, bytes] = [[], 0];
  };
  for (const one of list) {
    const size = new TextEncoder().encode(JSON.stringify(one)).length + 1;
    if (part.length === AT_ONCE || bytes + size > REQUEST_BYTES) await send();
    part.push(one);
    bytes += size;
  }
  if (part.length) await send();
  return sum;
}
