// English texts of estimated costs.
import { number } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  estimate: {
    cost: (usual, most) => `Estimated cost: about ${usual}, at most ${most}`,
    explained: (limit) =>
      "Your message, the earlier messages and an answer of the usual length. " +
      `At most: an answer of ${number(limit)} tokens.`,
    noFunds: (amount) => `Your balance of ${amount} is too low for this message.`,
    tooLong: (limit) => `Your message is longer than the model can read: about ${number(limit)} tokens.`,
  },
};
