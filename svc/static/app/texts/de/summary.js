// German texts of the line where the view of the model begins.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  viewLine: {
    label: "Anfang dessen, was das Modell liest",
    begins: "Das Modell liest diesen Chat erst ab hier. Frühere Nachrichten passen nicht in seinen Kontext.",
    summarized: "Das Modell liest diesen Chat ab hier und eine Zusammenfassung der früheren Nachrichten.",
    summarize: "Frühere Nachrichten zusammenfassen",
    again: "Neu zusammenfassen",
    cost: (amount) => `Kostet etwa ${amount}`,
    summary: "Zusammenfassung",
    edit: "Zusammenfassung bearbeiten",
    remove: "Zusammenfassung entfernen",
    save: "Speichern",
    cancel: "Abbrechen",
  },
};
