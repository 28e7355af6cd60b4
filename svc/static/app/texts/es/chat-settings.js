// Spanish texts of the settings of a chat.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  conversations: {
    ...first.conversations,
    temperature: "Temperatura",
    temperatureHint: "De 0 (preciso) a 2 (variado). Déjalo vacío para usar el valor del modelo.",
    maxOutput: "Máximo de tokens de salida",
    maxOutputHint: "El límite de cada respuesta. Déjalo vacío para usar el valor del modelo.",
  },
};
