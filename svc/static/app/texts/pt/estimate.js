// Portuguese texts of estimated costs.
import { number } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  estimate: {
    cost: (usual, most) => `Custo estimado: cerca de ${usual}, no máximo ${most}`,
    explained: (limit) =>
      "Sua mensagem, as mensagens anteriores e uma resposta de tamanho comum. No máximo: uma " +
      `resposta de ${number(limit)} tokens.`,
    noFunds: (amount) => `Seu saldo de ${amount} é insuficiente para esta mensagem.`,
    tooLong: (limit) =>
      `Isso é mais do que o modelo consegue ler: cerca de ${number(limit)} tokens. Reduza o ` +
      "texto ou escolha outro modelo.",
  },
};
