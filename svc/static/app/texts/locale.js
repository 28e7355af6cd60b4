// The language of the page, and numbers in its texts.

/** A language of the application, as BCP 47 writes it. The server has chosen it. */
export const LOCALE = document.documentElement.lang;
const plain = new Intl.NumberFormat(LOCALE);
const rules = new Intl.PluralRules(LOCALE);

export const number = (value) => plain.format(value);

/**
 * A number and the word in its form: `count(2, "day", "days")`. A language with other forms than one and
 * other gives all of them by the names of Intl.PluralRules, where `#` is the number.
 * @param {number} n
 * @param {string | Partial<Record<Intl.LDMLPluralRule, string>>} one
 * @param {string} [other]
 */
export function count(n, one, other) {
  const forms = typeof one === "string" ? { one: `# ${one}`, other: `# ${other ?? one}` } : one;
  return (forms[rules.select(n)] ?? forms.other).replace("#", () => number(n));
}
