import { texts as first } from "./first.js";

export const texts = {
  ...first,
  keys: {
    intro:
      "Pour Codex, Claude Code, des scripts et tout outil compatible avec OpenAI ou " +
      "Anthropic. Une clé donne le même accès que vous et reste valable jusqu’à sa " +
      "suppression.",
    none: "Aucune clé pour le moment",
    noneText: "Créez une clé pour chaque programme, afin de pouvoir les supprimer séparément.",
    create: "Nouvelle clé",
    createAction: "Créer la clé",
    name: "Nom",
    nameHint: "Par exemple « mon ordinateur » ou « rapport de nuit ».",
    made: "créée",
    used: "dernière utilisation",
    neverUsed: "jamais utilisée",
    spent: "dépensé",
    edit: "Modifier la clé",
    editNamed: (name) => `Modifier la clé ${name}`,
    deleteNamed: (name) => `Supprimer la clé ${name}`,
    deleteTitle: "Supprimer cette clé ?",
    deleteText: (name) =>
      `Les programmes qui utilisent « ${name} » cesseront aussitôt de fonctionner. Cette ` +
      "action est irréversible.",
    deleted: (name) => `Clé « ${name} » supprimée`,
    madeTitle: "Votre nouvelle clé",
    once: "Copiez-la maintenant. Vous ne pourrez plus l’afficher.",
    copyKey: "Copier la clé",
    kept: "Terminé",
    use: "Utiliser une clé",
    useHint: "Remplacez YOUR_KEY par l’une de vos clés.",
    examples: "Configuration des programmes",
    terminal: "Terminal",
    programs: {
      codex: "Codex",
      claude: "Claude Code",
      openaiPython: "OpenAI Python",
      openaiJavaScript: "OpenAI JS",
      anthropicPython: "Anthropic Python",
      anthropicJavaScript: "Anthropic JS",
      curl: "curl",
    },
    certificate:
      "Ce service utilise son propre certificat. Sur un autre ordinateur, copiez-y d’abord " +
      "le fichier du certificat et modifiez son chemin dans l’exemple.",
  },
};
