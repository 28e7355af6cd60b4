import { texts as first } from "./first.js";

export const texts = {
  ...first,
  keys: {
    intro:
      "Für Codex, Claude Code, Skripte und jedes Programm, das mit OpenAI oder Anthropic " +
      "kompatibel ist. Ein Schlüssel " +
      "hat denselben Zugriff wie du und gilt, bis du ihn löschst.",
    none: "Noch keine Schlüssel",
    noneText: "Erstelle für jedes Programm einen eigenen Schlüssel, damit du ihn einzeln löschen kannst.",
    create: "Neuer Schlüssel",
    createAction: "Schlüssel erstellen",
    name: "Name",
    nameHint: "Zum Beispiel „Mein Laptop“ oder „Nächtlicher Bericht“.",
    made: "erstellt",
    used: "zuletzt verwendet",
    neverUsed: "nie verwendet",
    spent: "ausgegeben",
    edit: "Schlüssel bearbeiten",
    editNamed: (name) => `Schlüssel ${name} bearbeiten`,
    deleteNamed: (name) => `Schlüssel ${name} löschen`,
    deleteTitle: "Diesen Schlüssel löschen?",
    deleteText: (name) =>
      `Programme, die „${name}“ verwenden, funktionieren sofort nicht mehr. Das kann nicht ` +
      "rückgängig gemacht werden.",
    deleted: (name) => `Schlüssel „${name}“ wurde gelöscht`,
    madeTitle: "Dein neuer Schlüssel",
    once: "Kopiere ihn jetzt. Du kannst ihn später nicht mehr ansehen.",
    copyKey: "Schlüssel kopieren",
    kept: "Fertig",
    use: "Schlüssel verwenden",
    useHint: "Ersetze YOUR_KEY durch einen deiner Schlüssel.",
    examples: "Einstellungen für Programme",
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
      "Dieser Dienst verwendet sein eigenes Zertifikat. Kopiere auf einem anderen Computer " +
      "zuerst die Zertifikatsdatei " +
      "dorthin und passe ihren Pfad im Beispiel an.",
  },
};
