// Japanese texts for files that cannot be attached.

export const attachmentTexts = {
  unreadable: (name) =>
    `「${name}」を読み込めません。テキストファイル、PDF、画像（PNG、JPEG、WebP、GIF）を添付してください。`,
  tooManyPictures: (most) => `1 件のメッセージに添付できる画像は ${most} 枚までです。`,
  tooManyFiles: (most) => `1 件のメッセージに添付できるファイルは ${most} 件までです。`,
  fileTooLong: (name, most) =>
    `「${name}」は長すぎます。1 件のメッセージのファイルは合計 ${most} 文字までです。`,
  fileTooLarge: (name) => `「${name}」はこのサービスには大きすぎます。一部だけを添付してください。`,
  fileCut: (name, n) => `「${name}」は長すぎるため、最初の ${n} 文字だけを添付しました。`,
  noPdf:
    "このサービスは PDF を読み込めません。運営者に拡張機能「documents」のインストールを依頼してください。",
  emptyFile: (name) => `「${name}」は空です。`,
  ofFile: (name, text) => `「${name}」：${text}`,
};
