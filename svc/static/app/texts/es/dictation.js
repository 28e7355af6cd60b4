// Spanish texts for what may keep a dictation from working.
import { texts as first } from "./first.js";

const dictation = {
  ...first.dictation,
  /** By the names of the browser's errors. */
  problems: {
    NotAllowedError:
      "El navegador no permite usar el micrófono. Permítelo en los ajustes de este sitio e " +
      "inténtalo de nuevo.",
    NotFoundError: "No se encontró ningún micrófono. Conecta uno e inténtalo de nuevo.",
    NotReadableError: "Otro programa está usando el micrófono. Ciérralo e inténtalo de nuevo.",
    SecurityError:
      "Los navegadores solo permiten el micrófono con HTTPS. Abre esta página en su dirección https://.",
    TimeoutError:
      "No llega ningún sonido. Comprueba el micrófono y el altavoz de este ordenador e inténtalo de nuevo.",
  },
};

export const texts = { ...first, dictation };
