// English texts for several models that answer the same question.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

const compare = {
  /** The title of the choice: for the next question, or for one that has an answer. */
  next: "Compare models",
  again: "Answer with other models",
  hint: (most) =>
    `Choose up to ${count(most, "model", "models")}. They answer one after the other, and the conversation ` +
    "continues with the answer that you take.",
  hintNext: "You see the estimated cost of all in the message box before you send.",
  search: "Search models",
  none: "No matching models.",
  choose: "Choose a model first.",
  use: (n) => (n > 1 ? `Compare ${n} models` : "Use this model"),
  ask: (n) => (n > 1 ? `Ask ${n} models` : "Regenerate"),
  title: "Compare answers",
  later: "Answers after the ones before",
  writing: "Generating the answer",
  take: "Use this answer",
  kept: "The other answers are kept as versions.",
  failed: "This model did not answer.",
};

export const texts = { ...first, compare };
