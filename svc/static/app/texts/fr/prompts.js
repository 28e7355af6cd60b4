// French texts of saved prompts.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  prompts: {
    intro: "Saisissez / au début d’un message pour en utiliser un.",
    none: "Aucun prompt pour le moment",
    noneText:
      "Enregistrez les textes que vous envoyez souvent. Écrivez {{nom}} pour une valeur " +
      "demandée à chaque fois.",
    create: "Nouveau prompt",
    edit: "Modifier",
    editTitle: (name) => `Modifier « ${name} »`,
    actions: (name) => `Actions pour ${name}`,
    name: "Nom",
    text: "Texte",
    textHint: "Écrivez {{nom}} pour une valeur demandée à chaque fois.",
    asksFor: (names) => `Demande : ${names.join(", ")}`,
    group: "Groupe",
    everyone: "Tout le monde",
    deleteTitle: "Supprimer ce prompt ?",
    deleteText: (name) => `« ${name} » sera supprimé.`,
    deleted: (name) => `« ${name} » a été supprimé`,
    shared: "Partagés avec vous",
    sharedText: "Seuls les administrateurs peuvent modifier ces prompts.",
    more: "Importer et exporter",
    importAction: "Importer depuis un fichier",
    exportAction: "Exporter vers un fichier",
    imported: (n) => count(n, { one: "# prompt importé.", other: "# prompts importés." }),
    skipped: (n) =>
      count(n, {
        one: "# prompt ignoré, car vous en avez déjà un de ce nom.",
        other: "# prompts ignorés, car vous en avez déjà de ces noms.",
      }),
    tooLarge: "Le fichier dépasse 10 Mo. Choisissez-en un plus petit.",
    notJson: "Le fichier n’est pas au format JSON. Choisissez un fichier de prompts exporté.",
    noPrompts: "Le fichier ne contient aucun prompt. Choisissez un fichier de prompts exporté.",
    wrong: (n, field, most) => `Prompt ${n} : « ${field} » doit être un texte de 1 à ${most} caractères.`,
    search: "Rechercher des prompts",
    choose: "Choisir un prompt",
    ofGroup: (name) => `Partagé avec ${name}`,
    ofEveryone: "Partagé avec tout le monde",
    manage: "Gérer les prompts",
    noMatch: "Aucun prompt ne porte ce nom.",
    insert: "Insérer",
    adminIntro: "Les membres d’un groupe voient ses prompts lorsqu’ils saisissent / dans un chat.",
    adminNone: "Aucun prompt partagé pour le moment",
  },
};
