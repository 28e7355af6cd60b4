// English texts for files that cannot be attached.

export const attachmentTexts = {
  unreadable: (name) =>
    `“${name}” cannot be read. Attach text files, PDFs, or images (PNG, JPEG, WebP, GIF).`,
  tooManyPictures: (most) => `You can attach up to ${most} images to a message.`,
  tooManyFiles: (most) => `You can attach up to ${most} files to a message.`,
  fileTooLong: (name, most) =>
    `“${name}” is too long. The files of a message can have up to ${most} characters together.`,
  fileTooLarge: (name) => `“${name}” is too large for this service. Attach a part of it.`,
  fileCut: (name, n) => `“${name}” is too long. Only its first ${n} characters are attached.`,
  noPdf: "This service cannot read PDF files. Ask the operator to install the extra “documents”.",
  emptyFile: (name) => `“${name}” is empty.`,
  ofFile: (name, text) => `“${name}”: ${text}`,
};
