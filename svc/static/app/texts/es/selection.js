// Spanish texts of the selection of conversations.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  selection: {
    label: "Seleccionar conversaciones",
    all: "Seleccionar todo",
    selected: (n) =>
      count(n, { one: "# conversación seleccionada", other: "# conversaciones seleccionadas" }),
    most: (n) => `Puedes seleccionar ${n} a la vez.`,
    done: "Listo",
  },
};
