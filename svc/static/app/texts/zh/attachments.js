// Chinese texts for files that cannot be attached.

export const attachmentTexts = {
  unreadable: (name) => `无法读取“${name}”。请附加文本文件、PDF 或图片（PNG、JPEG、WebP、GIF）。`,
  tooManyPictures: (most) => `每条消息最多可附加 ${most} 张图片。`,
  tooManyFiles: (most) => `每条消息最多可附加 ${most} 个文件。`,
  fileTooLong: (name, most) => `“${name}”太长。一条消息的所有文件合计最多 ${most} 个字符。`,
  fileTooLarge: (name) => `“${name}”对此服务来说太大，请只附加其中一部分。`,
  fileCut: (name, n) => `“${name}”太长，只附加了前 ${n} 个字符。`,
  noPdf: "此服务无法读取 PDF 文件。请联系运营者安装扩展“documents”。",
  emptyFile: (name) => `“${name}”是空文件。`,
  ofFile: (name, text) => `“${name}”：${text}`,
};
