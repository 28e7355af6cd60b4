// The format of a message's content: the text, then attached files as fenced text, then images as Markdown.
const IMAGE = /!\[([^\]]*)\]\(\/artifacts\/(art_\w+)\/content\)/g;
const LINKED = /\[([^\]\n]+)\]\(\/artifacts\/(art_\w+)\/content\)/.source;
const FILE = new RegExp(
  `(?:^|\\n\\n)File: (?:${LINKED}|([^\\n]+))\\n(\`{3,})\\w*\\n([\\s\\S]*?)\\n\\4(?=\\n|$)`,
  "g",
);

/** Whether a content may hold more than text. */
export const hasParts = (content) => /^File: /m.test(content) || content.includes("](/artifacts/");

/**
 * Split a message's content: `{text, files: [{name, id, text}], images: [{name, id}], rest}`. `rest` is the
 * content without its text.
 */
export function split(content) {
  if (!hasParts(content)) return { text: content, files: [], images: [], rest: "" };
  const files = [...content.matchAll(FILE)].map(([, linked, id, name, , text]) => ({
    name: linked ?? name,
    id: id ?? null,
    text,
  }));
  const unfiled = content.replace(FILE, "");
  const images = [...unfiled.matchAll(IMAGE)].map(([, name, id]) => ({ name, id }));
  const text = unfiled.replace(IMAGE, "").trim();
  return { text, files, images, rest: contentOf("", files, images) };
}

/** The content of a message. A file with an `id` is an artifact; its `text` is what the model receives. */
export function contentOf(text, files, images = []) {
  const fenced = files.map((file) => {
    const longest = Math.max(2, ...(file.text.match(/`{3,}/g) ?? []).map(({ length }) => length));
    const fence = "`".repeat(longest + 1);
    const name = file.name.replace(/[[\]\n]/g, "");
    const head = file.id ? `[${name}](/artifacts/${file.id}/content)` : name;
    return `File: ${head}\n${fence}${/\.(\w{1,10})$/.exec(name)?.[1] ?? ""}\n${file.text}\n${fence}`;
  });
  return [text, ...fenced, ...images.map(reference)].filter(Boolean).join("\n\n");
}

/** The Markdown of an image that is an artifact. */
export const reference = ({ name, id }) => `![${name.replace(/[[\]]/g, "")}](/artifacts/${id}/content)`;
