// French texts of shared conversations.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

const share = {
  dialog: "Partager la conversation",
  about:
    "Toute personne disposant du lien peut lire une copie de la conversation dans son état " +
    "actuel. Les messages suivants n’y sont pas ajoutés.",
  has:
    "La copie contient le titre, les questions avec le texte des fichiers joints, et les " +
    "réponses avec leurs images.",
  hasNot:
    "Elle ne contient ni votre nom, ni vos instructions, ni les passages rappelés, ni le " +
    "raisonnement, ni les actions des outils, ni les images que vous avez jointes.",
  ends: "Le lien fonctionne pendant",
  days: (n) => (n ? count(n, "jour", "jours") : "Sans limite de durée"),
  create: "Créer le lien",
  link: "Lien",
  copy: "Copier le lien",
  once: "Copiez le lien maintenant. Il ne sera plus affiché.",
  list: "Gérer les liens partagés",
  intro:
    "Chaque lien montre une copie d’une conversation à toute personne qui le possède. Les " +
    "liens eux-mêmes ne sont pas enregistrés et ne peuvent donc plus être affichés.",
  none: "Vous n’avez partagé aucune conversation.",
  sharedOn: (day) => `Partagée le ${day}`,
  endsOn: (day) => `expire le ${day}`,
  endless: "sans limite de durée",
  end: "Désactiver le lien",
  endTitle: "Désactiver ce lien ?",
  endText: "Il ne s’ouvrira plus pour personne, et la copie sera supprimée. Votre conversation reste.",
  ended: "Le lien ne fonctionne plus.",
  untitled: "Sans titre",
  readOnly: (day) => `Une copie du ${day}. Elle ne peut pas être modifiée.`,
  gone: "Cette conversation n’est pas partagée. Le lien a peut-être expiré, ou il a été désactivé.",
  goOn: "Continuer dans mon compte",
  signIn: "Se connecter pour continuer",
  you: "Question",
  assistant: "Réponse",
  picture: "Image de la réponse",
  cut: "Cette réponse n’est pas complète.",
};

export const texts = { ...first, share };
