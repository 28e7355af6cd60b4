// Portuguese texts of the settings of a chat.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  conversations: {
    ...first.conversations,
    temperature: "Temperatura",
    temperatureHint: "De 0 (preciso) a 2 (variado). Deixe em branco para usar o valor do modelo.",
    maxOutput: "Máximo de tokens de saída",
    maxOutputHint: "O limite de cada resposta. Deixe em branco para usar o valor do modelo.",
  },
};
