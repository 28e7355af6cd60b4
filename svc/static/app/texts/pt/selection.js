// Portuguese texts of the selection of conversations.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  selection: {
    label: "Selecionar conversas",
    all: "Selecionar tudo",
    selected: (n) => count(n, { one: "# conversa selecionada", other: "# conversas selecionadas" }),
    most: (n) => `Você pode selecionar ${n} por vez.`,
    done: "Concluído",
  },
};
