// Spanish texts for several models that answer the same question.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

const compare = {
  /** The title of the choice: for the next question, or for one that has an answer. */
  next: "Comparar modelos",
  again: "Responder con otros modelos",
  hint: (most) =>
    `Elige hasta ${count(most, "modelo", "modelos")}. Responden uno tras otro, y la ` +
    "conversación continúa con la respuesta que elijas.",
  hintNext: "El coste estimado de todos aparece en el cuadro de mensaje antes de enviar.",
  search: "Buscar modelos",
  none: "Ningún modelo coincide.",
  choose: "Elige primero un modelo.",
  use: (n) => (n > 1 ? `Comparar ${n} modelos` : "Usar este modelo"),
  ask: (n) => (n > 1 ? `Preguntar a ${n} modelos` : "Regenerar"),
  title: "Comparar respuestas",
  later: "Responde después de los anteriores",
  writing: "Generando la respuesta",
  take: "Usar esta respuesta",
  kept: "Las demás respuestas se conservan como versiones.",
  failed: "Este modelo no respondió.",
};

export const texts = { ...first, compare };
