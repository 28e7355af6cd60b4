// The dialog that deletes the account.
import { useSignal } from "@preact/signals";
import { api, signOut } from "./api.js";
import { Button, Dialog, Failed, Field } from "./components.js";
import { html } from "./html.js";
import { limits } from "./limits.js";
import { me } from "./state.js";
import { texts } from "./texts/en/delete-account.js";

const t = texts.settings;

/** `opened`: a signal that is false when the dialog is closed. */
export default function DeleteAccount({ opened }) {
  const busy = useSignal(false),
    error = useSignal(null),
    differs = useSignal(false);
  const close = () => {
    opened.value = false;
  };
  const { email, has_password: has } = me.data.value,
    hasPassword = has && limits.passwords;
  const leave = async (event) => {
    event.preventDefault();
    const given = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(event.target)));
    differs.value = given.confirm.trim().toLowerCase() !== email.toLowerCase();
    if (differs.value) return;
    [busy.value, error.value] = [true, null];
    try {
      await api.user.remove(hasPassword ? { password: given.password } : { confirm: email });
      opened.value = false;
      await signOut();
    } catch (problem) {
      [busy.value, error.value] = [false, problem];
    }
  };
  return html`<${Dialog} title=${t.endTitle} onClose=${close}>
    <form class="stack" onSubmit=${leave}>
      <p>${t.endWhat}</p>
      <${Field}
        label=${t.endConfirm(email)}
        name="confirm"
        type="email"
        autocomplete="off"
        required
        error=${differs.value ? t.endDiffers : null}
      />
      ${
        hasPassword &&
        html`<${Field}
          label=${texts.signIn.password}
          name="password"
          type="password"
          autocomplete="current-password"
          required
          maxlength=${limits.sign_up.password.maxlength}
        />`
      }
      ${error.value && html`<${Failed} error=${error.value} />`}
      <div class="actions dialog-foot">
        <${Button} onClick=${close}>${texts.common.cancel}<//>
        <${Button} kind="danger" type="submit" busy=${busy.value}>${t.endAction}<//>
      </div>
    </form>
  <//>`;
}
