// Spanish texts for files that cannot be attached.

export const attachmentTexts = {
  unreadable: (name) =>
    `No se puede leer “${name}”. Adjunta archivos de texto, PDF o imágenes (PNG, JPEG, WebP, GIF).`,
  tooManyPictures: (most) => `Puedes adjuntar hasta ${most} imágenes a un mensaje.`,
  tooManyFiles: (most) => `Puedes adjuntar hasta ${most} archivos a un mensaje.`,
  fileTooLong: (name, most) =>
    `“${name}” es demasiado largo. Los archivos de un mensaje pueden sumar hasta ${most} caracteres.`,
  fileTooLarge: (name) => `“${name}” es demasiado grande para este servicio. Adjunta solo una parte.`,
  fileCut: (name, n) => `“${name}” es demasiado largo. Solo se adjuntan los primeros ${n} caracteres.`,
  noPdf: "Este servicio no puede leer archivos PDF. Pide al operador que instale el extra “documents”.",
  emptyFile: (name) => `“${name}” está vacío.`,
  ofFile: (name, text) => `“${name}”: ${text}`,
};
