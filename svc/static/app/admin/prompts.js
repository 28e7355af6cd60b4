// Prompts that are shared with a group or with everyone.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Button, Empty, Resource } from "../components.js";
import { html } from "../html.js";
import { PromptEditor, PromptRow } from "../prompts/editor.js";
import { prompts } from "../prompts/prompts.js";
import { resource } from "../state.js";
import { texts } from "../texts/en/prompts.js";
import { groups } from "./one-time-link.js";

const t = texts.prompts;
const isSame = (one) => (other) => one.group === other.group && one.name === other.name;

export default function SharedPrompts() {
  const all = useMemo(() => resource(prompts.ofAllGroups), []),
    edited = useSignal(null);
  useEffect(() => {
    groups.reload();
  }, []);
  /** Store the list of a group. It is loaded again before, because others may have changed it. */
  const store = async (group, change) => {
    const now = (await prompts.ofAllGroups()).filter((one) => one.group === group);
    const list = change(now).map(({ name, text }) => ({ name, text }));
    all.set(await prompts.share(group, list));
  };
  const remove = (prompt) => store(prompt.group, (now) => now.filter((one) => !isSame(prompt)(one)));
  const save = async ({ group: chosen, name, text }) => {
    const before = edited.peek(),
      group = chosen || null;
    const isMoved = before.name !== undefined && before.group !== group;
    await store(group, (now) => [...now.filter((one) => !isSame(before)(one)), { name, text }]);
    if (isMoved) await remove(before);
  };
  const names = new Set([...(groups.data.value ?? []), edited.value?.group].filter(Boolean));
  const choices = [["", t.everyone], ...[...names].map((name) => [name, name])];
  return html`
    <p class="quiet part-intro">${t.adminIntro}</p>
    <div class="actions part-intro">
      <${Button}
        kind="primary"
        icon="plus"
        onClick=${() => {
          edited.value = {};
        }}
      >${t.create}<//>
    </div>
    <${Resource} of=${all}>
      ${(list) =>
        list.length
          ? html`<ul class="list">
            ${list.map(
              (prompt) => html`<${PromptRow}
                key=${`${prompt.group}/${prompt.name}`}
                of=${prompt}
                hint=${prompt.group ?? t.everyone}
                onEdit=${() => {
                  edited.value = prompt;
                }}
                remove=${() => remove(prompt)}
              />`,
            )}
          </ul>`
          : html`<${Empty} icon="edit" title=${t.adminNone} />`}
    <//>
    ${
      edited.value &&
      html`<${PromptEditor}
        of=${edited.value}
        groups=${choices}
        save=${save}
        onClose=${() => {
          edited.value = null;
        }}
      />`
    }
  `;
}
