import { limits } from "../../limits.js";
import { count, number } from "../locale.js";
import { texts as first } from "./first.js";

const rates = limits.chats_per_minute;

export const texts = {
  ...first,
  wallet: {
    ...first.wallet,
    balance: "Guthaben",
    available: "Verfügbar",
    held: (amount) => `${amount} für laufende Anfragen reserviert`,
    nothingHeld: "Nichts reserviert",
    allowance: (left, whole, day) => `Noch ${left} von ${whole}, wird am ${day} erneuert`,
    tierHints: {
      free: `${rates.free} Chats pro Minute. Lade mindestens $${limits.least_dollars} auf für ${rates.pro}.`,
      pro: `${rates.pro} Chats pro Minute und Support`,
    },
    addFunds: "Guthaben aufladen",
    testMoney: "Testmodus: Es wird kein echtes Geld berechnet.",
    spend: "Ausgaben",
    period: "Zeitraum",
    days: (n) => `Letzte ${n} Tage`,
    by: "Nach",
    series: { model: "Modell", key: "Schlüssel" },
    session: "Web-App",
    deletedKey: "Gelöschter Schlüssel",
    others: "Andere",
    chartLabel: (n) =>
      `Ausgaben pro Tag in den letzten ${n} Tagen. Wähle mit den Pfeiltasten links und rechts einen Tag aus.`,
    most: (amount) => `höchster Tag: ${amount}`,
    noSpend: "Keine Nutzung in diesem Zeitraum.",
    onlyFree: "In diesem Zeitraum wurden nur kostenlose Modelle verwendet.",
    asTable: "Als Tabelle ansehen",
    day: "Tag",
    requests: "Anfragen",
    input: "Eingabe-Token",
    output: "Ausgabe-Token",
    cost: "Kosten",
    ledger: "Buchungen",
    filter: "Anzeigen",
    kinds: { all: "Alle Buchungen", credit: "Gutschriften", debit: "Abbuchungen" },
    noneOfKind: "Keine Buchungen.",
    purposes: {
      funds: () => "Guthaben aufgeladen",
      testFunds: () => "Guthaben aufgeladen (Testgeld)",
      allowance: (month) => `Kontingent ${month}`,
      tokens: (model, input, output) =>
        `${model}: ${number(input)} Eingabe- und ${number(output)} Ausgabe-Token`,
      cachedTokens: (model, input, cached, output) =>
        `${model}: ${number(input)} Eingabe- (${number(cached)} aus dem Cache) und ` +
        `${number(output)} Ausgabe-Token`,
      images: (model, n) => `${model}: ${count(n, "Bild", "Bilder")}`,
      searches: (model, n) => `${model}: ${count(n, "Suche", "Suchen")}`,
      speech: (model, n, seconds) => `${model}: ${count(n, "Audio-Token", "Audio-Token")} (${seconds} s)`,
    },
    searching: (n) => `Nicht in den letzten ${n} Buchungen. Suche läuft noch …`,
    csv: "Als CSV herunterladen",
    saving: (n) => `${n} Buchungen …`,
    after: "danach",
    noLedger: "Noch keine Buchungen",
    noLedgerText: "Hier erscheinen deine Gutschriften und Kosten, genau bis auf ein Millionstel Dollar.",
  },
  spending: {
    limit: "Monatslimit",
    limitHint: "US-Dollar pro Kalendermonat. Leer bedeutet kein Limit.",
    spent: (spent, limit) => `${spent} von ${limit} in diesem Monat ausgegeben`,
    none: "Du kannst begrenzen, was dein Konto oder ein einzelner API-Schlüssel im Monat ausgibt.",
    change: "Limit ändern",
    set: "Limit festlegen",
    keys: "Limits von API-Schlüsseln",
  },
};
