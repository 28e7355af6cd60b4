// French texts of the settings of a chat.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  conversations: {
    ...first.conversations,
    temperature: "Température",
    temperatureHint: "De 0 (précis) à 2 (varié). Laissez vide pour la valeur du modèle.",
    maxOutput: "Nombre maximal de tokens en sortie",
    maxOutputHint: "La limite de chaque réponse. Laissez vide pour la valeur du modèle.",
  },
};
