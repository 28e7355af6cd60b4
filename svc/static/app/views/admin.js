// Administration, for administrators: users, spend, support, status, models and the audit log. Each part
// is loaded when it is first shown.
import { useEffect, useRef } from "preact/hooks";
import { Button, Empty, focusContent, Page, Resource } from "../components.js";
import { html } from "../html.js";
import { Lazy } from "../lazy.js";
import { link } from "../router.js";
import { me } from "../state.js";
import { texts } from "../texts.js";
import { adminTexts as t } from "../texts/en/admin.js";

const PARTS = {
  users: () => import("../admin/users.js"),
  spend: () => import("../admin/spend.js"),
  support: () => import("../admin/inbox.js"),
  status: () => import("../admin/status.js"),
  models: () => import("../admin/models.js"),
  prompts: () => import("../admin/prompts.js"),
  tools: () => import("../admin/tools.js"),
  catalog: () => import("../admin/catalog.js"),
  audit: () => import("../admin/audit.js"),
  "sign-ins": () => import("../admin/sign-ins.js"),
};

/** Of tabs that scroll on a narrow page. */
const reveal = (/** @type {HTMLElement} */ tab) =>
  tab?.scrollIntoView({ block: "nearest", inline: "nearest" });

export default function Admin({ path: [chosen = "users", ...path] }) {
  const first = useRef(true);
  useEffect(() => {
    me.ensure();
  }, []);
  useEffect(() => {
    // The link that was followed may be gone. The next Tab must not start at the top of the page.
    if (!first.current && document.activeElement === document.body) focusContent();
    first.current = false;
  }, [chosen, path[0]]);
  const part = Object.hasOwn(PARTS, chosen) ? chosen : "users";
  return html`<${Page} title=${texts.views.admin} wide>
    <${Resource} of=${me}>
      ${(user) =>
        user.admin
          ? html`
            <nav class="tabs part-tabs" aria-label=${t.parts}>
              ${Object.keys(PARTS).map(
                (name) => html`<a
                  class="tab"
                  href=${link("admin", name)}
                  ref=${name === part ? reveal : undefined}
                  aria-current=${name === part ? "page" : undefined}
                >${t.views[name]}</a>`,
              )}
            </nav>
            <${Lazy} key=${part} name="admin-${part}" from=${PARTS[part]} path=${path} />
          `
          : html`<${Empty} icon="user" title=${t.refused} text=${t.refusedText}>
            <${Button} href=${link("chat")}>${texts.views.chat}<//>
          <//>`}
    <//>
  <//>`;
}
