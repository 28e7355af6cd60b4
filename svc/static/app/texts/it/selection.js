// Italian texts of the selection of conversations.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  selection: {
    label: "Seleziona conversazioni",
    all: "Seleziona tutto",
    selected: (n) => count(n, { one: "# conversazione selezionata", other: "# conversazioni selezionate" }),
    most: (n) => `Puoi selezionarne ${n} alla volta.`,
    done: "Fatto",
  },
};
