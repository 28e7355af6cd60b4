// German texts of estimated costs.
import { number } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  estimate: {
    cost: (usual, most) => `Geschätzte Kosten: etwa ${usual}, höchstens ${most}`,
    explained: (limit) =>
      "Deine Nachricht, die früheren Nachrichten und eine Antwort von üblicher Länge. " +
      `Höchstens: eine Antwort mit ${number(limit)} Token.`,
    noFunds: (amount) => `Dein Guthaben von ${amount} reicht für diese Nachricht nicht aus.`,
    tooLong: (limit) => `Deine Nachricht ist länger, als das Modell lesen kann: etwa ${number(limit)} Token.`,
  },
};
