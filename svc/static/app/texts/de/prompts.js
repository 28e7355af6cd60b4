// German texts of saved prompts.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  prompts: {
    intro: "Gib am Anfang einer Nachricht / ein, um einen zu verwenden.",
    none: "Noch keine Prompts",
    noneText:
      "Speichere Texte, die du oft sendest. Schreibe {{name}} für einen Wert, nach dem jedes " +
      "Mal gefragt wird.",
    create: "Neuer Prompt",
    edit: "Bearbeiten",
    editTitle: (name) => `„${name}“ bearbeiten`,
    actions: (name) => `Aktionen für ${name}`,
    name: "Name",
    text: "Text",
    textHint: "Schreibe {{name}} für einen Wert, nach dem jedes Mal gefragt wird.",
    asksFor: (names) => `Fragt nach: ${names.join(", ")}`,
    group: "Gruppe",
    everyone: "Alle",
    deleteTitle: "Diesen Prompt löschen?",
    deleteText: (name) => `„${name}“ wird gelöscht.`,
    deleted: (name) => `„${name}“ wurde gelöscht`,
    shared: "Mit dir geteilt",
    sharedText: "Diese Prompts können nur Administratoren ändern.",
    more: "Importieren und exportieren",
    importAction: "Aus einer Datei importieren",
    exportAction: "In eine Datei exportieren",
    imported: (n) => `${count(n, "Prompt", "Prompts")} importiert.`,
    skipped: (n) =>
      count(n, {
        one: "# Prompt übersprungen, weil du schon einen mit diesem Namen hast.",
        other: "# Prompts übersprungen, weil du schon welche mit diesen Namen hast.",
      }),
    tooLarge: "Die Datei ist größer als 10 MB. Wähle eine kleinere.",
    notJson: "Die Datei ist kein JSON. Wähle eine exportierte Datei mit Prompts.",
    noPrompts: "Die Datei enthält keine Prompts. Wähle eine exportierte Datei mit Prompts.",
    wrong: (n, field, most) => `Prompt ${n}: „${field}“ muss ein Text mit 1 bis ${most} Zeichen sein.`,
    search: "Prompts suchen",
    choose: "Prompt auswählen",
    ofGroup: (name) => `Mit ${name} geteilt`,
    ofEveryone: "Mit allen geteilt",
    manage: "Prompts verwalten",
    noMatch: "Kein Prompt hat diesen Namen.",
    insert: "Einfügen",
    adminIntro: "Mitglieder einer Gruppe sehen ihre Prompts, wenn sie in einem Chat / eingeben.",
    adminNone: "Noch keine geteilten Prompts",
  },
};
