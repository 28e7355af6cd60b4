// Portuguese texts for what may keep a dictation from working.
import { texts as first } from "./first.js";

const dictation = {
  ...first.dictation,
  /** By the names of the browser's errors. */
  problems: {
    NotAllowedError:
      "O navegador não permite o microfone. Permita-o nas configurações deste site e tente novamente.",
    NotFoundError: "Nenhum microfone foi encontrado. Conecte um e tente novamente.",
    NotReadableError: "Outro programa está usando o microfone. Feche-o e tente novamente.",
    SecurityError: "Os navegadores só permitem o microfone por HTTPS. Abra esta página no endereço https://.",
    TimeoutError:
      "Nenhum som está chegando. Verifique o microfone e o alto-falante deste computador e tente novamente.",
  },
};

export const texts = { ...first, dictation };
