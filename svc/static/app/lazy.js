// Components that are loaded when they are first shown.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { online } from "./api.js";
import { Button, Failed, Loading } from "./components.js";
import { html } from "./html.js";
import { texts } from "./texts.js";

const loaded = signal({}); // name -> {component} or {error}

/**
 * Load the module of a view once. A module of an old release cannot be loaded; the page must be reloaded.
 */
async function load(name, from) {
  try {
    const { default: component } = await from();
    loaded.value = { ...loaded.peek(), [name]: { component } };
  } catch (error) {
    console.warn(error);
    loaded.value = { ...loaded.peek(), [name]: { error } };
  }
}

/**
 * A component that is loaded when it is first shown: the default export of what `from` imports.
 * `quiet`: nothing is shown until then.
 */
export function Lazy({ name, from, quiet, ...props }) {
  useEffect(() => {
    if (!loaded.peek()[name]?.component) load(name, from);
  }, [name, online.value]);
  const { component, error } = loaded.value[name] ?? {};
  if (component) return html`<${component} ...${props} />`;
  if (quiet) return null;
  if (!error) return html`<${Loading} />`;
  return html`<div class="page"><${Failed} error=${{ message: texts.common.viewFailed }}>
    <${Button} small icon="retry" onClick=${() => location.reload()}>${texts.common.reload}<//><//></div>`;
}
