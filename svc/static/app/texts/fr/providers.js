import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  providers: {
    ...first.providers,
    intro:
      "Connectez vos propres serveurs de modèles avec vos propres clés API. Leur utilisation " +
      "est gratuite ici.",
    none: "Aucun fournisseur pour le moment",
    noneText:
      "Connectez n’importe quel serveur compatible avec OpenAI : celui d’un fournisseur, ou le vôtre.",
    notAllowed: "L’opérateur de ce service n’autorise pas les serveurs de modèles et d’outils personnels.",
    add: "Ajouter un fournisseur",
    addAction: "Ajouter",
    connectTitle: (program) => `Connecter ${program}`,
    connectSteps: {
      ollama: [
        "Installez Ollama (ollama.com) sur l’ordinateur qui exécute ce service.",
        "Téléchargez un modèle. Dans un terminal, exécutez :",
        "Ses modèles apparaissent dans le sélecteur de modèles. Cela peut prendre une minute.",
      ],
      lmstudio: [
        "Installez LM Studio (lmstudio.ai) sur l’ordinateur qui exécute ce service, et " +
          "téléchargez un modèle.",
        "Démarrez son serveur. Dans un terminal, exécutez :",
        "Ses modèles apparaissent dans le sélecteur de modèles. Cela peut prendre une minute.",
      ],
    },
    elsewhere: "Il s’exécute sur un autre ordinateur",
    checkAgain: "Vérifier à nouveau",
    notFound: (program) => `Aucun modèle de ${program} trouvé.`,
    found: (program, n) => `Connecté à ${program} : ${count(n, "modèle trouvé", "modèles trouvés")}.`,
    added: (name) => `${name} a été ajouté`,
    name: "Nom",
    nameHint: "Minuscules, chiffres, - et _. Les modèles s’appellent nom/modèle.",
    baseUrl: "URL de base",
    baseUrlHint: "L’adresse de l’API, qui se termine en général par /v1.",
    format: "Format",
    formatHint: "Le test d’un fournisseur indique les formats auxquels il répond.",
    formats: { chat: "Chat completions", responses: "Responses", messages: "Messages" },
    answers: (formats) => `Répond à ${formats.join(", ")}.`,
    apiKey: "Clé API",
    apiKeyHint:
      "Laissez vide si le serveur n’en demande pas. La clé est chiffrée et n’est plus jamais affichée.",
    keyStays: (hint) => `Laissez vide pour garder la clé enregistrée (${hint}).`,
    keyDropped: "L’URL a changé. Sans nouvelle clé, la clé enregistrée sera supprimée.",
    keyEnding: (hint) => `clé ${hint}`,
    withKey: "avec une clé",
    noKey: "sans clé",
    withoutKey: "Retirer la clé enregistrée",
    models: "Modèles",
    modelsHint:
      "Un modèle par ligne. Laissez vide pour tous les modèles. Ajoutez « image », " +
      "« speech » ou « transcription » après un modèle de ce type.",
    allModels: "tous les modèles",
    narrowed: (n) => count(n, "modèle", "modèles"),
    test: "Tester",
    works: (n) => `Connecté : ${count(n, "modèle trouvé", "modèles trouvés")}.`,
    worksEmpty: "Connecté, mais le serveur ne propose aucun modèle.",
    andMore: (n) => ` et ${n} autres`,
    actions: (name) => `Actions pour ${name}`,
    edit: "Modifier",
    editTitle: (name) => `Modifier ${name}`,
    deleteTitle: "Supprimer ce fournisseur ?",
    deleteText: (name) =>
      `Les modèles de « ${name} » et sa clé enregistrée seront supprimés. Cette action est irréversible.`,
    deleted: (name) => `${name} a été supprimé`,
  },
};
