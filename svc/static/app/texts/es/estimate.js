// Spanish texts of estimated costs.
import { number } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  estimate: {
    cost: (usual, most) => `Coste estimado: unos ${usual}, como máximo ${most}`,
    explained: (limit) =>
      "Tu mensaje, los mensajes anteriores y una respuesta de longitud habitual. " +
      `Como máximo: una respuesta de ${number(limit)} tokens.`,
    noFunds: (amount) => `Tu saldo de ${amount} no es suficiente para este mensaje.`,
    tooLong: (limit) =>
      `Es más de lo que el modelo puede leer: unos ${number(limit)} tokens. ` +
      "Acórtalo o elige otro modelo.",
  },
};
