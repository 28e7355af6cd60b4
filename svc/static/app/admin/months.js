// The choices of a month in the reports.
const MONTHS = 36;
const FORMAT = new Intl.DateTimeFormat(document.documentElement.lang, {
  month: "long",
  year: "numeric",
  timeZone: "UTC",
});

export const monthName = (iso) => FORMAT.format(new Date(iso));

/** The choices of a month, newest first. Firefox and Safari have no input for months. */
export function months() {
  const now = new Date();
  return Array.from({ length: MONTHS }, (_, back) => {
    const first = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1)).toISOString();
    return [first.slice(0, 7), monthName(first)];
  });
}
