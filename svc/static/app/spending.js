// Monthly limits of the account and of API keys: how much is spent, and the field that sets one.
import { Field, Progress } from "./components.js";
import { cost } from "./format.js";
import { html } from "./html.js";
import { isNearLimit } from "./state.js";
import { texts } from "./texts/en/wallet.js";

const t = texts.spending;
const MICROS = 1_000_000;

/** The bar of the account or of a key, if it has a limit. */
export function SpendingBar({ of }) {
  const { monthly_limit_micros: limit, spent_this_month_micros: spent } = of;
  if (limit === null) return null;
  return html`<div class=${isNearLimit(of) ? "spending warn" : "spending"}>
    <${Progress} label=${t.spent(cost(spent), cost(limit))} value=${limit ? spent : 1} max=${limit || 1} />
  </div>`;
}

/** A field for a limit in dollars. */
export function LimitField({ micros, error, ...input }) {
  return html`<${Field}
    label=${t.limit}
    name="limit"
    type="number"
    min="0"
    step="any"
    inputmode="decimal"
    hint=${t.limitHint}
    error=${error?.param === "monthly_limit_micros" ? error.message : null}
    defaultValue=${micros === null || micros === undefined ? "" : String(micros / MICROS)}
    ...${input}
  />`;
}

/** The limit in a form with a LimitField, in micros. Null is none. */
export function limitIn(form) {
  const dollars = String(new FormData(form).get("limit"));
  return dollars === "" ? null : Math.round(Number(dollars) * MICROS);
}
