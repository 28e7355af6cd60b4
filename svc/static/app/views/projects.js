// Projects: instructions, a step limit, and the conversations, runs and artifacts in each project.
import { signal, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { api } from "../api.js";
import { iconOf } from "../artifact.js";
import {
  Button,
  confirm,
  Dialog,
  Empty,
  Failed,
  Field,
  List,
  Loading,
  Page,
  Resource,
  Time,
  toast,
} from "../components.js";
import { bytes } from "../format.js";
import { html } from "../html.js";
import { Icon } from "../icons.js";
import { limits } from "../limits.js";
import { go, link } from "../router.js";
import { pagedList, projects } from "../state.js";
import { texts } from "../texts.js";
import { agentTexts } from "../texts/en/tools.js";
import { DropZone } from "../uploads.js";
import { Files, filesOf } from "./project-files.js";
import { projectsTexts } from "../texts/en/views.js";

const t = projectsTexts;
const adding = signal(false);

export default function Projects({ path }) {
  if (path[0]) return html`<${Project} key=${path[0]} id=${path[0]} />`;
  const open = () => {
    adding.value = true;
  };
  return html`<${Page}
    title=${texts.views.projects}
    intro=${t.intro}
    actions=${html`<${Button} kind="primary" icon="plus" onClick=${open}>${t.create}<//>`}
  >
    <${Resource} of=${projects}>
      ${(list) =>
        list.length
          ? html`<ul class="list">
            ${list.map(
              (project) => html`<li key=${project.id}>
                <${Icon} name="folder" />
                <a class="grow item-link" href=${link("projects", project.id)}>
                  <p class="item-title">${project.name}</p>
                  <p class="quiet small one-line">${project.instructions || t.noInstructions}</p>
                </a>
              </li>`,
            )}
          </ul>`
          : html`<${Empty} icon="folder" title=${t.none} text=${t.noneText}>
            <${Button} onClick=${open}>${t.create}<//>
          <//>`}
    <//>
    ${
      adding.value &&
      html`<${Dialog}
        title=${t.create}
        onClose=${() => {
          adding.value = false;
        }}
      >
        <${Editor}
          of=${{}}
          onSaved=${(made) => {
            adding.value = false;
            go(link("projects", made.id));
          }}
          onCancel=${() => {
            adding.value = false;
          }}
        />
      <//>`
    }
  <//>`;
}

function Editor({ of, onSaved, onCancel }) {
  const busy = useSignal(false),
    error = useSignal(null);
  const told = (name) => (error.value?.param === name ? error.value.message : null);
  const save = async (event) => {
    event.preventDefault();
    const given = /** @type {Record<string, string>} */ (Object.fromEntries(new FormData(event.target)));
    const body = {
      name: given.name.trim(),
      instructions: given.instructions,
      max_planner_steps: given.steps ? Number(given.steps) : null,
    };
    [busy.value, error.value] = [true, null];
    try {
      const saved = await (of.id ? api.projects.change(of.id, body) : api.projects.create(body));
      await projects.reload();
      onSaved(saved);
    } catch (problem) {
      error.value = problem;
    }
    busy.value = false;
  };
  const steps = [
    ["", t.noCap],
    ...Array.from({ length: limits.project.max_planner_steps.max }, (_, at) => [
      String(at + 1),
      agentTexts.steps_used(at + 1),
    ]),
  ];
  return html`<form class="stack" onSubmit=${save}>
    <${Field}
      label=${t.name}
      name="name"
      required
      maxlength=${limits.project.name.maxlength}
      defaultValue=${of.name}
      error=${told("name")}
      autofocus=${!of.id}
    />
    <${Field}
      label=${t.instructions}
      name="instructions"
      rows="7"
      maxlength=${limits.project.instructions.maxlength}
      defaultValue=${of.instructions ?? ""}
      hint=${t.instructionsHint}
      error=${told("instructions")}
    />
    <${Field}
      label=${t.cap}
      name="steps"
      defaultValue=${of.max_planner_steps ? String(of.max_planner_steps) : ""}
      options=${steps}
      hint=${t.capHint}
    />
    ${
      error.value &&
      !["name", "instructions"].includes(error.value.param) &&
      html`<${Failed} error=${error.value} />`
    }
    <div class=${onCancel ? "actions dialog-foot" : "actions"}>
      ${onCancel && html`<${Button} onClick=${onCancel}>${texts.common.cancel}<//>`}
      <${Button} kind="primary" type="submit" busy=${busy.value}>
        ${of.id ? texts.common.save : t.createAction}
      <//>
    </div>
  </form>`;
}

function Project({ id }) {
  const project = useSignal(/** @type {Api.Project} */ (undefined)),
    error = useSignal(null),
    files = useMemo(() => filesOf(id), []);
  const load = async () => {
    try {
      [project.value, error.value] = [await api.projects.show(id), null];
    } catch (problem) {
      error.value = problem;
    }
  };
  useEffect(() => {
    load();
  }, []);
  if (project.value === undefined)
    return html`<div class="page">
      ${error.value ? html`<${Failed} error=${error.value} retry=${load} />` : html`<${Loading} />`}
    </div>`;
  const now = project.value;
  const remove = async () => {
    if (
      !(await confirm({
        title: t.deleteTitle,
        text: t.deleteText(now.name),
        action: texts.common.delete,
        danger: true,
      }))
    )
      return;
    try {
      await api.projects.remove(id);
      await projects.reload();
      go(link("projects"), { replace: true });
      toast(t.deleted(now.name));
    } catch (problem) {
      toast(problem.message, { kind: "bad" });
    }
  };
  return html`<${DropZone} hint=${t.files.dropHere} onFiles=${files.upload}><div class="page">
    <p class="back"><a href=${link("projects")}>${t.back}</a></p>
    <div class="section-head">
      <h1 tabindex="-1">${now.name}</h1>
      <div class="actions">
        <${Button} icon="chat" href=${link("chat", { project_id: id })}>${t.newChat}<//>
        <${Button} icon="agents" href=${link("agents", { project_id: id })}>${t.newRun}<//>
        <${Button} kind="quiet" icon="trash" onClick=${remove}>${texts.common.delete}<//>
      </div>
    </div>
    <div class="card">
      <${Editor}
        of=${now}
        onSaved=${(saved) => {
          project.value = saved;
          toast(texts.common.saved, { kind: "good" });
        }}
      />
    </div>
    <${Files} of=${files} />
    <${Filed}
      title=${t.conversations}
      load=${(after) => api.conversations.list({ limit: 20, after, project_id: id })}
      item=${(one) => html`<li key=${one.id}>
        <${Icon} name="chat" />
        <a class="grow item-link" href=${link("chat", one.id)}>
          <p class="item-title">${one.title || texts.conversations.untitled}</p>
          <p class="quiet small"><${Time} at=${one.updated_at} /></p>
        </a>
      </li>`}
    />
    <${Filed}
      title=${t.runs}
      load=${(after) => api.agents.list({ limit: 20, after, project_id: id })}
      item=${(one) => html`<li key=${one.id}>
        <${Icon} name="agents" />
        <a class="grow item-link" href=${link("agents", one.id)}>
          <p class="item-title one-line">${one.goal}</p>
          <p class="quiet small">${agentTexts.statuses[one.status]} · <${Time} at=${one.created_at} /></p>
        </a>
      </li>`}
    />
    <${Filed}
      title=${texts.views.artifacts}
      version=${files.list.data.value?.length}
      load=${(after) => api.artifacts.list({ limit: 20, after, project_id: id })}
      item=${(one) => html`<li key=${one.id}>
        <${Icon} name=${iconOf(one)} />
        <a class="grow item-link" href=${link("artifacts", one.id)}>
          <p class="item-title">${one.name}</p>
          <p class="quiet small">${bytes(one.size)} · <${Time} at=${one.updated_at} /></p>
        </a>
      </li>`}
    />
  </div><//>`;
}

/** A list of the project's objects, loaded again after a change of `version`. */
function Filed({ title, load, item, version }) {
  const list = useMemo(() => pagedList(load), []);
  useEffect(() => {
    if (list.items.peek()) list.reload();
  }, [version]);
  return html`
    <h2>${title}</h2>
    <${List} of=${list} empty=${html`<p class="quiet">${t.nothingFiled}</p>`}>${item}<//>
  `;
}
