// Japanese texts of the line where the view of the model begins.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  viewLine: {
    label: "モデルが読む範囲の開始",
    begins: "モデルはここからこのチャットを読みます。以前のメッセージは長すぎて読めません。",
    summarized: "モデルはここからのチャットと、以前のメッセージの要約を読みます。",
    summarize: "以前のメッセージを要約",
    again: "もう一度要約",
    cost: (amount) => `約 ${amount}`,
    summary: "要約",
    edit: "要約を編集",
    remove: "要約を削除",
    save: "保存",
    cancel: "キャンセル",
  },
};
