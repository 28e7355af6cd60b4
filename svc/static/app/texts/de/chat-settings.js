// German texts of the settings of a chat.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  conversations: {
    ...first.conversations,
    temperature: "Temperatur",
    temperatureHint: "Von 0 (präzise) bis 2 (vielfältig). Leer lassen für den Standardwert des Modells.",
    maxOutput: "Maximale Ausgabe-Token",
    maxOutputHint: "Gilt für jede Antwort. Leer lassen für den Standardwert des Modells.",
  },
};
