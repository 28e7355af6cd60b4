// French texts of views that are loaded when first shown.
import { count, number } from "../locale.js";

export const importTexts = {
  intro:
    "Importez des chats de ChatGPT, Claude, Open WebUI, LibreChat ou d’une exportation de ce " +
    "service. Choisissez le fichier ZIP ou JSON de l’exportation, de 200 Mo au maximum.",
  action: "Choisir un fichier",
  sending: (size) => `Envoi, ${size} jusqu’à présent…`,
  reading: (n) => `Importation, ${count(n, "conversation", "conversations")} jusqu’à présent…`,
  done: (source) => `L’importation depuis ${source} est terminée.`,
  sources: {
    chatgpt: "ChatGPT",
    claude: "Claude",
    open_webui: "Open WebUI",
    librechat: "LibreChat",
    svc: "ce service",
  },
  counts: ({ imported, skipped, failed }) =>
    `${count(imported, "conversation importée", "conversations importées")}, ${skipped} ` +
    `ignorées, ${failed} en échec.`,
  details: "Afficher chaque conversation",
  statuses: { imported: "Importée", skipped: "Ignorée", failed: "Échec" },
  more: (n) => `Et ${number(n)} de plus.`,
  undo: "Annuler l’importation",
  undoTitle: "Annuler cette importation ?",
  undoText:
    "Tout ce qui a été importé sera supprimé, y compris ce que vous avez écrit depuis dans " +
    "ces conversations. Vous pourrez importer le fichier à nouveau.",
  undone: "L’importation a été annulée.",
};

export const memoryTexts = {
  intro: "Les chats peuvent se souvenir de ces messages. Un message oublié reste dans sa conversation.",
  search: "Voir ce dont les chats se souviennent pour une question",
  find: "Rechercher",
  forgotten: "Afficher les messages oubliés",
  none: "Aucun souvenir.",
  noneForgotten: "Aucun message n’est oublié.",
  forget: "Oublier",
  remember: "Mémoriser à nouveau",
  done: "Les chats ne se souviennent plus de ce message.",
  roles: { user: "Vous", assistant: "Assistant", system: "Système" },
};

export const temporaryTexts = {
  hint: "Rien n’est enregistré ni mémorisé. Ce chat disparaît si vous rechargez la page.",
  files: "Un chat éphémère n’accepte que des fichiers texte, car il n’enregistre rien.",
};

export const projectsTexts = {
  intro:
    "Un projet regroupe des conversations, des exécutions et des artefacts, et ajoute ses " +
    "instructions à chaque chat et à chaque exécution d’agent.",
  none: "Aucun projet pour le moment",
  noneText:
    "Un projet regroupe des conversations, des exécutions et des artefacts, avec des instructions communes.",
  create: "Nouveau projet",
  createAction: "Créer le projet",
  name: "Nom",
  instructions: "Instructions",
  instructionsHint: "Ajoutées à chaque conversation et à chaque exécution d’agent de ce projet.",
  noInstructions: "Aucune instruction",
  cap: "Nombre maximal d’étapes d’une exécution d’agent",
  capHint: "Les exécutions de ce projet ne peuvent pas utiliser plus d’étapes.",
  noCap: "Sans limite",
  back: "Tous les projets",
  newChat: "Nouveau chat",
  newRun: "Nouvelle exécution",
  files: {
    title: "Fichiers",
    none: "Aucun fichier pour le moment",
    noneText:
      "Déposez des documents ici. Les chats et les exécutions de ce projet peuvent y faire " +
      "des recherches, les lire et les citer.",
    dropHere: "Déposez des fichiers pour les ajouter à ce projet",
    add: "Ajouter des fichiers",
    choose: "Ajouter un artefact",
    addAction: "Ajouter",
    addNamed: (name) => `Ajouter ${name}`,
    added: "Ajouté",
    remove: (name) => `Retirer ${name}`,
    removed: (name) => `« ${name} » a été retiré. L’artefact est conservé.`,
    progress: (read, all) => `Lecture : ${read} sur ${count(all, "fichier", "fichiers")}`,
    sum: (n, size) => `${count(n, "fichier", "fichiers")}, ${size} de texte`,
    states: { reading: "Lecture…", ready: "Prêt" },
    failed: (reason) => `Inutilisable. ${reason}`,
    inChat: (n) => `${count(n, "fichier", "fichiers")} du projet`,
    notReady: { reading: "en cours de lecture", failed: "inutilisable" },
    manage: "Fichiers du projet",
  },
  conversations: "Conversations",
  runs: "Exécutions d’agents",
  nothingFiled: "Rien ici pour le moment.",
  deleteTitle: "Supprimer ce projet ?",
  deleteText: (name) =>
    `« ${name} » et ses instructions seront supprimés. Ses conversations, exécutions et ` +
    "artefacts sont conservés.",
  deleted: (name) => `« ${name} » a été supprimé`,
};

export const mediaTexts = {
  intro: "Créez des images et de la voix. Elles sont enregistrées comme artefacts.",
  kinds: { picture: "Image", sound: "Voix" },
  prompt: "Décrivez l’image",
  size: "Taille",
  number: "Nombre d’images",
  draw: "Générer",
  drawing: "Génération…",
  again: (prompt) => `Réutiliser : ${prompt}`,
  gallery: "Galerie",
  sounds: "Audio",
  noPictures: "Aucune image pour le moment",
  noSounds: "Aucun audio pour le moment",
  text: "Texte à lire",
  voice: "Voix",
  speed: "Vitesse",
  cap: "Durée maximale",
  capChoice: (minutes, words) => `${minutes} min, environ ${words} mots`,
  speak: "Générer la voix",
  speaking: "Génération de la voix…",
  truncated: (minutes) =>
    `L’audio a été coupé après ${minutes}. Choisissez une durée maximale plus longue pour tout entendre.`,
  spoken: (length) => `${length} de voix`,
  keep: "Enregistrer comme artefact",
  kept: "Enregistré",
  view: (name) => `Voir ${name}`,
  previous: "Image précédente",
  next: "Image suivante",
};
