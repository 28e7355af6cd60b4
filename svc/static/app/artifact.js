// One artifact: an inline image, audio player or text, or a download link.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api } from "./api.js";
import { openPreview } from "./code.js";
import { Button, Failed, Loading, toast } from "./components.js";
import { saveFile } from "./files.js";
import { bytes } from "./format.js";
import { html } from "./html.js";
import { Icon } from "./icons.js";
import { Markdown } from "./markdown.js";
import { Picture } from "./picture.js";
import { link } from "./router.js";
import { preview } from "./state.js";
import { texts } from "./texts/en/artifacts.js";

const t = texts.artifacts;
const SHOWN_BYTES = 300_000;
const PREVIEW_BYTES = 5_000_000; // a page with its pictures inside
/** The kinds of previews, by the media type or the name. */
const PREVIEWS = [
  { kind: "html", types: /^(?:text\/html|application\/xhtml\+xml)\b/i, names: /\.x?html?$/i },
  { kind: "svg", types: /^image\/svg\+xml\b/i, names: /\.svg$/i },
  { kind: "mermaid", types: /^text\/vnd\.mermaid\b/i, names: /\.(?:mmd|mermaid)$/i },
];

/**
 * Return how an artifact is shown: `picture`, `sound`, `text` or `file`. SVG is a text, because it could
 * contain a script.
 */
export function kindOf({ content_type: type, name }) {
  if (/^image\/(png|jpeg|webp|gif)\b/.test(type)) return "picture";
  if (type.startsWith("audio/")) return "sound";
  if (
    /^text\/|json\b|xml\b|yaml\b|javascript\b/.test(type) ||
    /\.(md|txt|csv|json|py|js|ts|toml|ya?ml|sql|sh)$/i.test(name)
  )
    return "text";
  return "file";
}

export const iconOf = (artifact) =>
  ({ picture: "image", sound: "sound", text: "artifacts", file: "artifacts" })[kindOf(artifact)];

/** Download the content under the artifact's name. */
export async function saveArtifact({ id, name }, options) {
  saveFile(await api.artifacts.content(id, options), name);
}

/** Return the kind of preview of an artifact, or undefined. */
function previewOf({ content_type: type, name, size }) {
  if (!size || size > PREVIEW_BYTES) return undefined;
  const found = PREVIEWS.find((one) => one.types.test(type)) ?? PREVIEWS.find((one) => one.names.test(name));
  return found?.kind;
}

/** A button that shows HTML, SVG or Mermaid beside the page. The panel closes with it. */
export function PreviewButton({ of, ...rest }) {
  const kind = previewOf(of);
  useEffect(
    () => () => {
      if (preview.peek()?.stored?.id === of.id) preview.value = null;
    },
    [of.id, of.updated_at],
  );
  if (!kind) return null;
  const open = async () => {
    try {
      await openPreview(kind, await (await api.artifacts.content(of.id)).text(), of);
    } catch (error) {
      toast(error.message, { kind: "bad" });
    }
  };
  return html`<${Button} onClick=${open} ...${rest}>${texts.common.preview}<//>`;
}

/** Load the content of an artifact. `updated_at` reloads a replaced one. */
export function ArtifactContent({ of }) {
  const kind = kindOf(of);
  if (kind === "picture") return html`<${Picture} key=${of.updated_at} id=${of.id} name=${of.name} />`;
  if (kind === "sound") return html`<${Sound} key=${of.updated_at} of=${of} />`;
  if (kind === "text" && of.size <= SHOWN_BYTES) return html`<${Text} key=${of.updated_at} of=${of} />`;
  return html`<p class="quiet">${kind === "text" ? t.tooLong : t.noPreview}</p>`;
}

/**
 * @param {string} id
 * @returns {[{blob?: Blob, error?: Error}, () => void]}
 */
function useContent(id) {
  const content = useSignal({});
  const load = () => {
    content.value = {};
    api.artifacts.content(id).then(
      (blob) => {
        content.value = { blob };
      },
      (error) => {
        content.value = { error };
      },
    );
  };
  useEffect(load, [id]);
  return [content.value, load];
}

function Sound({ of }) {
  const [{ blob, error }, load] = useContent(of.id),
    url = useSignal(null);
  useEffect(() => {
    if (!blob) return undefined;
    const made = URL.createObjectURL(blob);
    url.value = made;
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  if (error) return html`<${Failed} error=${error} retry=${load} />`;
  return url.value
    ? html`<audio controls preload="metadata" src=${url.value} aria-label=${of.name}></audio>`
    : html`<${Loading} />`;
}

function Text({ of }) {
  const [{ blob, error }, load] = useContent(of.id),
    text = useSignal(null);
  useEffect(() => {
    blob?.text().then((value) => {
      text.value = value;
    });
  }, [blob]);
  if (error) return html`<${Failed} error=${error} retry=${load} />`;
  if (text.value === null) return html`<${Loading} />`;
  if (/\.md$/i.test(of.name) || of.content_type.startsWith("text/markdown"))
    return html`<div class="artifact-text"><${Markdown} text=${text.value} /></div>`;
  return html`<pre class="artifact-text" tabindex="0" aria-label=${of.name}><code>${text.value}</code></pre>`;
}

/** A card for a created artifact with its name and preview. */
export function ArtifactCard({ of }) {
  return html`<section class="artifact-card" aria-label=${of.name}>
    <p class="artifact-card-head">
      <${Icon} name=${iconOf(of)} size=${18} />
      <a href=${link("artifacts", of.id)}>${of.name}</a>
      <span class="quiet small">${bytes(of.size)}</span>
      <${PreviewButton} of=${of} small kind="quiet" />
    </p>
    ${kindOf(of) !== "file" && html`<${ArtifactContent} of=${of} />`}
  </section>`;
}
