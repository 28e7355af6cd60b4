// Japanese texts of previews.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  preview: {
    title: "プレビュー",
    frame: "プレビューの内容",
    kinds: { html: "HTML", svg: "SVG", mermaid: "Mermaid" },
    save: "アーティファクトとして保存",
    saved: (name) => `「${name}」をアーティファクトとして保存しました`,
    show: "表示",
    fullScreen: "全画面",
    note: "この内容はネットワークやアカウントにアクセスできません。",
    failed: "図にエラーがあります：",
    left: "この内容が別のページを読み込もうとしたため、プレビューを閉じました。",
    notLoaded: "プレビューを読み込めませんでした。",
  },
};
