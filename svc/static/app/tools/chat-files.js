// The files of a chat's project, in a menu of the composer.
import { useEffect, useMemo } from "preact/hooks";
import { api } from "../api.js";
import { Menu } from "../components.js";
import { html } from "../html.js";
import { Icon } from "../icons.js";
import { link } from "../router.js";
import { resource } from "../state.js";
import { projectsTexts } from "../texts/en/views.js";

const t = projectsTexts.files;
const SHOWN = 30;

export default function ChatFiles({ projectId }) {
  const files = useMemo(() => resource(() => api.projects.files(projectId)), [projectId]);
  useEffect(() => {
    files.ensure();
  }, [files]);
  const list = files.data.value ?? [];
  if (!list.length) return null;
  const items = list.slice(0, SHOWN).map(({ artifact_id: id, name, status }) => ({
    label: status === "ready" ? name : `${name} (${t.notReady[status]})`,
    icon: status === "failed" ? "warning" : "artifacts",
    href: link("artifacts", id),
  }));
  const label = t.inChat(list.length);
  return html`<${Menu}
    label=${label}
    items=${[...items, { label: t.manage, icon: "folder", href: link("projects", projectId) }]}
    trigger=${(toggle) => html`<button
      type="button"
      class="icon-button tools-button"
      aria-label=${label}
      title=${label}
      ...${toggle}
      onClick=${() => {
        files.reload();
        toggle.onClick();
      }}
    ><${Icon} name="folder" /><span class="tools-count">${list.length}</span></button>`}
  />`;
}
