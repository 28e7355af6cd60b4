// Italian texts of estimated costs.
import { number } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  estimate: {
    cost: (usual, most) => `Costo stimato: circa ${usual}, al massimo ${most}`,
    explained: (limit) =>
      "Il tuo messaggio, i messaggi precedenti e una risposta di lunghezza normale. Al " +
      `massimo: una risposta di ${number(limit)} token.`,
    noFunds: (amount) => `Il tuo saldo di ${amount} non è sufficiente per questo messaggio.`,
    tooLong: (limit) =>
      `È più lungo di quanto il modello possa leggere: circa ${number(limit)} token. ` +
      "Accorcialo o scegli un altro modello.",
  },
};
