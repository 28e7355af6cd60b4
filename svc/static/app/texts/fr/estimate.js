// French texts of estimated costs.
import { number } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  estimate: {
    cost: (usual, most) => `Coût estimé : environ ${usual}, au maximum ${most}`,
    explained: (limit) =>
      "Votre message, les messages précédents et une réponse de longueur habituelle. Au " +
      `maximum : une réponse de ${number(limit)} tokens.`,
    noFunds: (amount) => `Votre solde de ${amount} est insuffisant pour ce message.`,
    tooLong: (limit) =>
      `C’est plus long que ce que le modèle peut lire : environ ${number(limit)} tokens. ` +
      "Raccourcissez le texte ou choisissez un autre modèle.",
  },
};
