// Format numbers, money and times.

import { texts } from "./texts.js";
import { LANGUAGE, LOCALE, isolated, number } from "./texts/locale.js";
export { number };

const MONEY = LANGUAGE === "ar" ? "en" : LOCALE;
const dollars = (least, most) =>
  new Intl.NumberFormat(MONEY, {
    style: "currency",
    currency: "USD",
    minimumFractionDigits: least,
    maximumFractionDigits: most,
  });
const whole = dollars(2, 2),
  fine = dollars(2, 6);
const rough = new Intl.NumberFormat(MONEY, {
  style: "currency",
  currency: "USD",
  maximumSignificantDigits: 2,
});
const short = new Intl.NumberFormat(LOCALE, { notation: "compact", maximumFractionDigits: 1 });
const day = new Intl.DateTimeFormat(LOCALE, { dateStyle: "medium" });
const wholeDay = new Intl.DateTimeFormat(LOCALE, { dateStyle: "medium", timeZone: "UTC" });
const dayAndTime = new Intl.DateTimeFormat(LOCALE, { dateStyle: "medium", timeStyle: "short" });
// 1 December, as in the texts around it
const utcDay = new Intl.DateTimeFormat(LOCALE === "en" ? "en-GB" : LOCALE, {
  day: "numeric",
  month: "long",
  timeZone: "UTC",
});
const relative = new Intl.RelativeTimeFormat(LOCALE, { numeric: "auto" });

/** Format micros as a balance: $12.34, rounded down. */
export const balance = (micros) => isolated(whole.format(Math.floor(micros / 10_000) / 100));
/** Format micros as a cost with all digits: $0.000042. */
export const cost = (micros) => isolated(fine.format(micros / 1_000_000));
/** Format micros as an estimate with two digits: $0.0021. */
export const estimate = (micros) => isolated(rough.format(micros / 1_000_000));
/** 1,234,567 -> 1.2M */
export const compact = (value) => short.format(value);

const rounded = (value, digits) =>
  value.toLocaleString(LOCALE, { minimumFractionDigits: digits, maximumFractionDigits: digits });

export function bytes(value) {
  const units = texts.units.bytes;
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000;
  const text = `${rounded(value, unit && value < 10 ? 1 : 0)} ${units[unit]}`;
  return unit ? isolated(text) : text;
}

/** Milliseconds: 0.4 s, 12 s, 3 min 20 s. */
export function duration(milliseconds) {
  const seconds = milliseconds / 1000;
  const t = texts.units;
  if (seconds < 0.1) return `< ${t.seconds(number(0.1))}`;
  if (seconds < 60) return t.seconds(rounded(seconds, seconds < 10 ? 1 : 0));
  return t.minutes(number(Math.floor(seconds / 60)), number(Math.round(seconds % 60)));
}

/** Seconds: 0:07. */
export const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;

/** Format the day of a time here; a day without a time, such as 2026-01-31, stays that day everywhere. */
export const date = (iso) => (iso.length === 10 ? wholeDay : day).format(new Date(iso));
/** Format a day in UTC without its year: 1 December. */
export const dayOfMonth = (iso) => utcDay.format(new Date(iso));
export const dateTime = (iso) => dayAndTime.format(new Date(iso));

/** Format a relative time: "just now", "5 minutes ago", "yesterday", or a date. */
export function ago(iso, now = Date.now()) {
  const minutes = Math.round((new Date(iso).getTime() - now) / 60_000);
  if (minutes > -1) return relative.format(0, "second");
  if (minutes > -60) return relative.format(minutes, "minute");
  if (minutes > -60 * 24) return relative.format(Math.round(minutes / 60), "hour");
  if (minutes > -60 * 24 * 7) return relative.format(Math.round(minutes / 60 / 24), "day");
  return date(iso);
}

/**
 * @typedef {{input_micros_per_million_tokens: number, output_micros_per_million_tokens: number,
 *   micros_per_image: number, micros_per_thousand_audio_tokens: number,
 *   micros_per_audio_minute: number}} Pricing
 */

/**
 * Return the price of a model in one line, or null if it is free.
 * @param {{pricing?: Partial<Pricing>}} model
 */
export function price({ pricing = {} }) {
  const { input_micros_per_million_tokens: input = 0, output_micros_per_million_tokens: output = 0 } =
    pricing;
  const t = texts.models.prices;
  if (pricing.micros_per_image) return t.image(cost(pricing.micros_per_image));
  if (pricing.micros_per_thousand_audio_tokens)
    return t.speech(cost(pricing.micros_per_thousand_audio_tokens));
  if (pricing.micros_per_audio_minute) return t.minute(cost(pricing.micros_per_audio_minute));
  return input || output ? t.tokens(cost(input), cost(output)) : null;
}

/** A model's id as it is shown: of a model that is the path of a file only the file's name. */
export const modelName = (id) =>
  id.replace(/^([^/]+\/)(?:[~.]{0,2}[/\\]|[a-z]:[/\\]).*?([^/\\]+\.(?:gguf|llamafile))$/i, "$1$2");
