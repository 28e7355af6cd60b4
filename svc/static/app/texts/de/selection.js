// German texts of the selection of conversations.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  selection: {
    label: "Unterhaltungen auswählen",
    all: "Alle auswählen",
    selected: (n) => count(n, { one: "# Unterhaltung ausgewählt", other: "# Unterhaltungen ausgewählt" }),
    most: (n) => `Du kannst ${n} auf einmal auswählen.`,
    done: "Fertig",
  },
};
