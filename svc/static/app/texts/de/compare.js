// German texts for several models that answer the same question.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

const compare = {
  /** The title of the choice: for the next question, or for one that has an answer. */
  next: "Modelle vergleichen",
  again: "Mit anderen Modellen antworten",
  hint: (most) =>
    `Wähle bis zu ${count(most, "Modell", "Modelle")}. Sie antworten nacheinander, und die ` +
    "Unterhaltung geht mit der Antwort weiter, die du nimmst.",
  hintNext: "Vor dem Senden siehst du im Nachrichtenfeld die geschätzten Kosten für alle.",
  search: "Modelle suchen",
  none: "Keine passenden Modelle.",
  choose: "Wähle zuerst ein Modell.",
  use: (n) => (n > 1 ? `${n} Modelle vergleichen` : "Dieses Modell verwenden"),
  ask: (n) => (n > 1 ? `${n} Modelle fragen` : "Neu generieren"),
  title: "Antworten vergleichen",
  later: "Antwortet nach den anderen",
  writing: "Antwort wird generiert",
  take: "Diese Antwort verwenden",
  kept: "Die anderen Antworten bleiben als Versionen erhalten.",
  failed: "Dieses Modell hat nicht geantwortet.",
};

export const texts = { ...first, compare };
