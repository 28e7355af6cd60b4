import { limits } from "../../limits.js";
import { count, number } from "../locale.js";
import { texts as first } from "./first.js";

const rates = limits.chats_per_minute;

export const texts = {
  ...first,
  wallet: {
    ...first.wallet,
    balance: "Solde",
    available: "Disponible",
    held: (amount) => `${amount} réservés pour des requêtes en cours`,
    nothingHeld: "Rien de réservé",
    allowance: (left, whole, day) => `Il reste ${left} sur ${whole}, renouvellement le ${day}`,
    tierHints: {
      free: `${rates.free} chats par minute. Ajoutez ${limits.least_dollars} $US ou plus pour ${rates.pro}.`,
      pro: `${rates.pro} chats par minute, et l’assistance`,
    },
    addFunds: "Ajouter des fonds",
    testMoney: "Mode test : aucun argent réel n’est débité.",
    spend: "Dépenses",
    period: "Période",
    days: (n) => `${n} derniers jours`,
    by: "Par",
    series: { model: "Modèle", key: "Clé" },
    session: "Application Web",
    deletedKey: "Clé supprimée",
    others: "Autres",
    chartLabel: (n) =>
      `Dépenses par jour sur les ${n} derniers jours. Utilisez les flèches gauche et droite ` +
      "pour sélectionner un jour.",
    most: (amount) => `jour le plus élevé : ${amount}`,
    noSpend: "Aucune utilisation sur cette période.",
    onlyFree: "Seuls des modèles gratuits ont été utilisés sur cette période.",
    asTable: "Afficher en tableau",
    day: "Jour",
    requests: "Requêtes",
    input: "Tokens en entrée",
    output: "Tokens en sortie",
    cost: "Coût",
    ledger: "Opérations",
    filter: "Afficher",
    kinds: { all: "Toutes les opérations", credit: "Crédits", debit: "Débits" },
    noneOfKind: "Aucune opération.",
    /** What an entry is for. */
    purposes: {
      funds: () => "Fonds ajoutés",
      testFunds: () => "Fonds ajoutés (argent de test)",
      allowance: (month) => `Allocation ${month}`,
      tokens: (model, input, output) =>
        `${model} : ${number(input)} tokens en entrée et ${number(output)} en sortie`,
      cachedTokens: (model, input, cached, output) =>
        `${model} : ${number(input)} tokens en entrée (${number(cached)} en cache) et ` +
        `${number(output)} en sortie`,
      images: (model, n) => `${model} : ${count(n, "image", "images")}`,
      searches: (model, n) => `${model} : ${count(n, "recherche", "recherches")}`,
      speech: (model, n, seconds) => `${model} : ${count(n, "token audio", "tokens audio")} (${seconds} s)`,
    },
    searching: (n) => `Pas dans les ${n} dernières opérations. Recherche en cours…`,
    csv: "Télécharger en CSV",
    saving: (n) => `${n} opérations…`,
    after: "puis",
    noLedger: "Aucune opération pour le moment",
    noLedgerText: "Vos crédits et vos coûts apparaîtront ici, au millionième de dollar près.",
  },
  spending: {
    limit: "Limite mensuelle",
    limitHint: "Dollars américains par mois civil. Vide signifie sans limite.",
    spent: (spent, limit) => `${spent} dépensés sur ${limit} ce mois-ci`,
    none: "Vous pouvez limiter ce que votre compte, ou une seule clé API, dépense en un mois.",
    change: "Modifier la limite",
    set: "Définir une limite",
    keys: "Limites des clés API",
  },
};
