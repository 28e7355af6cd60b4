// Files that become artifacts: the button, the drop zone, and the uploads with their progress and errors.
import { signal, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { api } from "./api.js";
import { Button, Failed, IconButton, Progress } from "./components.js";
import { html } from "./html.js";
import { limits } from "./limits.js";
import { texts } from "./texts.js";

/**
 * Uploads of a view. `add(files, project, onStored)` uploads files one by one: first the record, then its
 * bytes with progress. If `onStored(artifact)` throws, the artifact stays, and the error is shown.
 */
export function newUploads() {
  const items = signal([]); // {id, name, done, all, error}
  let last = 0;
  const change = (id, what) => {
    items.value = items.peek().flatMap((one) => (one.id !== id ? [one] : what ? [{ ...one, ...what }] : []));
  };
  const add = async (files, project, onStored) => {
    for (const file of files) {
      const id = ++last;
      items.value = [...items.peek(), { id, name: file.name, done: 0, all: file.size }];
      try {
        await onStored(await store(file, project, (done, all) => change(id, { done, all })));
        change(id, null);
      } catch (error) {
        change(id, { error });
      }
    }
  };
  return { items, add, dismiss: (id) => change(id, null) };
}

async function store(file, project, onProgress) {
  const type = file.type || "application/octet-stream";
  const made = await api.artifacts.create({
    name: file.name.slice(0, limits.artifact.name.maxlength),
    content: "",
    content_type: type,
    ...(project && { project_id: project }),
  });
  try {
    return await api.artifacts.replaceContent(made.id, file, { type, onProgress });
  } catch (error) {
    api.artifacts.remove(made.id).catch(() => {}); // delete the incomplete artifact
    throw error;
  }
}

export function Uploads({ of }) {
  if (!of.items.value.length) return null;
  return html`<ul class="uploads">
    ${of.items.value.map(({ id, name, done, all, error }) =>
      error
        ? html`<li key=${id}>
          <${Failed} error=${error}><p>${name}</p><//>
          <${IconButton} icon="close" label=${texts.common.dismiss} onClick=${() => of.dismiss(id)} />
        </li>`
        : html`<li key=${id}><${Progress} label=${name} value=${done} max=${all || 1} /></li>`,
    )}
  </ul>`;
}

/** Opens the file dialog: `onFiles(files)`. */
export function UploadButton({ label, onFiles, ...rest }) {
  const file = useRef(null);
  return html`<input
      ref=${file}
      type="file"
      multiple
      hidden
      aria-label=${label}
      onChange=${(event) => {
        onFiles([...event.currentTarget.files]); // the browser empties the list when the event is over
        event.currentTarget.value = "";
      }}
    />
    <${Button} kind="primary" icon="upload" onClick=${() => file.current.click()} ...${rest}>${label}<//>`;
}

/** Takes files that are dropped on its children. */
export function DropZone({ hint, onFiles, children }) {
  const over = useSignal(false);
  return html`<div
    class=${over.value ? "drop-zone dropping" : "drop-zone"}
    onDragOver=${(event) => {
      event.preventDefault();
      over.value = true;
    }}
    onDragLeave=${(event) => {
      if (!event.currentTarget.contains(event.relatedTarget)) over.value = false;
    }}
    onDrop=${(event) => {
      event.preventDefault();
      over.value = false;
      onFiles([...event.dataTransfer.files]);
    }}
  >
    ${children}
    <p class="drop-hint" aria-hidden="true">${hint}</p>
  </div>`;
}
