// What the views of a user's own model servers and tool servers share: their lists, and the key in the forms:
// a new one, the stored one, or none.
import { useEffect } from "preact/hooks";
import { Button, Empty, Field, List, Notice, Page } from "./components.js";
import { html } from "./html.js";
import { limits } from "./limits.js";
import { settings } from "./state.js";
import { isolated } from "./texts/locale.js";
import { texts } from "./texts/en/providers.js";

const t = texts.providers;

/** A list of own servers. `t`: its texts; `item` draws one. Children: the dialogs to add and change one. */
export function OwnServers({ title, icon, t: own, of, item, onAdd, children }) {
  useEffect(() => {
    settings.ensure();
  }, []);
  const mayAdd = settings.data.value?.own_providers_enabled;
  const add = (kind) => mayAdd && html`<${Button} kind=${kind} icon="plus" onClick=${onAdd}>${own.add}<//>`;
  return html`<${Page} title=${title} intro=${own.intro} actions=${add("primary")}>
    ${mayAdd === false && html`<${Notice} icon="warning">${t.notAllowed}<//>`}
    <${List}
      of=${of}
      empty=${html`<${Empty} icon=${icon} title=${own.none} text=${mayAdd && own.noneText}>
        ${add("plain")}
      <//>`}
    >${item}<//>
    ${children}
  <//>`;
}

export function originOf(address) {
  try {
    return new URL(address).origin;
  } catch {
    return null;
  }
}

/**
 * Return the field of a request for what the form says of the key, if anything.
 * @param {Record<string, string>} given
 */
export const keyIn = ({ api_key: key, without_key: isWithout }) =>
  isWithout ? { api_key: null } : key ? { api_key: key } : {};

/** How the key of a server ends, in words. */
export const keyText = ({ api_key_hint: hint }) =>
  !hint ? t.noKey : hint.length > 1 ? t.keyEnding(isolated(hint)) : t.withKey;

/** `hint`: of the stored key, or null; `moved`: a text, if a new address drops it. */
export const KeyFields = ({ hint, moved, error }) => html`<${Field}
    label=${t.apiKey}
    name="api_key"
    type="password"
    autocomplete="off"
    maxlength=${limits.provider.api_key.maxlength}
    hint=${moved || (hint ? t.keyStays(hint) : t.apiKeyHint)}
    error=${error}
  />
  ${hint && html`<label class="check"><input type="checkbox" name="without_key" />${t.withoutKey}</label>`}`;
