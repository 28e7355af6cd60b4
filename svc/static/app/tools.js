// The tools that the service runs for answers: those that there are, and the choice of each conversation.
import { signal } from "@preact/signals";
import { api } from "./api.js";
import { isBuiltin } from "./model-picker.js";
import { modelsOf, resource, settings } from "./state.js";

/** What the account may use now. */
export const tools = resource(api.tools.list);
const key = (id) => `svc.tools.${id ?? "new"}`;
const changes = signal(0);

/** The names that are chosen in a conversation, or in a new one for null. */
export function chosenTools(id) {
  changes.value; // a component that calls this is drawn again after a change
  return /** @type {string[]} */ (JSON.parse(localStorage.getItem(key(id)) ?? "[]"));
}

export function chooseTools(id, names) {
  try {
    if (names.length) localStorage.setItem(key(id), JSON.stringify(names));
    else localStorage.removeItem(key(id));
  } catch {
    /* a full storage keeps no choice */
  }
  changes.value++;
}

/** A new conversation has an id now, or has lost it because its first question was refused. */
export function moveTools(from, to) {
  const names = chosenTools(from);
  chooseTools(from, []);
  chooseTools(to, names);
}

/** Whether a model is known to call no tools. Without known capabilities, it may. */
export function isWithoutTools(model) {
  const id = model ?? settings.data.value?.chat_model;
  const known = modelsOf("chat")?.find((one) => one.id === id)?.capabilities;
  return known ? !known.includes("tools") && (isBuiltin(id) || known.length > 0) : false;
}

/** Return the header of a question for a model: the chosen tools that there still are. */
export async function toolsHeader(id, model) {
  const chosen = chosenTools(id);
  if (!chosen.length || isWithoutTools(model)) return {};
  await tools.ensure();
  const names = chosen.filter((name) => tools.data.peek()?.some((one) => one.name === name) ?? true);
  return names.length ? { "x-service-tools": names.join(",") } : {};
}
