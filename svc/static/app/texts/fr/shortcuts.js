// French texts of the keyboard shortcuts, each with its keys.

export const shortcutTexts = [
  ["Nouveau chat", "N", "Ctrl+Maj+O"],
  ["Rechercher dans les conversations", "/", "Ctrl+K"],
  ["Choisir un modèle", "M"],
  ["Aller à la zone de message", "Maj+Échap"],
  ["Envoyer le message", "Entrée"],
  ["Nouvelle ligne", "Maj+Entrée"],
  ["Insérer un prompt enregistré", "/"],
  ["Arrêter la génération", "Échap"],
  ["Copier la dernière réponse", "Ctrl+Maj+C"],
  ["Modifier le dernier message", "↑"],
  ["Afficher les raccourcis", "?"],
];
