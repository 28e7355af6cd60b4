import { limits } from "../../limits.js";
import { count, number } from "../locale.js";
import { texts as first } from "./first.js";

const rates = limits.chats_per_minute;

export const texts = {
  ...first,
  wallet: {
    ...first.wallet,
    balance: "Saldo",
    available: "Disponibile",
    held: (amount) => `${amount} riservati per richieste in corso`,
    nothingHeld: "Nulla di riservato",
    allowance: (left, whole, day) => `Restano ${left} di ${whole}, si rinnova il ${day}`,
    tierHints: {
      free:
        `${rates.free} chat al minuto. Ricarica almeno ${limits.least_dollars} USD per averne ` +
        `${rates.pro}.`,
      pro: `${rates.pro} chat al minuto e assistenza`,
    },
    addFunds: "Ricarica saldo",
    testMoney: "Modalità di prova: non viene addebitato denaro reale.",
    spend: "Spesa",
    period: "Periodo",
    days: (n) => `Ultimi ${n} giorni`,
    by: "Per",
    series: { model: "Modello", key: "Chiave" },
    session: "App web",
    deletedKey: "Chiave eliminata",
    others: "Altro",
    chartLabel: (n) =>
      `Spesa al giorno negli ultimi ${n} giorni. Usa le frecce sinistra e destra per selezionare un giorno.`,
    most: (amount) => `giorno più alto: ${amount}`,
    noSpend: "Nessun utilizzo in questo periodo.",
    onlyFree: "In questo periodo sono stati usati solo modelli gratuiti.",
    asTable: "Vedi come tabella",
    day: "Giorno",
    requests: "Richieste",
    input: "Token di input",
    output: "Token di output",
    cost: "Costo",
    ledger: "Movimenti",
    filter: "Mostra",
    kinds: { all: "Tutti i movimenti", credit: "Accrediti", debit: "Addebiti" },
    noneOfKind: "Nessun movimento.",
    /** What an entry is for. */
    purposes: {
      funds: () => "Saldo ricaricato",
      testFunds: () => "Saldo ricaricato (denaro di prova)",
      allowance: (month) => `Quota ${month}`,
      tokens: (model, input, output) =>
        `${model}: ${number(input)} token di input e ${number(output)} di output`,
      cachedTokens: (model, input, cached, output) =>
        `${model}: ${number(input)} token di input (${number(cached)} dalla cache) e ` +
        `${number(output)} di output`,
      images: (model, n) => `${model}: ${count(n, "immagine", "immagini")}`,
      searches: (model, n) => `${model}: ${count(n, "ricerca", "ricerche")}`,
      speech: (model, n, seconds) => `${model}: ${count(n, "token audio", "token audio")} (${seconds} s)`,
    },
    searching: (n) => `Non negli ultimi ${n} movimenti. Ricerca in corso…`,
    csv: "Scarica come CSV",
    saving: (n) => `${n} movimenti…`,
    after: "poi",
    noLedger: "Ancora nessun movimento",
    noLedgerText: "I tuoi accrediti e costi appariranno qui, esatti al milionesimo di dollaro.",
  },
  spending: {
    limit: "Limite mensile",
    limitHint: "Dollari USA per mese di calendario. Vuoto significa nessun limite.",
    spent: (spent, limit) => `${spent} di ${limit} spesi questo mese`,
    none: "Puoi limitare quanto il tuo account, o una singola chiave API, spende in un mese.",
    change: "Modifica limite",
    set: "Imposta un limite",
    keys: "Limiti delle chiavi API",
  },
};
