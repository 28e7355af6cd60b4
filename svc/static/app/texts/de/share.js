// German texts of shared conversations.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

const share = {
  dialog: "Unterhaltung teilen",
  about:
    "Alle, die den Link haben, können eine Kopie der Unterhaltung lesen, wie sie jetzt ist. " +
    "Spätere Nachrichten kommen nicht hinzu.",
  has:
    "Die Kopie enthält den Titel, die Fragen mit dem Text angehängter Dateien " +
    "und die Antworten mit ihren Bildern.",
  hasNot:
    "Sie enthält nicht deinen Namen, deine Anweisungen, verwendete Erinnerungen, " +
    "Gedankengänge, die Schritte von Tools " +
    "oder Bilder, die du angehängt hast.",
  ends: "Der Link gilt",
  days: (n) => (n ? count(n, "Tag", "Tage") : "Ohne Zeitlimit"),
  create: "Link erstellen",
  link: "Link",
  copy: "Link kopieren",
  once: "Kopiere den Link jetzt. Er wird nicht noch einmal angezeigt.",
  list: "Geteilte Links verwalten",
  intro:
    "Jeder Link zeigt allen, die ihn haben, eine Kopie einer Unterhaltung. " +
    "Die Links selbst werden nicht gespeichert und können daher nicht noch einmal angezeigt werden.",
  none: "Du hast keine Unterhaltung geteilt.",
  sharedOn: (day) => `Geteilt am ${day}`,
  endsOn: (day) => `endet am ${day}`,
  endless: "ohne Zeitlimit",
  end: "Link beenden",
  endTitle: "Diesen Link beenden?",
  endText:
    "Er öffnet sich dann für niemanden mehr, und die Kopie wird gelöscht. Deine Unterhaltung " +
    "bleibt erhalten.",
  ended: "Der Link funktioniert nicht mehr.",
  untitled: "Ohne Titel",
  readOnly: (day) => `Eine Kopie vom ${day}. Sie kann nicht geändert werden.`,
  gone: "Diese Unterhaltung ist nicht geteilt. Vielleicht ist der Link abgelaufen oder wurde beendet.",
  goOn: "In meinem Konto fortsetzen",
  signIn: "Anmelden, um fortzufahren",
  you: "Frage",
  assistant: "Antwort",
  picture: "Bild der Antwort",
  cut: "Diese Antwort ist nicht vollständig.",
};

export const texts = { ...first, share };
