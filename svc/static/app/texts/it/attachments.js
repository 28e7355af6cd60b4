// Italian texts for files that cannot be attached.

export const attachmentTexts = {
  unreadable: (name) =>
    `Impossibile leggere “${name}”. Allega file di testo, PDF o immagini (PNG, JPEG, WebP, GIF).`,
  tooManyPictures: (most) => `Puoi allegare fino a ${most} immagini a un messaggio.`,
  tooManyFiles: (most) => `Puoi allegare fino a ${most} file a un messaggio.`,
  fileTooLong: (name, most) =>
    `“${name}” è troppo lungo. I file di un messaggio possono avere in tutto fino a ${most} caratteri.`,
  fileTooLarge: (name) => `“${name}” è troppo grande per questo servizio. Allegane una parte.`,
  fileCut: (name, n) => `“${name}” è troppo lungo. Vengono allegati solo i primi ${n} caratteri.`,
  noPdf: "Questo servizio non può leggere file PDF. Chiedi al gestore di installare l’extra “documents”.",
  emptyFile: (name) => `“${name}” è vuoto.`,
  ofFile: (name, text) => `“${name}”: ${text}`,
};
