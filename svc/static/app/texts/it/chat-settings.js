// Italian texts of the settings of a chat.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  conversations: {
    ...first.conversations,
    temperature: "Temperatura",
    temperatureHint: "Da 0 (preciso) a 2 (vario). Lascia vuoto per usare il valore del modello.",
    maxOutput: "Numero massimo di token di output",
    maxOutputHint: "Il limite di ogni risposta. Lascia vuoto per usare il valore del modello.",
  },
};
