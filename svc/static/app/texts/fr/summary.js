// French texts of the line where the view of the model begins.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  viewLine: {
    label: "Début de ce que lit le modèle",
    begins: "Le modèle lit ce chat à partir d’ici. Les messages précédents dépassent son contexte.",
    summarized: "Le modèle lit ce chat à partir d’ici, ainsi qu’un résumé des messages précédents.",
    summarize: "Résumer les messages précédents",
    again: "Résumer à nouveau",
    cost: (amount) => `Coûte environ ${amount}`,
    summary: "Résumé",
    edit: "Modifier le résumé",
    remove: "Supprimer le résumé",
    save: "Enregistrer",
    cancel: "Annuler",
  },
};
