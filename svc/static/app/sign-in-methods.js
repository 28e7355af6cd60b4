// How the owner of the account signs in: email address, password, identity providers.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api } from "./api.js";
import { Button, confirm, Dialog, Failed, Field, List, Time, toast } from "./components.js";
import { html } from "./html.js";
import { IdentityProviders } from "./identity-providers.js";
import { limits } from "./limits.js";
import { me, pagedList, resource, settings } from "./state.js";
import { texts } from "./texts/en/settings.js";

const t = texts.settings;
const identities = pagedList(api.user.identities);
const offered = resource(api.auth.providers);

export function SignInMethods({ user }) {
  const changing = useSignal(null); // "email" or "password"
  const row = (name, label, text, action, disabled = false) => html`<li>
    <div class="grow"><p class="item-title">${label}</p><p class="quiet small">${text}</p></div>
    <${Button}
      small
      disabled=${disabled}
      onClick=${() => {
        changing.value = name;
      }}
    >${action}<//>
  </li>`;
  const noMail = settings.data.value?.mail_enabled === false;
  const address = noMail ? `${user.email}. ${t.noMailToChange}` : user.email;
  const close = () => {
    changing.value = null;
  };
  return html`
    <h2>${t.signIn}</h2>
    <ul class="list">
      ${row("email", texts.signIn.email, address, t.changeEmail, noMail)}
      ${
        limits.passwords &&
        row(
          "password",
          texts.signIn.password,
          user.has_password ? t.hasPassword : t.noPassword,
          user.has_password ? t.changePassword : t.setPassword,
        )
      }
    </ul>
    <${Identities} />
    ${changing.value === "email" && html`<${ChangeEmail} user=${user} onClose=${close} />`}
    ${changing.value === "password" && html`<${ChangePassword} user=${user} onClose=${close} />`}
  `;
}

/** A dialog that asks for the current password, or for a recent sign-in of an account without one. */
function Owned({ title, user, onSend, onClose, children, error }) {
  const busy = useSignal(false);
  const asked = user.has_password && limits.passwords;
  const send = async (event) => {
    event.preventDefault();
    const given = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(event.target)));
    [busy.value, error.value] = [true, null];
    try {
      await onSend({ ...given, ...(asked && { current_password: given.current }) });
      onClose();
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  const wrong = error.value?.param === "current_password";
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form class="stack" onSubmit=${send}>
      <input
        class="hidden-text"
        type="email"
        autocomplete="username"
        value=${user.email}
        readonly
        tabindex="-1"
        aria-hidden="true"
      />
      ${
        asked &&
        html`<${Field}
          label=${t.currentPassword}
          name="current"
          type="password"
          autocomplete="current-password"
          required
          error=${wrong ? error.value.message : null}
        />`
      }
      ${children}
      ${error.value && !error.value.param && html`<${Failed} manual error=${error.value} />`}
      ${error.value?.code === "recent_sign_in_required" && html`<${IdentityProviders} />`}
      <div class="actions dialog-foot">
        <${Button} onClick=${onClose}>${texts.common.cancel}<//>
        <${Button} kind="primary" type="submit" busy=${busy.value}>${title}<//>
      </div>
    </form>
  <//>`;
}

function ChangeEmail({ user, onClose }) {
  const error = useSignal(null);
  const send = async ({ email, current_password }) => {
    await api.user.change({ email, ...(current_password && { current_password }) });
    toast(t.emailSent(email), { kind: "good", seconds: 12 });
  };
  return html`<${Owned} title=${t.changeEmail} user=${user} onSend=${send} onClose=${onClose} error=${error}>
    <${Field}
      label=${t.newEmail}
      hint=${t.newEmailHint}
      name="email"
      type="email"
      autocomplete="email"
      required
      maxlength=${limits.sign_up.email.maxlength}
      error=${error.value?.param === "email" ? error.value.message : null}
    />
  <//>`;
}

function ChangePassword({ user, onClose }) {
  const error = useSignal(null);
  const title = user.has_password ? t.changePassword : t.setPassword;
  const send = async ({ password, current_password }) => {
    await api.user.changePassword({ password, ...(current_password && { current_password }) });
    toast(t.passwordChanged, { kind: "good" });
    me.reload();
  };
  return html`<${Owned} title=${title} user=${user} onSend=${send} onClose=${onClose} error=${error}>
    <${Field}
      label=${t.newPassword}
      hint=${texts.signIn.passwordHint}
      name="password"
      type="password"
      autocomplete="new-password"
      required
      ...${limits.sign_up.password}
      error=${error.value?.param === "password" ? error.value.message : null}
    />
  <//>`;
}

function Identities() {
  useEffect(() => {
    offered.ensure();
  }, []);
  const begin = async (provider) => {
    try {
      sessionStorage.setItem("svc.return", location.hash);
      location.assign((await api.user.linkIdentity(provider)).url);
    } catch (problem) {
      toast(problem.message, { kind: "bad" });
    }
  };
  const unlink = async (one) => {
    if (
      !(await confirm({
        title: t.unlinkTitle,
        text: t.unlinkText(one.provider ?? one.issuer),
        action: t.unlink,
        danger: true,
      }))
    )
      return;
    try {
      await api.user.unlinkIdentity(one.id);
      identities.drop(one.id);
    } catch (problem) {
      toast(problem.message, { kind: "bad" });
    }
  };
  const providers = offered.data.value ?? [];
  if (!providers.length && !identities.items.value?.length) return html`<${Quietly} of=${identities} />`;
  return html`
    <h3 class="more-space">${t.identities}</h3>
    <${List} of=${identities} empty=${html`<p class="quiet">${t.noIdentities}</p>`}>
      ${(one) => html`<li key=${one.id}>
        <div class="grow">
          <p class="item-title">${one.provider ?? one.issuer}</p>
          <p class="quiet small">${one.email ?? ""} · <${Time} at=${one.created_at} /></p>
        </div>
        <${Button} small onClick=${() => unlink(one)}>${t.unlink}<//>
      </li>`}
    <//>
    <div class="actions more-space">
      ${providers.map(
        ({ provider }) => html`<${Button} icon="plus" onClick=${() => begin(provider)}>
        ${t.link(provider)}
      <//>`,
      )}
    </div>
  `;
}

/** Shown only if a provider is configured or an identity is linked. */
function Quietly({ of }) {
  useEffect(() => {
    of.ensure();
  }, []);
  return null;
}
