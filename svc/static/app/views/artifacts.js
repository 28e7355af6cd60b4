// Artifacts: list, show, upload, rename, replace, move and delete the account's files.
import { signal, useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { api } from "../api.js";
import { ArtifactContent, PreviewButton, iconOf, saveArtifact } from "../artifact.js";
import {
  Button,
  confirm,
  Dialog,
  Empty,
  Failed,
  Field,
  IconButton,
  List,
  Loading,
  Page,
  Progress,
  Time,
  toast,
} from "../components.js";
import { bytes } from "../format.js";
import { html } from "../html.js";
import { Icon } from "../icons.js";
import { limits } from "../limits.js";
import { go, link } from "../router.js";
import { pagedList, projects } from "../state.js";
import { texts } from "../texts/en/artifacts.js";
import { DropZone, UploadButton, Uploads, newUploads } from "../uploads.js";

const t = texts.artifacts;
const uploads = newUploads();
const changed = signal(0); // incremented when lists of artifacts must reload

export default function Artifacts({ path, query }) {
  useEffect(() => {
    projects.ensure();
  }, []);
  return path[0]
    ? html`<${One} key=${path[0]} id=${path[0]} />`
    : html`<${All} key=${query.project_id ?? ""} project=${query.project_id} />`;
}

function All({ project }) {
  const list = useMemo(
    () => pagedList((after) => api.artifacts.list({ limit: 50, after, project_id: project })),
    [project],
  );
  useEffect(() => {
    if (list.items.peek()) list.reload();
  }, [changed.value]);
  const add = (files) =>
    uploads.add(files, project, () => {
      changed.value++;
    });
  const names = [["", t.allProjects], ...(projects.data.value ?? []).map(({ id, name }) => [id, name])];
  const actions = html`
    ${
      names.length > 1 &&
      html`<${Field}
        label=${t.project}
        hideLabel
        value=${project ?? ""}
        options=${names}
        onChange=${(event) =>
          go(
            event.currentTarget.value
              ? link("artifacts", { project_id: event.currentTarget.value })
              : link("artifacts"),
          )}
      />`
    }
    <${UploadButton} label=${t.upload} onFiles=${add} />
  `;
  return html`<${DropZone} hint=${t.dropHere} onFiles=${add}>
    <${Page} title=${texts.views.artifacts} intro=${t.intro} actions=${actions}>
      <${Uploads} of=${uploads} />
      <${List} of=${list} empty=${html`<${Empty} icon="artifacts" title=${t.none} text=${t.noneText} />`}>
        ${(artifact) => html`<li key=${artifact.id}>
          <${Icon} name=${iconOf(artifact)} />
          <a class="grow item-link" href=${link("artifacts", artifact.id)}>
            <p class="item-title">${artifact.name}</p>
            <p class="quiet small">
              ${bytes(artifact.size)} · <${Time} at=${artifact.updated_at} />
              ${artifact.run_id ? ` · ${t.byAgent}` : ""}
            </p>
          </a>
          <${IconButton}
            icon="download"
            label=${t.downloadNamed(artifact.name)}
            onClick=${() => saveArtifact(artifact).catch((error) => toast(error.message, { kind: "bad" }))}
          />
        </li>`}
      <//>
    <//>
  <//>`;
}

function One({ id }) {
  const artifact = useSignal(/** @type {Api.Artifact} */ (undefined)),
    error = useSignal(null),
    renaming = useSignal(false),
    replacing = useSignal(null),
    file = useRef(null);
  const load = async () => {
    try {
      [artifact.value, error.value] = [await api.artifacts.show(id), null];
    } catch (problem) {
      error.value = problem;
    }
  };
  useEffect(() => {
    load();
  }, []);
  const projectNames = useComputed(() => [
    ["", t.noProject],
    ...(projects.data.value ?? []).map((project) => [project.id, project.name]),
  ]);
  if (artifact.value === undefined)
    return html`<div class="page">
      ${error.value ? html`<${Failed} error=${error.value} retry=${load} />` : html`<${Loading} />`}
    </div>`;
  const now = artifact.value;
  const failed = (problem) => toast(problem.message, { kind: "bad" });
  const change = async (what) => {
    artifact.value = await api.artifacts.change(id, what);
    changed.value++;
  };
  const replace = async (chosen) => {
    replacing.value = { done: 0, all: chosen.size };
    try {
      await api.artifacts.replaceContent(id, chosen, {
        type: chosen.type,
        onProgress: (done, all) => {
          replacing.value = { done, all };
        },
      });
      await load();
      changed.value++;
      toast(t.replaced, { kind: "good" });
    } catch (problem) {
      failed(problem);
    }
    replacing.value = null;
  };
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
      await api.artifacts.remove(id);
      changed.value++;
      go(link("artifacts"), { replace: true });
      toast(t.deleted(now.name));
    } catch (problem) {
      failed(problem);
    }
  };
  return html`<div class="page">
    <p class="back"><a href=${link("artifacts")}>${t.back}</a></p>
    <div class="section-head">
      <h1 tabindex="-1">${now.name}</h1>
      <div class="actions">
        <${PreviewButton} of=${now} />
        <${Button} icon="download" onClick=${() => saveArtifact(now).catch(failed)}>
          ${texts.common.download}
        <//>
        <${Button} onClick=${() => {
          renaming.value = true;
        }}>${texts.common.rename}<//>
        <input
          ref=${file}
          type="file"
          hidden
          aria-label=${t.replace}
          onChange=${(event) => {
            const [chosen] = event.currentTarget.files;
            event.currentTarget.value = "";
            if (chosen) replace(chosen);
          }}
        />
        <${Button} busy=${replacing.value !== null} onClick=${() => file.current.click()}>${t.replace}<//>
        <${Button} kind="quiet" icon="trash" onClick=${remove}>${texts.common.delete}<//>
      </div>
    </div>
    ${
      replacing.value &&
      html`<${Progress} label=${t.replacing} value=${replacing.value.done} max=${replacing.value.all || 1} />`
    }
    <h2 class="hidden-text">${t.content}</h2>
    <div class="artifact-shown"><${ArtifactContent} of=${now} /></div>
    <dl class="account-facts card">
      <div><dt>${t.type}</dt><dd>${now.content_type}</dd></div>
      <div><dt>${t.size}</dt><dd>${bytes(now.size)}</dd></div>
      <div><dt>${t.made}</dt><dd><${Time} at=${now.created_at} /></dd></div>
      <div><dt>${t.changed}</dt><dd><${Time} at=${now.updated_at} /></dd></div>
      <div><dt>SHA-256</dt><dd><code>${now.sha256}</code></dd></div>
      ${
        now.run_id &&
        html`<div><dt>${t.run}</dt><dd><a href=${link("agents", now.run_id)}>${t.showRun}</a></dd></div>`
      }
    </dl>
    ${
      projectNames.value.length > 1 &&
      html`<div class="filters more-space">
        <${Field} label=${t.project} value=${now.project_id ?? ""} options=${projectNames.value}
        onChange=${(event) => change({ project_id: event.currentTarget.value || null }).catch(failed)} />
      </div>`
    }
    ${
      renaming.value &&
      html`<${Rename}
        name=${now.name}
        onSave=${(name) => change({ name })}
        onClose=${() => {
          renaming.value = false;
        }}
      />`
    }
  </div>`;
}

function Rename({ name, onSave, onClose }) {
  const busy = useSignal(false),
    error = useSignal(null);
  const save = async (event) => {
    event.preventDefault();
    [busy.value, error.value] = [true, null];
    try {
      await onSave(String(new FormData(event.target).get("name")).trim());
      onClose();
    } catch (problem) {
      [busy.value, error.value] = [false, problem];
    }
  };
  return html`<${Dialog} title=${texts.common.rename} onClose=${onClose}>
    <form class="stack" onSubmit=${save}>
      <${Field}
        label=${t.name}
        name="name"
        defaultValue=${name}
        required
        maxlength=${limits.artifact.name.maxlength}
        autofocus
        error=${error.value?.message}
      />
      <div class="actions dialog-foot">
        <${Button} onClick=${onClose}>${texts.common.cancel}<//>
        <${Button} kind="primary" type="submit" busy=${busy.value}>${texts.common.save}<//>
      </div>
    </form>
  <//>`;
}
