// The reference page from /openapi.json: an introduction, a section per tag, an article per operation, and
// the menu.
import { codeBlock, el, inline, jsonText, prose } from "./page.js";
import { Schemas } from "./docs-schema.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const main = document.querySelector("main");

async function start() {
  const menu = /** @type {HTMLDetailsElement} */ (document.querySelector(".menu"));
  const wide = matchMedia("(min-width: 60.01rem)");
  const setMenu = () => {
    menu.open = wide.matches;
  };
  wide.addEventListener("change", setMenu);
  setMenu();
  try {
    const answer = await fetch("/openapi.json");
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    draw(await answer.json());
  } catch (error) {
    document.querySelector("[role=alert]").textContent =
      `openapi.json could not be shown: ${error.message}. Load the page again.`;
  }
  main.removeAttribute("aria-busy");
}

function draw(api) {
  const operations = Object.entries(api.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({ path, method, ...item[method] })),
  );
  const page = {
    api,
    schemas: new Schemas(api),
    base: api.servers[0].url.replace(/\/$/, ""),
    common: commonAnswers(operations),
  };
  const groups = api.tags.map((tag) => ({
    ...tag,
    operations: operations.filter((operation) => operation.tags[0] === tag.name),
  }));
  main.append(...introduction(page), ...groups.map((group) => section(page, group)));
  drawMenu(groups);
  // Scroll to the fragment again, because the articles did not exist at load.
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

/** The errors that most operations share, with and without a token; the introduction shows them. */
function commonAnswers(operations) {
  const references = (operation) =>
    Object.values(operation.responses)
      .map((answer) => answer.$ref)
      .filter(Boolean);
  const open = new Set(operations.filter((operation) => operation.security.length === 0).flatMap(references));
  const all = operations.flatMap(references);
  return new Set(
    [...open].filter(
      (reference) => all.filter((other) => other === reference).length > operations.length / 2,
    ),
  );
}

// --- the introduction and the menu

function introduction({ api, base, schemas, common }) {
  const refusals = [...common].map((reference) => schemas.resolve({ $ref: reference }));
  return [
    el("p", { class: "lead" }, api.info.summary),
    el(
      "dl",
      { class: "facts" },
      el("dt", {}, "Base address"),
      el("dd", {}, el("code", {}, base)),
      el("dt", {}, "Version"),
      el("dd", {}, api.info.version),
      el("dt", {}, "For programs"),
      el("dd", {}, el("a", { href: "/openapi.json" }, "openapi.json")),
    ),
    ...prose(api.info.description),
    el(
      "p",
      {},
      inline(
        "The curl lines below take a session token or an API key from `$TOKEN`. Where the service made " +
          "its own certificate, say once `export CURL_CA_BUNDLE=data/tls/ca.pem`.",
      ),
    ),
    el("h2", { id: "errors" }, "Errors"),
    schemas.tree({ $ref: "#/components/schemas/Error" }),
    el("p", {}, "These refusals may meet any request; the endpoints below name only their own."),
    codeList(refusals.flatMap(errorsOf)),
  ];
}

function drawMenu(groups) {
  const filter = /** @type {HTMLInputElement} */ (document.querySelector("[type=search]"));
  const menu = document.querySelector("#menu");
  const entries = [];
  for (const group of groups) {
    const items = group.operations.map((operation) => {
      const item = el(
        "li",
        {},
        el(
          "a",
          { href: `#${operation.operationId}`, title: operation.summary },
          method(operation),
          inSteps(operation.path),
        ),
      );
      entries.push({
        item,
        words: `${operation.method} ${operation.path} ${operation.summary} ${group.name}`.toLowerCase(),
      });
      return item;
    });
    menu.append(el("section", {}, el("h2", {}, group.name), el("ul", {}, items)));
  }
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    for (const entry of entries) entry.item.hidden = !words.every((word) => entry.words.includes(word));
    for (const group of menu.querySelectorAll("section"))
      group.hidden = !group.querySelector("li:not([hidden])");
  });
}

/** A path that can wrap between its segments. */
function inSteps(path) {
  return el(
    "span",
    {},
    path.split(/(?=\/)/).map((step) => [step, el("wbr")]),
  );
}

function method(operation) {
  return el("span", { class: `method ${operation.method}` }, operation.method.toUpperCase());
}

// --- operations

function section(page, group) {
  const id = `tag-${group.name.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  return el(
    "section",
    { class: "tag", id },
    el("h2", {}, group.name),
    prose(group.description),
    group.operations.map((operation) => article(page, operation)),
  );
}

function article(page, operation) {
  const { schemas } = page;
  const [bodyType, body] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const parameters = (operation.parameters ?? []).map((parameter) => schemas.resolve(parameter));
  return el(
    "article",
    { class: "operation", id: operation.operationId },
    el(
      "h3",
      {},
      el("a", { href: `#${operation.operationId}` }, method(operation), el("code", {}, operation.path)),
      el("span", {}, operation.summary),
    ),
    prose(operation.description),
    el("p", { class: "access" }, inline(access(page.api, operation))),
    parameters.length
      ? [
          el("h4", {}, "Parameters"),
          el(
            "ul",
            { class: "fields" },
            parameters.map((parameter) =>
              schemas.row(parameter.name, parameter.schema, parameter.required, [], parameter.description),
            ),
          ),
        ]
      : null,
    body?.schema
      ? [el("h4", {}, "Body"), prose(schemas.resolve(body.schema).description), schemas.tree(body.schema)]
      : null,
    isForBrowsers(page.api, operation, bodyType)
      ? null
      : commands(page.base, operation, parameters, bodyType, body),
    el("h4", {}, "Answers"),
    el(
      "div",
      { class: "answers" },
      Object.entries(operation.responses)
        .filter(([, answer]) => !page.common.has(answer.$ref))
        .map(([status, answer]) => answerOf(schemas, status, schemas.resolve(answer))),
    ),
  );
}

/** Return the required authentication in a sentence. */
function access(api, operation) {
  const names = operation.security.flatMap(Object.keys);
  if (names.length === 0) return "Needs no token.";
  if (names.includes("bearer")) return "Needs a token.";
  const optional = operation.security.some((wanted) => Object.keys(wanted).length === 0);
  return `${optional ? "May need" : "Needs"}: ${api.components.securitySchemes[names[0]].description}`;
}

function isForBrowsers(api, operation, bodyType) {
  const schemes = operation.security
    .flatMap(Object.keys)
    .map((name) => api.components.securitySchemes[name].type);
  return schemes.includes("apiKey") || bodyType === "application/x-www-form-urlencoded";
}

function commands(base, operation, parameters, bodyType, body) {
  const examples = Object.values(body?.examples ?? { only: {} });
  return [
    el("h4", {}, examples.length > 1 ? "Examples" : "Example"),
    examples.map((example) => [
      example.summary ? el("p", { class: "quiet" }, example.summary) : null,
      codeBlock(
        curl(base, operation, parameters, bodyType, example.value),
        `curl: ${example.summary ?? operation.summary}`,
      ),
    ]),
  ];
}

/** Return a curl command for the operation with the examples of the document. */
function curl(base, operation, parameters, bodyType, value) {
  const path = parameters
    .filter((parameter) => parameter.in === "path")
    .reduce((text, parameter) => text.replace(`{${parameter.name}}`, parameter.example), operation.path);
  const usual = bodyType ? "post" : "get";
  const isStream =
    value?.stream || Object.keys(operation.responses["200"]?.content ?? {}).join() === "text/event-stream";
  const method = operation.method === usual ? "" : ` -X ${operation.method.toUpperCase()}`;
  const parts = [`curl -sS${isStream ? "N" : ""}${method} ${base}${path}`];
  if (operation.security.some((wanted) => wanted.bearer)) parts.push('-H "Authorization: Bearer $TOKEN"');
  for (const { name, example } of parameters.filter((one) => one.in === "header" && one.required))
    parts.push(`-H '${name}: ${example}'`);
  if (value !== undefined)
    parts.push("-H 'Content-Type: application/json'", `-d '${jsonText(value).replaceAll("'", "'\\''")}'`);
  else if (bodyType) parts.push("-H 'Content-Type: text/plain'", "--data-binary @FILE");
  return parts.join(" \\\n  ");
}

// --- answers

function answerOf(schemas, status, answer) {
  const good = /^[23]/.test(status);
  const title = [
    el("span", { class: `status ${good ? "good" : "bad"}` }, status),
    " ",
    inline(answer.description),
  ];
  const headers = Object.entries(answer.headers ?? {}).filter(([name]) => name !== "x-request-id");
  const inside = good
    ? [
        headerFields(schemas, headers),
        Object.entries(answer.content ?? {}).map(([type, media]) => content(schemas, type, media)),
      ].flat(Infinity)
    : [codeList(errorsOf(answer)), headerNames(headers)];
  if (inside.every((part) => part === null)) return el("p", {}, title);
  return el("details", { open: status.startsWith("2") }, el("summary", {}, title), el("div", {}, inside));
}

function headerFields(schemas, headers) {
  if (headers.length === 0) return null;
  return [
    el("h5", {}, "Headers"),
    el(
      "ul",
      { class: "fields" },
      headers.map(([name, header]) => {
        const own = schemas.resolve(header);
        return schemas.row(name, own.schema, false, [], own.description);
      }),
    ),
  ];
}

function headerNames(headers) {
  return headers.length
    ? el("p", { class: "rule" }, inline(`Headers: ${headers.map(([name]) => `\`${name}\``).join(", ")}`))
    : null;
}

function content(schemas, type, media) {
  if (type === "*/*") return null;
  const own = schemas.resolve(media.schema);
  return [
    el("h5", {}, type),
    prose(own.description),
    own.type === "array" ? el("p", { class: "rule" }, schemas.type(own)) : null,
    schemas.tree(media.schema),
    Object.values(media.examples ?? {}).map(({ summary, value }) => [
      summary ? el("p", { class: "quiet" }, summary) : null,
      codeBlock(jsonText(value), `Example: ${summary ?? type}`),
    ]),
  ];
}

function errorsOf(answer) {
  return Object.values(answer.content?.["application/json"]?.examples ?? {}).map(
    (example) => example.value.error,
  );
}

function codeList(errors) {
  return el(
    "ul",
    { class: "fields" },
    errors.map((error) =>
      el(
        "li",
        {},
        el("code", { class: "name" }, error.code),
        el("span", { class: "type" }, error.type),
        el("p", {}, error.message),
      ),
    ),
  );
}

start();
