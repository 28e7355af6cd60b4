// French texts of previews.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  preview: {
    title: "Aperçu",
    frame: "Contenu de l’aperçu",
    kinds: { html: "HTML", svg: "SVG", mermaid: "Mermaid" },
    save: "Enregistrer comme artefact",
    saved: (name) => `« ${name} » a été enregistré comme artefact`,
    show: "Afficher",
    fullScreen: "Plein écran",
    note: "Le contenu n’a accès ni au réseau ni à votre compte.",
    failed: "Le diagramme comporte une erreur :",
    left: "Le contenu a tenté de charger une autre page. L’aperçu a été fermé.",
    notLoaded: "L’aperçu n’a pas pu être chargé.",
  },
};
