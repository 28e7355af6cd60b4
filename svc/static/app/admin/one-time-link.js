// What the list of users and the page of one user share: the catalog's groups, and links to set a password.
import { Button, CopyButton, Dialog, Notice } from "../components.js";
import { html } from "../html.js";
import { resource } from "../state.js";
import { texts } from "../texts/en/keys.js";
import { administration } from "./api.js";
import { adminTexts } from "../texts/en/admin.js";

const t = adminTexts.users;
const AUTO = "auto";

/** The names of the catalog's groups. */
export const groups = resource(async () => (await administration.status()).groups);

/** The choices of a group in a form. `parse` returns what the API takes for a choice. */
export const groupChoices = {
  of: (names) => [[AUTO, t.autoGroup], ["", t.noGroup], ...names.map((name) => [name, name])],
  parse: (value) => ({ group: value || null }),
  valueOf: (user) => (user.group_chosen ? (user.group ?? "") : AUTO),
};

/** A link to set a password. Without mail it is shown once, so only a button closes the dialog. */
export function OneTimeLink({ title, email, url, onClose }) {
  return html`<${Dialog} title=${title} dismissable=${!url} onClose=${onClose}
    footer=${html`<${Button} kind="primary" onClick=${onClose}>${texts.keys.kept}<//>`}>
    ${
      url
        ? html`
          <${Notice} kind="warn" icon="warning">${t.linkOnce(email)}<//>
          <div class="secret">
            <code>${url}</code>
            <${CopyButton} text=${url} withLabel label=${t.copyLink} />
          </div>
        `
        : html`<${Notice} kind="good" icon="check">${t.linkMailed(email)}<//>`
    }
  <//>`;
}
