// French texts for what may keep a dictation from working.
import { texts as first } from "./first.js";

const dictation = {
  ...first.dictation,
  /** By the names of the browser's errors. */
  problems: {
    NotAllowedError:
      "Le navigateur refuse l’accès au microphone. Autorisez-le dans les paramètres de ce " +
      "site, puis réessayez.",
    NotFoundError: "Aucun microphone trouvé. Branchez-en un, puis réessayez.",
    NotReadableError: "Un autre programme utilise le microphone. Fermez-le, puis réessayez.",
    SecurityError:
      "Les navigateurs n’autorisent le microphone qu’en HTTPS. Ouvrez cette page à son adresse https://.",
    TimeoutError:
      "Aucun son n’arrive. Vérifiez le microphone et le haut-parleur de cet ordinateur, puis réessayez.",
  },
};

export const texts = { ...first, dictation };
