// French texts for several models that answer the same question.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

const compare = {
  /** The title of the choice: for the next question, or for one that has an answer. */
  next: "Comparer des modèles",
  again: "Répondre avec d’autres modèles",
  hint: (most) =>
    `Choisissez jusqu’à ${count(most, "modèle", "modèles")}. Ils répondent l’un après ` +
    "l’autre, et la conversation continue avec la réponse que vous gardez.",
  hintNext: "Le coût estimé de l’ensemble s’affiche dans la zone de message avant l’envoi.",
  search: "Rechercher des modèles",
  none: "Aucun modèle correspondant.",
  choose: "Choisissez d’abord un modèle.",
  use: (n) => (n > 1 ? `Comparer ${n} modèles` : "Utiliser ce modèle"),
  ask: (n) => (n > 1 ? `Interroger ${n} modèles` : "Régénérer"),
  title: "Comparer les réponses",
  later: "Répond après les précédentes",
  writing: "Génération de la réponse",
  take: "Garder cette réponse",
  kept: "Les autres réponses restent disponibles comme versions.",
  failed: "Ce modèle n’a pas répondu.",
};

export const texts = { ...first, compare };
