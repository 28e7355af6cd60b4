// The language of the page: the account's setting, else a choice before the sign-in, else the browser's. The
// server reads it from a cookie, so a page in another language is another page.
import { effect } from "@preact/signals";
import { api, session } from "./api.js";
import { Field } from "./components.js";
import { html } from "./html.js";
import { limits } from "./limits.js";
import { settings } from "./state.js";
import { texts } from "./texts.js";

const COOKIE = "svc_language";
const CHOSEN = "svc.language"; // in this tab, before a sign-in
const YEAR_SECONDS = 31_536_000;
/** By themselves: a reader looks for the own language. */
const NAMES = {
  en: "English",
  de: "Deutsch",
  es: "Español",
  fr: "Français",
  pt: "Português",
  it: "Italiano",
  ja: "日本語",
  zh: "简体中文",
  ar: "العربية",
};

/** The stored choice, or null. */
export const storedLanguage = () => new RegExp(`(?:^|; )${COOKIE}=(\\w+)`).exec(document.cookie)?.[1] ?? null;

/** Draw the page in this language, or for null in the browser's. */
function show(language) {
  if (language === storedLanguage()) return;
  const lasting = `path=/; samesite=lax; secure; max-age=${language ? YEAR_SECONDS : 0}`;
  // biome-ignore lint/suspicious/noDocumentCookie: older browsers have no Cookie Store API
  document.cookie = `${COOKIE}=${language ?? ""}; ${lasting}`;
  if (language === storedLanguage()) location.reload(); // a browser may refuse cookies
}

/** Choose a language before the sign-in. The account gets it. */
export function chooseAsVisitor(language) {
  sessionStorage.setItem(CHOSEN, language ?? "");
  show(language);
}

async function follow({ language }) {
  const chosen = /** @type {any} */ (sessionStorage.getItem(CHOSEN));
  sessionStorage.removeItem(CHOSEN);
  if (chosen && chosen !== language)
    return settings.set(
      await api.user.changeSettings({ language: chosen }).catch(() => settings.data.peek()),
    );
  show(language);
}

effect(() => {
  if (session.value) settings.ensure();
});
effect(() => {
  if (session.value && settings.data.value) follow(settings.data.value);
});

/** A field for the language; `chosen` is null for that of the browser. */
export function LanguageField({ chosen, onChoose, ...field }) {
  const languages = limits.languages.map((language) => [language, NAMES[language]]);
  return html`<${Field}
    label=${texts.shell.language}
    value=${chosen ?? ""}
    options=${[["", texts.shell.browserLanguage], ...languages]}
    onChange=${(event) => onChoose(event.currentTarget.value || null)}
    ...${field}
  />`;
}
