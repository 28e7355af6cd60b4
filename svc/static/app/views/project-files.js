// The files of a project: their state, uploads, the choice of artifacts that there are, removal.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { api } from "../api.js";
import { iconOf } from "../artifact.js";
import { Button, Dialog, Empty, IconButton, List, Progress, Resource, toast } from "../components.js";
import { bytes } from "../format.js";
import { html } from "../html.js";
import { Icon } from "../icons.js";
import { usePolling } from "../polling.js";
import { link } from "../router.js";
import { sentenceOf } from "../sentences.js";
import { pagedList, resource } from "../state.js";
import { texts } from "../texts/en/artifacts.js";
import { UploadButton, Uploads, newUploads } from "../uploads.js";
import { projectsTexts } from "../texts/en/views.js";

const t = projectsTexts.files;
const READING_MS = 1_000;
const isReading = ({ status }) => status === "reading";

/** The files of a project: `list` (a resource), `uploads`, and their changes, which throw the error. */
export function filesOf(project) {
  const list = resource(() => api.projects.files(project)),
    uploads = newUploads();
  const others = (id) => (list.data.peek() ?? []).filter((file) => file.artifact_id !== id);
  const add = async (id) => {
    const file = await api.projects.addFile(project, id);
    list.set([...others(id), file]);
  };
  const remove = async (id) => {
    await api.projects.removeFile(project, id);
    list.set(others(id));
  };
  return {
    list,
    uploads,
    add,
    remove,
    upload: (chosen) => uploads.add(chosen, project, ({ id }) => add(id)),
  };
}

export function Files({ of }) {
  const choosing = useSignal(false);
  usePolling(of.list.reload, READING_MS, () => of.list.data.peek()?.some(isReading));
  const add = html`<${UploadButton} label=${t.add} kind="plain" onFiles=${of.upload} />
    <${Button} onClick=${() => {
      choosing.value = true;
    }}>${t.choose}<//>`;
  return html`<section aria-label=${t.title}>
    <div class="section-head">
      <h2>${t.title}</h2>
      ${of.list.data.value?.length > 0 && html`<div class="actions">${add}</div>`}
    </div>
    <${Uploads} of=${of.uploads} />
    <${Resource} of=${of.list}>
      ${(files) =>
        files.length
          ? html`<${Known} files=${files} of=${of} />`
          : html`<${Empty} icon="artifacts" title=${t.none} text=${t.noneText}>${add}<//>`}
    <//>
    ${
      choosing.value &&
      html`<${Choice}
        of=${of}
        onClose=${() => {
          choosing.value = false;
        }}
      />`
    }
  </section>`;
}

const fail = (error) => toast(error.message, { kind: "bad" });

function Known({ files, of }) {
  const read = files.filter((file) => !isReading(file)).length;
  const remove = ({ artifact_id: id, name }) =>
    of
      .remove(id)
      .then(() =>
        toast(t.removed(name), {
          action: { label: texts.common.undo, onSelect: () => of.add(id).catch(fail) },
        }),
      )
      .catch(fail);
  return html`
    ${
      read < files.length
        ? html`<div class="files-sum">
          <${Progress} label=${t.progress(read, files.length)} value=${read} max=${files.length} />
        </div>`
        : html`<p class="quiet small files-sum">
          ${t.sum(files.length, bytes(files.reduce((sum, { text_bytes: size }) => sum + size, 0)))}
        </p>`
    }
    <ul class="list">
      ${files.map(
        (file) => html`<li key=${file.artifact_id}>
          <${Icon} name=${iconOf(file)} />
          <a class="grow item-link" href=${link("artifacts", file.artifact_id)}>
            <p class="item-title" dir="auto">${file.name}</p>
            <p class="quiet small">${bytes(file.size)} · <${State} of=${file} /></p>
          </a>
          <${IconButton} icon="close" label=${t.remove(file.name)} onClick=${() => remove(file)} />
        </li>`,
      )}
    </ul>
  `;
}

const State = ({ of: { status, error } }) =>
  status === "failed" ? html`<span class="danger">${t.failed(sentenceOf(error))}</span>` : t.states[status];

/** Artifacts that there are. Images and sounds have no text. */
function Choice({ of, onClose }) {
  const list = useMemo(() => pagedList((after) => api.artifacts.list({ limit: 50, after })), []),
    busy = useSignal(null);
  const there = new Set(of.list.data.value.map((file) => file.artifact_id));
  const add = async (id) => {
    busy.value = id;
    await of.add(id).catch(fail);
    busy.value = null;
  };
  return html`<${Dialog} title=${t.choose} onClose=${onClose}>
    <${List} of=${list} empty=${html`<p class="quiet">${texts.artifacts.none}</p>`}>
      ${(one) =>
        /^(image|audio)\//.test(one.content_type)
          ? null
          : html`<li key=${one.id}>
            <div class="grow">
              <p class="item-title" dir="auto">${one.name}</p>
              <p class="quiet small">${bytes(one.size)}</p>
            </div>
            ${
              there.has(one.id)
                ? html`<span class="quiet">${t.added}</span>`
                : html`<${Button}
                  small
                  busy=${busy.value === one.id}
                  aria-label=${t.addNamed(one.name)}
                  onClick=${() => add(one.id)}
                >${t.addAction}<//>`
            }
          </li>`}
    <//>
  <//>`;
}
