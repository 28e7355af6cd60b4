// Print the texts of the languages in the arguments as JSON: {language: {file: {path: text}}}. Functions are called with
// numbers, and give {parameters, inserted, texts}.
import { readdirSync, readFileSync } from "node:fs";

const [folder, limits, ...languages] = process.argv.slice(2);
const NUMBERS = [0, 1, 2, 3, 11, 100, 1_000_000];
/** What a text inserts: a number that is found again in the text, also as a list or as the fields of an object. */
const inserted = (number) =>
  Object.assign(new Number(number), {
    join: () => `${number}`,
    ...Object.fromEntries(["imported", "skipped", "failed"].map((name, at) => [name, number + 1 + at])),
  });

function textsOf(value, path, found) {
  if (typeof value === "function") {
    const names = [...Array(Math.max(value.length, 1)).keys()];
    const told = value(...names.map((at) => inserted(207 + 100 * at)));
    found[path] = {
      parameters: value.length,
      inserted: [...new Set(told.match(/\b[2-9]\d{2}\b/g))].sort(),
      texts: [told, ...NUMBERS.map((number) => value(...names.map(() => inserted(number))))],
    };
  } else if (typeof value === "object") {
    for (const [key, inner] of Object.entries(value)) textsOf(inner, path ? `${path}\n${key}` : key, found);
  } else found[path] = value;
}

const all = {};
for (const language of languages) {
  globalThis.document = { documentElement: { lang: language }, getElementById: () => ({ textContent: limits }) };
  all[language] = {};
  for (const file of readdirSync(`${folder}/${language}`)) {
    all[language][file] = {};
    for (const [name, value] of Object.entries(await load(`${folder}/${language}/${file}`, language)))
      textsOf(value, name, all[language][file]);
  }
}
console.log(JSON.stringify(all));

/** Import a module as that of one language. A data: URL has no folder, so its imports become such URLs, too. */
function load(path, language) {
  return import(addressOf(path, language));
}

function addressOf(path, language) {
  const folder = path.slice(0, path.lastIndexOf("/"));
  const text = readFileSync(path, "utf8").replace(
    /from "(\.[^"]+)"/g,
    (_, specifier) => `from "${addressOf(`${folder}/${specifier}`, language)}"`,
  );
  return `data:text/javascript,${encodeURIComponent(`// ${language}\n${text}`)}`;
}
