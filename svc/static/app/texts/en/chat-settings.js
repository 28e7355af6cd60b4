// English texts of the settings of a chat.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  conversations: {
    ...first.conversations,
    temperature: "Temperature",
    temperatureHint: "From 0 (focused) to 2 (varied). Leave empty for the model’s own.",
    maxOutput: "Maximum output tokens",
    maxOutputHint: "The limit of each answer. Leave empty for the model’s own.",
  },
};
