// German texts for what may keep a dictation from working.
import { texts as first } from "./first.js";

const dictation = {
  ...first.dictation,
  /** By the names of the browser's errors. */
  problems: {
    NotAllowedError:
      "Der Browser erlaubt kein Mikrofon. Erlaube es in den Einstellungen dieser Website " +
      "und versuche es noch einmal.",
    NotFoundError: "Kein Mikrofon gefunden. Schließe eines an und versuche es noch einmal.",
    NotReadableError:
      "Ein anderes Programm verwendet das Mikrofon. Schließe dieses Programm und versuche es noch einmal.",
    SecurityError:
      "Browser erlauben das Mikrofon nur über HTTPS. Öffne diese Seite über ihre Adresse mit https://.",
    TimeoutError:
      "Es kommt kein Ton an. Prüfe Mikrofon und Lautsprecher dieses Computers und versuche es noch einmal.",
  },
};

export const texts = { ...first, dictation };
