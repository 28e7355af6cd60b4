// German texts for files that cannot be attached.

export const attachmentTexts = {
  unreadable: (name) =>
    `„${name}“ kann nicht gelesen werden. Hänge Textdateien, PDFs oder Bilder (PNG, JPEG, WebP, GIF) an.`,
  tooManyPictures: (most) => `Du kannst einer Nachricht bis zu ${most} Bilder anhängen.`,
  tooManyFiles: (most) => `Du kannst einer Nachricht bis zu ${most} Dateien anhängen.`,
  fileTooLong: (name, most) =>
    `„${name}“ ist zu lang. Die Dateien einer Nachricht dürfen zusammen bis zu ${most} Zeichen haben.`,
  fileTooLarge: (name) => `„${name}“ ist zu groß für diesen Dienst. Hänge nur einen Teil davon an.`,
  fileCut: (name, n) => `„${name}“ ist zu lang. Nur die ersten ${n} Zeichen werden angehängt.`,
  noPdf:
    "Dieser Dienst kann keine PDF-Dateien lesen. Bitte den Betreiber, das Extra " +
    "„documents“ zu installieren.",
  emptyFile: (name) => `„${name}“ ist leer.`,
  ofFile: (name, text) => `„${name}“: ${text}`,
};
