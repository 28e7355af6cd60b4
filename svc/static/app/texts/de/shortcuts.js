// German texts of the keyboard shortcuts, each with its keys.

export const shortcutTexts = [
  ["Neuer Chat", "N", "Strg+Umschalt+O"],
  ["Unterhaltungen durchsuchen", "/", "Strg+K"],
  ["Modell auswählen", "M"],
  ["Zum Nachrichtenfeld", "Umschalt+Esc"],
  ["Nachricht senden", "Enter"],
  ["Neue Zeile", "Umschalt+Enter"],
  ["Gespeicherten Prompt einfügen", "/"],
  ["Antwort stoppen", "Esc"],
  ["Letzte Antwort kopieren", "Strg+Umschalt+C"],
  ["Letzte Nachricht bearbeiten", "↑"],
  ["Tastaturkürzel anzeigen", "?"],
];
