// The key of a user's own model server or tool server in its form: a new one, the stored one, or none.
import { Field } from "./components.js";
import { html } from "./html.js";
import { limits } from "./limits.js";
import { texts } from "./texts/en/providers.js";

const t = texts.providers;

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
  !hint ? t.noKey : hint.length > 1 ? t.keyEnding(hint) : t.withKey;

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
