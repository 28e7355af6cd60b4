// German texts of views that are loaded when first shown.
import { count, number } from "../locale.js";

export const importTexts = {
  intro:
    "Importiere Chats aus ChatGPT, Claude, Open WebUI, LibreChat oder einem Export dieses Dienstes. " +
    "Wähle die ZIP- oder JSON-Datei des Exports aus, höchstens 200 MB.",
  action: "Datei auswählen",
  sending: (size) => `Wird hochgeladen, bisher ${size} …`,
  reading: (n) => `Wird importiert, bisher ${count(n, "Unterhaltung", "Unterhaltungen")} …`,
  done: (source) => `Der Import aus ${source} ist abgeschlossen.`,
  sources: {
    chatgpt: "ChatGPT",
    claude: "Claude",
    open_webui: "Open WebUI",
    librechat: "LibreChat",
    svc: "diesem Dienst",
  },
  counts: ({ imported, skipped, failed }) =>
    `${count(imported, "Unterhaltung", "Unterhaltungen")} importiert, ${skipped} ` +
    `übersprungen, ${failed} fehlgeschlagen.`,
  details: "Jede Unterhaltung anzeigen",
  statuses: { imported: "Importiert", skipped: "Übersprungen", failed: "Fehlgeschlagen" },
  more: (n) => `Und ${number(n)} weitere.`,
  undo: "Import rückgängig machen",
  undoTitle: "Diesen Import rückgängig machen?",
  undoText:
    "Alles Importierte wird gelöscht, auch was du seitdem in diesen Unterhaltungen geschrieben hast. " +
    "Du kannst die Datei noch einmal importieren.",
  undone: "Der Import wurde rückgängig gemacht.",
};

export const memoryTexts = {
  intro:
    "Chats können sich an diese Nachrichten erinnern. Eine vergessene Nachricht bleibt in " +
    "ihrer Unterhaltung.",
  search: "Anzeigen, woran sich Chats bei einer Frage erinnern",
  find: "Suchen",
  forgotten: "Vergessene Nachrichten anzeigen",
  none: "Es gibt keine Erinnerungen.",
  noneForgotten: "Keine Nachricht ist vergessen.",
  forget: "Vergessen",
  remember: "Wieder merken",
  done: "Chats erinnern sich nicht mehr an diese Nachricht.",
  roles: { user: "Du", assistant: "Assistent", system: "System" },
};

export const temporaryTexts = {
  hint:
    "Nichts wird gespeichert, und Erinnerungen werden nicht verwendet. Beim Neuladen geht dieser Chat " +
    "verloren.",
  files: "Ein temporärer Chat nimmt nur Textdateien an, weil er nichts speichert.",
};

export const projectsTexts = {
  intro:
    "Ein Projekt fasst Unterhaltungen, Läufe und Artefakte zusammen. Seine Anweisungen " +
    "gelten für jeden Chat " +
    "und jeden Agentenlauf darin.",
  none: "Noch keine Projekte",
  noneText: "Ein Projekt fasst Unterhaltungen, Läufe und Artefakte mit gemeinsamen Anweisungen zusammen.",
  create: "Neues Projekt",
  createAction: "Projekt erstellen",
  name: "Name",
  instructions: "Anweisungen",
  instructionsHint: "Gelten für jede Unterhaltung und jeden Agentenlauf in diesem Projekt.",
  noInstructions: "Keine Anweisungen",
  cap: "Maximale Schritte eines Agentenlaufs",
  capHint: "Läufe in diesem Projekt können nicht mehr Schritte verwenden.",
  noCap: "Kein Limit",
  back: "Alle Projekte",
  newChat: "Neuer Chat",
  newRun: "Neuer Lauf",
  files: {
    title: "Dateien",
    none: "Noch keine Dateien",
    noneText:
      "Lege Dokumente hier ab. Chats und Läufe dieses Projekts können sie durchsuchen, lesen und zitieren.",
    dropHere: "Dateien hier ablegen, um sie diesem Projekt hinzuzufügen",
    add: "Dateien hinzufügen",
    choose: "Artefakt hinzufügen",
    addAction: "Hinzufügen",
    addNamed: (name) => `${name} hinzufügen`,
    added: "Hinzugefügt",
    remove: (name) => `${name} entfernen`,
    removed: (name) => `„${name}“ wurde entfernt. Das Artefakt bleibt erhalten.`,
    progress: (read, all) => `Wird gelesen: ${read} von ${count(all, "Datei", "Dateien")} fertig`,
    sum: (n, size) => `${count(n, "Datei", "Dateien")}, ${size} Text`,
    states: { reading: "Wird gelesen …", ready: "Bereit" },
    failed: (reason) => `Nicht nutzbar. ${reason}`,
    inChat: (n) => `${count(n, "Datei", "Dateien")} des Projekts`,
    notReady: { reading: "wird noch gelesen", failed: "nicht nutzbar" },
    manage: "Dateien des Projekts",
  },
  conversations: "Unterhaltungen",
  runs: "Agentenläufe",
  nothingFiled: "Hier ist noch nichts.",
  deleteTitle: "Dieses Projekt löschen?",
  deleteText: (name) =>
    `„${name}“ und seine Anweisungen werden gelöscht. Die Unterhaltungen, Läufe und ` +
    "Artefakte bleiben erhalten.",
  deleted: (name) => `„${name}“ wurde gelöscht`,
};

export const mediaTexts = {
  intro: "Erstelle Bilder und Sprachausgaben. Sie werden als Artefakte gespeichert.",
  kinds: { picture: "Bild", sound: "Sprache" },
  prompt: "Beschreibe das Bild",
  size: "Größe",
  number: "Anzahl der Bilder",
  draw: "Generieren",
  drawing: "Wird generiert …",
  again: (prompt) => `Noch einmal verwenden: ${prompt}`,
  gallery: "Galerie",
  sounds: "Audio",
  noPictures: "Noch keine Bilder",
  noSounds: "Noch keine Audiodateien",
  text: "Zu sprechender Text",
  voice: "Stimme",
  speed: "Tempo",
  cap: "Maximale Länge",
  capChoice: (minutes, words) => `${minutes} min, etwa ${words} Wörter`,
  speak: "Sprache generieren",
  speaking: "Sprache wird generiert …",
  truncated: (minutes) =>
    `Das Audio wurde nach ${minutes} abgeschnitten. Wähle eine größere maximale Länge, um alles zu hören.`,
  spoken: (length) => `${length} gesprochener Text`,
  keep: "Als Artefakt speichern",
  kept: "Gespeichert",
  view: (name) => `${name} ansehen`,
  previous: "Vorheriges Bild",
  next: "Nächstes Bild",
};
