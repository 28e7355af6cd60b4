// Schemas for people: type names, constraints, and the tree of fields.
import { el, inline, prose } from "./page.js";

/** The schemas of one document: `new Schemas(document).tree(schema)` are nodes. */
export class Schemas {
  constructor(document) {
    this.document = document;
  }

  /** Resolve a `$ref` together with its sibling keywords; return other values unchanged. */
  resolve(value) {
    if (!value?.$ref) return value;
    const { $ref, ...beside } = value;
    const target = $ref
      .slice(2)
      .split("/")
      .reduce((place, step) => place[step.replaceAll("~1", "/").replaceAll("~0", "~")], this.document);
    return { ...this.resolve(target), ...beside };
  }

  /** The type in a few words: `string | null`, `list of Model`. */
  type(schema) {
    const own = this.resolve(schema);
    if (schema.$ref && this.hasFields(schema)) return schema.$ref.split("/").at(-1);
    if (own.const !== undefined) return JSON.stringify(own.const);
    if (own.enum) return own.enum.map((value) => JSON.stringify(value)).join(" | ");
    const variants = own.anyOf ?? own.oneOf;
    if (variants) return [...new Set(variants.map((variant) => this.type(variant)))].join(" | ");
    return [own.type ?? "any"]
      .flat()
      .map((type) => (type === "array" ? `list of ${this.items(own)}` : type))
      .join(" | ");
  }

  items(schema) {
    const type = this.type(schema.items ?? {});
    return type.includes(" | ") ? `(${type})` : type;
  }

  /** Return the fields of a schema or of its variants, or null. `above` are the enclosing objects. */
  tree(schema, above = []) {
    const own = this.resolve(schema);
    const name = schema.$ref ?? own.title;
    if (name && above.includes(name)) return el("p", { class: "rule" }, "As above.");
    const inside = name ? [...above, name] : above;
    if (own.properties) return this.fields(own, inside);
    const held = own.items ?? own.contentSchema;
    if (held) return this.tree(held, inside);
    const variants = (own.anyOf ?? own.oneOf ?? []).filter((variant) => this.hasFields(variant));
    if (variants.length === 0) return null;
    if (variants.length === 1) return this.tree(variants[0], inside);
    return el(
      "ul",
      { class: "fields" },
      variants.map((variant) => el("li", {}, this.variant(variant, inside))),
    );
  }

  hasFields(schema) {
    const own = this.resolve(schema);
    return (
      Boolean(own.properties) ||
      [own.items, own.contentSchema, ...(own.anyOf ?? own.oneOf ?? [])].some(
        (one) => one && this.hasFields(one),
      )
    );
  }

  variant(schema, above) {
    const own = this.resolve(schema);
    const list = own.items ? "list of " : "";
    const named = own.items ?? schema;
    const kind = Object.entries(own.properties ?? {}).find(
      ([, field]) => field.const !== undefined || field.enum,
    );
    const label =
      named.$ref?.split("/").at(-1) ??
      own.title ??
      (kind ? `${kind[0]}: ${this.type(kind[1])}` : this.type(named));
    return el(
      "details",
      {},
      el("summary", {}, `${list}${label}`),
      own.description ? prose(own.description) : null,
      this.tree(schema, above),
    );
  }

  fields(own, above) {
    const rows = Object.entries(own.properties).map(([name, schema]) =>
      this.row(name, schema, (own.required ?? []).includes(name), above),
    );
    if (own.additionalProperties === true)
      rows.push(el("li", { class: "rule" }, "Further fields may be there."));
    return el("ul", { class: "fields" }, rows);
  }

  /** One line of a list of fields, parameters or headers. */
  row(name, schema, required, above = [], description = undefined) {
    const own = this.resolve(schema);
    const inner = this.hasFields(schema) ? this.tree(schema, above) : null;
    return el(
      "li",
      {},
      el("code", { class: "name" }, name),
      el("span", { class: "type" }, this.type(schema)),
      required ? el("span", { class: "flag required" }, "required") : null,
      own.deprecated ? el("span", { class: "flag deprecated" }, "deprecated") : null,
      this.rules(own),
      prose(description ?? own.description),
      inner ? el("details", {}, el("summary", {}, "Fields"), inner) : null,
    );
  }

  /** Return the constraints of a value besides its type. */
  rules(own) {
    const found = [
      bounds(own.minimum, own.maximum),
      bounds(own.minLength, own.maxLength, "character"),
      bounds(own.minItems, own.maxItems, "item"),
      own.default !== undefined ? `default \`${JSON.stringify(own.default)}\`` : null,
      own.pattern?.startsWith("^") && own.pattern.length < 60 ? `matches \`${own.pattern}\`` : null,
    ].filter(Boolean);
    return found.length ? el("p", { class: "rule" }, inline(found.join(", "))) : null;
  }
}

/** `1 to 4 items`, `at least 1 item`; null for no bounds, or none but zero. */
function bounds(low, high, noun) {
  if (high === undefined && !low) return null;
  const numbers =
    high === undefined ? `at least ${low}` : low === undefined ? `at most ${high}` : `${low} to ${high}`;
  if (!noun) return numbers;
  return `${numbers} ${noun}${(high ?? low) === 1 ? "" : "s"}`;
}
