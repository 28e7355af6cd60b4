import { limits } from "../../limits.js";
import { count, number } from "../locale.js";
import { texts as first } from "./first.js";

const rates = limits.chats_per_minute;

export const texts = {
  ...first,
  wallet: {
    ...first.wallet,
    balance: "Balance",
    available: "Available",
    held: (amount) => `${amount} on hold for running requests`,
    nothingHeld: "Nothing on hold",
    allowance: (left, whole, day) => `${left} of ${whole} left, renews on ${day}`,
    tierHints: {
      free: `${rates.free} chats per minute. Add $${limits.least_dollars} or more for ${rates.pro}.`,
      pro: `${rates.pro} chats per minute, and support`,
    },
    addFunds: "Add funds",
    testMoney: "Test mode: no real money is charged.",
    spend: "Spend",
    period: "Period",
    days: (n) => `Last ${n} days`,
    by: "By",
    series: { model: "Model", key: "Key" },
    session: "Web app",
    deletedKey: "Deleted key",
    others: "Other",
    chartLabel: (n) =>
      `Spend per day over the last ${n} days. Use the left and right arrow keys to select a day.`,
    most: (amount) => `highest day: ${amount}`,
    noSpend: "No usage in this period.",
    onlyFree: "Only free models were used in this period.",
    asTable: "View as table",
    day: "Day",
    requests: "Requests",
    input: "Input tokens",
    output: "Output tokens",
    cost: "Cost",
    ledger: "Ledger",
    filter: "Show",
    kinds: { all: "All entries", credit: "Credits", debit: "Debits" },
    noneOfKind: "No entries.",
    /** What an entry is for. */
    purposes: {
      funds: () => "Added funds",
      testFunds: () => "Added funds (test money)",
      allowance: (month) => `Allowance ${month}`,
      tokens: (model, input, output) =>
        `${model}: ${number(input)} input and ${number(output)} output tokens`,
      cachedTokens: (model, input, cached, output) =>
        `${model}: ${number(input)} input (${number(cached)} cached) and ${number(output)} output tokens`,
      images: (model, n) => `${model}: ${count(n, "image", "images")}`,
      searches: (model, n) => `${model}: ${count(n, "search", "searches")}`,
      speech: (model, n, seconds) => `${model}: ${count(n, "audio token", "audio tokens")} (${seconds} s)`,
    },
    searching: (n) => `Not in the latest ${n} entries. Still searching…`,
    csv: "Download as CSV",
    saving: (n) => `${n} entries…`,
    after: "then",
    noLedger: "No entries yet",
    noLedgerText: "Your credits and costs appear here, exact to a millionth of a dollar.",
  },
  spending: {
    limit: "Monthly limit",
    limitHint: "US dollars per calendar month. Empty means no limit.",
    spent: (spent, limit) => `${spent} of ${limit} spent this month`,
    none: "You can limit what your account, or a single API key, spends in a month.",
    change: "Change limit",
    set: "Set a limit",
    keys: "Limits of API keys",
  },
};
