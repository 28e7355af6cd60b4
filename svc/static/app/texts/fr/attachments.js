// French texts for files that cannot be attached.

export const attachmentTexts = {
  unreadable: (name) =>
    `« ${name} » ne peut pas être lu. Joignez des fichiers texte, des PDF ou des images ` +
    "(PNG, JPEG, WebP, GIF).",
  tooManyPictures: (most) => `Vous pouvez joindre jusqu’à ${most} images à un message.`,
  tooManyFiles: (most) => `Vous pouvez joindre jusqu’à ${most} fichiers à un message.`,
  fileTooLong: (name, most) =>
    `« ${name} » est trop long. Les fichiers d’un message peuvent compter jusqu’à ${most} ` +
    "caractères au total.",
  fileTooLarge: (name) => `« ${name} » est trop volumineux pour ce service. Joignez-en une partie.`,
  fileCut: (name, n) => `« ${name} » est trop long. Seuls les ${n} premiers caractères sont joints.`,
  noPdf:
    "Ce service ne peut pas lire les fichiers PDF. Demandez à l’opérateur d’installer " +
    "l’extra « documents ».",
  emptyFile: (name) => `« ${name} » est vide.`,
  ofFile: (name, text) => `« ${name} » : ${text}`,
};
