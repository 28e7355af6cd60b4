// Chinese texts of the keyboard shortcuts, each with its keys.

export const shortcutTexts = [
  ["新聊天", "N", "Ctrl+Shift+O"],
  ["搜索对话", "/", "Ctrl+K"],
  ["选择模型", "M"],
  ["聚焦输入框", "Shift+Esc"],
  ["发送消息", "Enter"],
  ["换行", "Shift+Enter"],
  ["插入保存的提示词", "/"],
  ["停止生成", "Esc"],
  ["复制上一条回答", "Ctrl+Shift+C"],
  ["编辑上一条消息", "↑"],
  ["显示快捷键", "?"],
];
