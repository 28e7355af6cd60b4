import { limits } from "../../limits.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  support: {
    intro: "Écrivez à l’opérateur de ce service. Vous pouvez avoir une conversation ouverte.",
    pro: "L’assistance fait partie de Pro",
    proText: `Ajoutez au moins ${limits.least_dollars} $US à votre solde pour obtenir Pro.`,
    oneActive: "Vous avez une conversation ouverte.",
    open: "L’ouvrir",
    earlier: "Conversations",
    none: "Aucune conversation pour le moment.",
    untitled: "Sans objet",
    statuses: { active: "Ouverte", closed: "Fermée" },
    subject: "Objet (facultatif)",
    message: "Message",
    messages: "Messages",
    send: "Envoyer",
    back: "Toutes les conversations",
    roles: { user: "Vous", operator: "Opérateur" },
    close: "Fermer la conversation",
    closeTitle: "Fermer cette conversation ?",
    closeText: "Vous pourrez toujours la lire et en commencer une nouvelle.",
    closed: "Cette conversation est fermée.",
  },
};
