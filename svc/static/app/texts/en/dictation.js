// English texts for what may keep a dictation from working.
import { texts as first } from "./first.js";

const dictation = {
  ...first.dictation,
  /** By the names of the browser's errors. */
  problems: {
    NotAllowedError:
      "The browser refuses the microphone. Allow it in the settings of this site, and try again.",
    NotFoundError: "No microphone was found. Connect one, and try again.",
    NotReadableError: "Another program uses the microphone. Close that program, and try again.",
    SecurityError: "Browsers allow the microphone only over HTTPS. Open this page at its https:// address.",
    TimeoutError: "No sound arrives. Check microphone and loudspeaker of this computer, and try again.",
  },
};

export const texts = { ...first, dictation };
