// Portuguese texts for files that cannot be attached.

export const attachmentTexts = {
  unreadable: (name) =>
    `Não é possível ler “${name}”. Anexe arquivos de texto, PDFs ou imagens (PNG, JPEG, WebP, GIF).`,
  tooManyPictures: (most) => `Você pode anexar até ${most} imagens a uma mensagem.`,
  tooManyFiles: (most) => `Você pode anexar até ${most} arquivos a uma mensagem.`,
  fileTooLong: (name, most) =>
    `“${name}” é longo demais. Os arquivos de uma mensagem podem ter até ${most} caracteres no total.`,
  fileTooLarge: (name) => `“${name}” é grande demais para este serviço. Anexe apenas uma parte.`,
  fileCut: (name, n) => `“${name}” é longo demais. Somente os primeiros ${n} caracteres foram anexados.`,
  noPdf: "Este serviço não consegue ler arquivos PDF. Peça ao operador para instalar o extra “documents”.",
  emptyFile: (name) => `“${name}” está vazio.`,
  ofFile: (name, text) => `“${name}”: ${text}`,
};
