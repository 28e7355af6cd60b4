// Italian texts for what may keep a dictation from working.
import { texts as first } from "./first.js";

const dictation = {
  ...first.dictation,
  /** By the names of the browser's errors. */
  problems: {
    NotAllowedError:
      "Il browser non consente l’uso del microfono. Consentilo nelle impostazioni di " +
      "questo sito e riprova.",
    NotFoundError: "Nessun microfono trovato. Collegane uno e riprova.",
    NotReadableError: "Un altro programma sta usando il microfono. Chiudilo e riprova.",
    SecurityError:
      "I browser consentono il microfono solo con HTTPS. Apri questa pagina al suo indirizzo https://.",
    TimeoutError:
      "Non arriva alcun suono. Controlla il microfono e l’altoparlante di questo computer e riprova.",
  },
};

export const texts = { ...first, dictation };
