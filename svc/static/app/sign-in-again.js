// Ask for the password when the session has expired; waiting requests then continue.
import { useSignal } from "@preact/signals";
import { api, session, signOut, signedIn } from "./api.js";
import { Button, Dialog, Failed, Field } from "./components.js";
import { html } from "./html.js";
import { limits } from "./limits.js";
import { texts } from "./texts/en/sign-in.js";
import { IdentityProviders } from "./identity-providers.js";

const t = texts.signIn;

export function SignInAgain() {
  const busy = useSignal(false),
    error = useSignal(null);
  const { email } = session.value.user;
  const submit = async (event) => {
    event.preventDefault();
    [busy.value, error.value] = [true, null];
    try {
      const password = String(new FormData(event.target).get("password"));
      signedIn(await api.auth.signIn({ email, password }));
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  if (!limits.passwords)
    return html`<${Dialog} title=${t.again} dismissable=${false}>
      <${IdentityProviders} />
      <div class="actions"><${Button} kind="quiet" onClick=${signOut}>${t.otherAccount}<//></div>
    <//>`;
  return html`<${Dialog} title=${t.again} dismissable=${false}>
    <p>${t.againText(email)}</p>
    <form onSubmit=${submit} class="stack">
      <input
        class="hidden-text"
        type="email"
        name="email"
        autocomplete="username"
        value=${email}
        readonly
        tabindex="-1"
        aria-hidden="true"
      />
      <${Field}
        label=${t.password}
        type="password"
        name="password"
        autocomplete="current-password"
        required
        autofocus
      />
      ${error.value && html`<${Failed} error=${error.value} />`}
      <div class="actions"><${Button} kind="quiet" onClick=${signOut}>${t.otherAccount}<//>
        <${Button} kind="primary" type="submit" busy=${busy.value}>${t.againAction}<//></div>
    </form>
    <${IdentityProviders} />
  <//>`;
}
