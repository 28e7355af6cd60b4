// French texts of the selection of conversations.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  selection: {
    label: "Sélectionner des conversations",
    all: "Tout sélectionner",
    selected: (n) => count(n, { one: "# conversation sélectionnée", other: "# conversations sélectionnées" }),
    most: (n) => `Vous pouvez en sélectionner ${n} à la fois.`,
    done: "Terminé",
  },
};
