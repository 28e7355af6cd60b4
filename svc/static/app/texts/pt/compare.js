// Portuguese texts for several models that answer the same question.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

const compare = {
  /** The title of the choice: for the next question, or for one that has an answer. */
  next: "Comparar modelos",
  again: "Responder com outros modelos",
  hint: (most) =>
    `Escolha até ${count(most, "modelo", "modelos")}. Eles respondem um após o outro, e a ` +
    "conversa continua com a resposta que você escolher.",
  hintNext: "O custo estimado de todos aparece na caixa de mensagem antes do envio.",
  search: "Buscar modelos",
  none: "Nenhum modelo encontrado.",
  choose: "Escolha um modelo primeiro.",
  use: (n) => (n > 1 ? `Comparar ${n} modelos` : "Usar este modelo"),
  ask: (n) => (n > 1 ? `Perguntar a ${n} modelos` : "Gerar novamente"),
  title: "Comparar respostas",
  later: "Responde depois dos anteriores",
  writing: "Gerando a resposta",
  take: "Usar esta resposta",
  kept: "As outras respostas são mantidas como versões.",
  failed: "Este modelo não respondeu.",
};

export const texts = { ...first, compare };
