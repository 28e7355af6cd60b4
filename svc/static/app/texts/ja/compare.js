// Japanese texts for several models that answer the same question.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

const compare = {
  /** The title of the choice: for the next question, or for one that has an answer. */
  next: "モデルを比較",
  again: "別のモデルで回答",
  hint: (most) => `最大 ${count(most, "件のモデル")}を選べます。順番に回答し、選んだ回答から会話が続きます。`,
  hintNext: "送信前に、全モデルの推定コストがメッセージ欄に表示されます。",
  search: "モデルを検索",
  none: "一致するモデルがありません。",
  choose: "まずモデルを選択してください。",
  use: (n) => (n > 1 ? `${n} 件のモデルを比較` : "このモデルを使用"),
  ask: (n) => (n > 1 ? `${n} 件のモデルに質問` : "再生成"),
  title: "回答を比較",
  later: "前のモデルの後に回答します",
  writing: "回答を生成しています",
  take: "この回答を使用",
  kept: "ほかの回答はバージョンとして残ります。",
  failed: "このモデルは回答しませんでした。",
};

export const texts = { ...first, compare };
