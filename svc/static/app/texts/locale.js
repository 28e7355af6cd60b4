// The language of the page, and numbers in its texts.

/** The language that the server has chosen, by the cookie or by what the browser asks for. */
export const LANGUAGE = document.documentElement.lang;
/** Digits in Arabic texts are those of the formulas, prices and names of models around them. */
export const LOCALE = LANGUAGE === "ar" ? "ar-u-nu-latn" : LANGUAGE;
/** A text that is read from the left or right by itself: a price or a path among Arabic words. */
export const isolated = (text) => (LANGUAGE === "ar" ? `\u2068${text}\u2069` : text);
const COLON = { fr: "\u00a0: ", ja: "：", zh: "：" }[LANGUAGE] ?? ": ";
export const pair = (name, value) => `${name}${COLON}${value}`;
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
