// The configured identity providers. The current address is stored, so that the user returns to it.
import { useEffect } from "preact/hooks";
import { api } from "./api.js";
import { html } from "./html.js";
import { limits } from "./limits.js";
import { resource } from "./state.js";
import { texts } from "./texts.js";

const providers = resource(api.auth.providers);
const NAMES = { github: "GitHub", gitlab: "GitLab", google: "Google", microsoft: "Microsoft" };

export function IdentityProviders() {
  useEffect(() => {
    providers.ensure();
  }, []);
  if (!providers.data.value?.length) return null;
  const remember = () => sessionStorage.setItem("svc.return", location.hash);
  return html`<div class="identity-providers">
    ${limits.passwords && html`<p class="or"><span>${texts.signIn.or}</span></p>`}
    ${providers.data.value.map(
      ({ provider, url }) => html`<a class="button button-plain" href=${url} onClick=${remember}>
      ${texts.signIn.with(NAMES[provider] ?? provider)}</a>`,
    )}</div>`;
}
