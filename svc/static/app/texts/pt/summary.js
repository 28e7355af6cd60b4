// Portuguese texts of the line where the view of the model begins.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  viewLine: {
    label: "Início do que o modelo lê",
    begins: "O modelo lê este chat a partir daqui. As mensagens anteriores não cabem no contexto dele.",
    summarized: "O modelo lê este chat a partir daqui, além de um resumo das mensagens anteriores.",
    summarize: "Resumir mensagens anteriores",
    again: "Resumir novamente",
    cost: (amount) => `Custa cerca de ${amount}`,
    summary: "Resumo",
    edit: "Editar resumo",
    remove: "Remover resumo",
    save: "Salvar",
    cancel: "Cancelar",
  },
};
