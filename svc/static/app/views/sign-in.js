// The start page: a description, and the forms for sign-up, sign-in and password reset.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { api, signedIn } from "../api.js";
import { Button, Failed, Field, IconButton, Notice } from "../components.js";
import { html } from "../html.js";
import { Icon } from "../icons.js";
import { IdentityProviders } from "../identity-providers.js";
import { chooseAsVisitor, LanguageField, storedLanguage } from "../language.js";
import { limits } from "../limits.js";
import { texts } from "../texts/en/sign-in.js";

const t = texts.signIn;
const KNOWN = "svc-known"; // survives sign-out: this browser has signed in before

export default function SignIn({ trouble }) {
  const mode = useSignal(localStorage.getItem(KNOWN) || !limits.sign_up_open ? "signIn" : "signUp");
  let form = html`<h2>${t.signIn}</h2><${IdentityProviders} />`;
  if (limits.passwords)
    form =
      mode.value === "forgot"
        ? html`<${limits.sends_mail ? Forgot : AskOperator} mode=${mode} />`
        : html`<${Credentials} key=${mode.value} mode=${mode} />`;
  return html`<main class="welcome">
    <section class="welcome-about">
      <p class="brand">
        <span class="brand-mark" aria-hidden="true"><i></i><i></i><i></i></span>${texts.name}
      </p>
      <h1>${t.lead}</h1>
      <p class="lead">${t.about}</p>
      <ul class="points">
        ${t.points.map(([icon, text]) => html`<li><${Icon} name=${icon} />${text}</li>`)}
      </ul>
      <p class="quiet"><a href="/docs">${texts.shell.reference}</a></p>
      <${LanguageField} class="language" chosen=${storedLanguage()} onChoose=${chooseAsVisitor} />
    </section>
    <div class="welcome-form">
      ${trouble.value && html`<${Notice} kind="bad" icon="warning">${trouble.value}<//>`}${form}
    </div>
  </main>`;
}

function Credentials({ mode }) {
  const isNew = mode.value === "signUp";
  const busy = useSignal(false),
    error = useSignal(null),
    shown = useSignal(false);
  const form = useRef(null);
  useEffect(() => {
    if (matchMedia("(hover: hover)").matches) form.current.elements.email.focus();
  }, []);
  const submit = async (event) => {
    event.preventDefault();
    const given = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(form.current)));
    const { email, password, name } = given;
    [busy.value, error.value] = [true, null];
    try {
      const answer = await (isNew
        ? api.auth.signUp({ email, password, ...(name && { name }) })
        : api.auth.signIn({ email, password }));
      localStorage.setItem(KNOWN, "1");
      signedIn(answer);
    } catch (problem) {
      error.value = problem;
      busy.value = false;
      if (["email", "password"].includes(problem.param)) form.current.elements[problem.param].focus();
    }
  };
  const told = (name) => (error.value?.param === name ? error.value.message : null);
  const general = error.value && !["email", "password", "name"].includes(error.value.param);
  return html`
    <h2>${isNew ? t.signUp : t.signIn}</h2>
    <form ref=${form} class="stack" onSubmit=${submit} novalidate=${false}>
      ${
        isNew &&
        html`<${Field}
          label=${`${t.name} (${t.optional})`}
          name="name"
          autocomplete="name"
          maxlength=${limits.sign_up.name.maxlength}
          error=${told("name")}
        />`
      }
      <${Field}
        label=${t.email}
        name="email"
        type="email"
        autocomplete="username"
        required
        maxlength=${limits.sign_up.email.maxlength}
        error=${told("email")}
      />
      <div class="password-field">
        <${Field}
          label=${t.password}
          name="password"
          type=${shown.value ? "text" : "password"}
          required
          minlength=${isNew ? limits.sign_up.password.minlength : undefined}
          maxlength=${limits.sign_up.password.maxlength}
          autocomplete=${isNew ? "new-password" : "current-password"}
          hint=${isNew ? t.passwordHint : null}
          error=${told("password")}
        />
        <${IconButton}
          icon="eye"
          label=${shown.value ? t.hide : t.show}
          aria-pressed=${String(shown.value)}
          onClick=${() => {
            shown.value = !shown.value;
          }}
        />
      </div>
      ${general && html`<${Failed} error=${error.value} />`}
      <${Button} kind="primary" type="submit" busy=${busy.value} class="wide">
        ${isNew ? t.signUpAction : t.signIn}
      <//>
    </form>
    <${IdentityProviders} />
    <div class="welcome-links">
      ${
        limits.sign_up_open
          ? html`<${Button}
            kind="quiet"
            onClick=${() => {
              mode.value = isNew ? "signIn" : "signUp";
            }}
          >${isNew ? t.toSignIn : t.toSignUp}<//>`
          : html`<p class="quiet">${t.closed}</p>`
      }
      ${
        !isNew &&
        html`<${Button}
          kind="quiet"
          onClick=${() => {
            mode.value = "forgot";
          }}
        >${t.forgot}<//>`
      }
    </div>
  `;
}

function Forgot({ mode }) {
  const busy = useSignal(false),
    error = useSignal(null),
    done = useSignal(false);
  const submit = async (event) => {
    event.preventDefault();
    [busy.value, error.value] = [true, null];
    try {
      await api.auth.resetPassword(String(new FormData(event.target).get("email")));
      done.value = true;
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  return html`
    <h2>${t.forgotTitle}</h2>
    ${
      done.value
        ? html`<${Notice} kind="good" icon="check">${t.forgotDone}<//>`
        : html`<form class="stack" onSubmit=${submit}>
          <p class="quiet">${t.forgotText}</p>
          <${Field}
            label=${t.email}
            name="email"
            type="email"
            autocomplete="username"
            required
            maxlength=${limits.sign_up.email.maxlength}
            autofocus
          />
          ${error.value && html`<${Failed} error=${error.value} />`}
          <${Button} kind="primary" type="submit" busy=${busy.value} class="wide">${t.forgotAction}<//>
        </form>`
    }
    <${Back} mode=${mode} />
  `;
}

/** In the place of the form for a link, if the service sends no mail. */
function AskOperator({ mode }) {
  return html`<h2>${t.forgotTitle}</h2><p>${t.forgotNoMail}</p><${Back} mode=${mode} />`;
}

function Back({ mode }) {
  return html`<div class="welcome-links">
    <${Button}
      kind="quiet"
      onClick=${() => {
        mode.value = "signIn";
      }}
    >${t.back}<//>
  </div>`;
}
