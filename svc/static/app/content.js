// The format of a message's content: the text, then attached files as fenced text, then images as Markdown.
const IMAGE = /!\[([^\]]*)\]\(\/artifacts\/(art_\w+)\/content\)/g;
const LINKED = /\[([^\]\n]+)\]\(\/artifacts\/(art_\w+)\/content\)/.source;
const HEAD = `(?:^|\\n\\n)File: (?:${LINKED}|([^\\n]+))\\n(\`{3,})\\w*\\n`;

/** Whether a content may hold more than text. */
export const hasParts = (content) => /^File: /m.test(content) || content.includes("](/artifacts/");

/**
 * Split a message's content: `{text, files: [{name, id, text}], images: [{name, id}]}`.
 */
export function split(content) {
  if (!hasParts(content)) return { text: content, files: [], images: [] };
  const { files, unfiled } = filesIn(content);
  const images = [...unfiled.matchAll(IMAGE)].map(([, name, id]) => ({ name, id }));
  return { text: unfiled.replace(IMAGE, "").trim(), files, images };
}

/** Find the files, in time linear in the content: a fence that is not closed once is not searched again. */
function filesIn(content) {
  const head = new RegExp(HEAD, "g"),
    unclosed = new Set(),
    files = [];
  let unfiled = "",
    last = 0;
  for (let found = head.exec(content); found; found = head.exec(content)) {
    const [whole, linked, id = null, name, fence] = found,
      from = found.index + whole.length;
    const end = unclosed.has(fence) ? -1 : closingOf(content, fence, from);
    if (end < 0) {
      unclosed.add(fence);
      continue;
    }
    files.push({ name: linked ?? name, id, text: content.slice(from, end) });
    unfiled += content.slice(last, found.index);
    head.lastIndex = last = end + 1 + fence.length;
  }
  return { files, unfiled: unfiled + content.slice(last) };
}

/** Return the index of the line end before the line that is `fence`, or -1. */
function closingOf(content, fence, from) {
  const line = `\n${fence}`;
  for (let at = content.indexOf(line, from); at >= 0; at = content.indexOf(line, at + 1))
    if ("\n".startsWith(content.charAt(at + line.length))) return at;
  return -1;
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
