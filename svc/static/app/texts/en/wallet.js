import { limits } from "../../limits.js";
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
    searching: (n) => `Not in the latest ${n} entries. Still searching…`,
    csv: "Download as CSV",
    saving: (n) => `${n} entries…`,
    after: "then",
    noLedger: "No entries yet",
    noLedgerText: "Your credits and costs appear here, exact to a millionth of a dollar.",
  },
};
