// Saved prompts: own ones with import and export, and those that administrators share.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Button, Empty, List, Menu, Notice, Page, toast } from "../components.js";
import { saveFile } from "../files.js";
import { html } from "../html.js";
import { PromptEditor, PromptRow } from "../prompts/editor.js";
import { fileOf, importAll, ownPrompts, prompts, promptsIn } from "../prompts/prompts.js";
import { pagedList, resource } from "../state.js";
import { texts } from "../texts/en/prompts.js";

const t = texts.prompts;

export default function Prompts() {
  const list = useMemo(() => pagedList((after) => prompts.list({ limit: 50, after })), []),
    edited = useSignal(null),
    problem = useSignal(null), // of the last import
    file = useRef(null);
  const add = () => {
    edited.value = {};
  };
  const tell = (error) => toast(error.message, { kind: "bad" });
  const take = async (chosen) => {
    problem.value = null;
    try {
      const { imported, skipped } = await importAll(await promptsIn(chosen));
      toast([t.imported(imported), skipped > 0 && t.skipped(skipped)].filter(Boolean).join(" "), {
        kind: imported ? "good" : "info",
      });
    } catch (error) {
      problem.value = error;
    }
    list.reload(); // a part of a large file may be stored
  };
  const save = async (body) => {
    const { id } = edited.peek();
    list.put(await (id ? prompts.change(id, body) : prompts.create(body)));
  };
  const items = [
    { label: t.importAction, icon: "upload", onSelect: () => file.current.click() },
    list.items.value?.length > 0 && {
      label: t.exportAction,
      icon: "download",
      onSelect: () => ownPrompts().then((all) => saveFile(fileOf(all), "prompts.json"), tell),
    },
  ];
  return html`<${Page}
    title=${texts.views.prompts}
    intro=${t.intro}
    actions=${html`<${Button} kind="primary" icon="plus" onClick=${add}>${t.create}<//>
      <${Menu} label=${t.more} items=${items} />`}
  >
    <input
      ref=${file}
      class="hidden-text"
      type="file"
      accept=".json,application/json"
      tabindex="-1"
      aria-hidden="true"
      onChange=${(event) => {
        const [chosen] = event.currentTarget.files;
        event.currentTarget.value = "";
        if (chosen) take(chosen);
      }}
    />
    ${problem.value && html`<${Notice} kind="bad" icon="warning">${problem.value.message}<//>`}
    <${List} of=${list} empty=${html`<${Empty} icon="edit" title=${t.none} text=${t.noneText} />`}>
      ${(prompt) => html`<${PromptRow}
        key=${prompt.id}
        of=${prompt}
        onEdit=${() => {
          edited.value = prompt;
        }}
        remove=${async () => {
          await prompts.remove(prompt.id);
          list.drop(prompt.id);
        }}
      />`}
    <//>
    <${Shared} />
    ${
      edited.value &&
      html`<${PromptEditor}
        of=${edited.value}
        save=${save}
        onClose=${() => {
          edited.value = null;
        }}
      />`
    }
  <//>`;
}

function Shared() {
  const shared = useMemo(() => resource(prompts.shared), []);
  useEffect(() => {
    shared.reload();
  }, []);
  if (!shared.data.value?.length) return null;
  return html`<section class="stack">
    <h2>${t.shared}</h2>
    <p class="quiet small">${t.sharedText}</p>
    <ul class="list">
      ${shared.data.value.map(
        (prompt) => html`<${PromptRow}
          key=${`${prompt.group}/${prompt.name}`}
          of=${prompt}
          hint=${prompt.group ?? t.everyone}
        />`,
      )}
    </ul>
  </section>`;
}
