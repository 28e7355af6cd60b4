// Shared by the scripts of all pages: elements, prose, and code with a copy button.

/**
 * Create an element. False, null or missing attributes are left out. Children are nodes or text, never
 * markup.
 */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false)
      node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

/** Return the nodes of a line in which `code` and **strong words** are marked as in Markdown. */
export function inline(text) {
  return text
    .split(/(`[^`]+`|\*\*[^*]+\*\*)/)
    .filter(Boolean)
    .map((part) => {
      if (part.startsWith("`") && part.length > 2) return el("code", {}, part.slice(1, -1));
      if (part.startsWith("**") && part.length > 4) return el("strong", {}, part.slice(2, -2));
      return part;
    });
}

/**
 * Return the nodes of a longer text: paragraphs, lists of lines that begin with `- `, and code between lines
 * of ```.
 */
export function prose(text) {
  return (text ?? "")
    .split(/^```\n([\s\S]*?)\n```$/m)
    .flatMap((part, position) => (position % 2 ? [codeBlock(part, "Example")] : paragraphs(part)));
}

function paragraphs(text) {
  return text
    .split(/\n{2,}/)
    .filter((block) => block.trim())
    .map((block) => {
      const lines = block.split("\n");
      if (lines.every((line) => line.startsWith("- "))) {
        return el(
          "ul",
          {},
          lines.map((line) => el("li", {}, inline(line.slice(2)))),
        );
      }
      return el("p", {}, inline(block));
    });
}

/** Format `value` as JSON; short objects stay on one line. */
export function jsonText(value, indent = "") {
  const line = JSON.stringify(value, null, 1).replace(/\n\s*/g, " ");
  if (indent.length + line.length <= 72 || typeof value !== "object") return line;
  const inner = `${indent}  `;
  const items = Array.isArray(value)
    ? value.map((item) => inner + jsonText(item, inner))
    : Object.entries(value).map(
        ([name, item]) => `${inner}${JSON.stringify(name)}: ${jsonText(item, inner)}`,
      );
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${items.join(",\n")}\n${indent}${close}`;
}

/** A code block that can be scrolled and copied. `label` is its accessible name. */
export function codeBlock(text, label) {
  const pre = el("pre", { tabindex: "0", role: "group", "aria-label": label }, el("code", {}, text));
  return withCopyButton(pre);
}

/** Wrap `pre` in a box with a copy button. */
export function withCopyButton(pre) {
  const button = el("button", { type: "button", "aria-live": "polite" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(pre.textContent.trim());
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(pre);
      button.textContent = "Selected";
    }
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2000);
  });
  return el("div", { class: "code" }, pre, button);
}
