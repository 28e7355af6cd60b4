// Arabic texts for files that cannot be attached.

export const attachmentTexts = {
  unreadable: (name) =>
    `تعذّرت قراءة «${name}». أرفق نصوصًا أو ملفات PDF أو صورًا (PNG أو JPEG أو WebP أو GIF).`,
  tooManyPictures: (most) => `أقصى عدد للصور في الرسالة: ${most}.`,
  tooManyFiles: (most) => `أقصى عدد للملفات في الرسالة: ${most}.`,
  fileTooLong: (name, most) => `«${name}» طويل جدًا. أقصى عدد لأحرف ملفات الرسالة مجتمعة: ${most}.`,
  fileTooLarge: (name) => `«${name}» أكبر من أن تعالجه هذه الخدمة. أرفق جزءًا منه.`,
  fileCut: (name, n) => `«${name}» طويل جدًا. عدد الأحرف المرفقة من بدايته: ${n}.`,
  noPdf: "لا تستطيع هذه الخدمة قراءة ملفات PDF. اطلب من المشغّل تثبيت الإضافة «documents».",
  emptyFile: (name) => `«${name}» فارغ.`,
  ofFile: (name, text) => `«${name}»: ${text}`,
};
