// Japanese texts of the keyboard shortcuts, each with its keys.

export const shortcutTexts = [
  ["新しいチャット", "N", "Ctrl+Shift+O"],
  ["会話を検索", "/", "Ctrl+K"],
  ["モデルを選択", "M"],
  ["メッセージ欄に移動", "Shift+Esc"],
  ["メッセージを送信", "Enter"],
  ["改行", "Shift+Enter"],
  ["保存したプロンプトを挿入", "/"],
  ["生成を停止", "Esc"],
  ["最後の回答をコピー", "Ctrl+Shift+C"],
  ["最後のメッセージを編集", "↑"],
  ["ショートカットを表示", "?"],
];
