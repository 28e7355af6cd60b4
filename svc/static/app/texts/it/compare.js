// Italian texts for several models that answer the same question.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

const compare = {
  /** The title of the choice: for the next question, or for one that has an answer. */
  next: "Confronta modelli",
  again: "Rispondi con altri modelli",
  hint: (most) =>
    `Scegli fino a ${count(most, "modello", "modelli")}. Rispondono uno dopo l’altro e la ` +
    "conversazione continua con la risposta che scegli.",
  hintNext: "Il costo stimato di tutti appare nel campo del messaggio prima dell’invio.",
  search: "Cerca modelli",
  none: "Nessun modello corrispondente.",
  choose: "Scegli prima un modello.",
  use: (n) => (n > 1 ? `Confronta ${n} modelli` : "Usa questo modello"),
  ask: (n) => (n > 1 ? `Chiedi a ${n} modelli` : "Rigenera"),
  title: "Confronta le risposte",
  later: "Risponde dopo i precedenti",
  writing: "Generazione della risposta",
  take: "Usa questa risposta",
  kept: "Le altre risposte restano come versioni.",
  failed: "Questo modello non ha risposto.",
};

export const texts = { ...first, compare };
