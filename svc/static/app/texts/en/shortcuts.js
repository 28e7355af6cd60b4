// English texts of the keyboard shortcuts, each with its keys.

export const shortcutTexts = [
  ["New chat", "N", "Ctrl+Shift+O"],
  ["Search conversations", "/", "Ctrl+K"],
  ["Choose a model", "M"],
  ["Focus the message box", "Shift+Esc"],
  ["Send message", "Enter"],
  ["New line", "Shift+Enter"],
  ["Insert a saved prompt", "/"],
  ["Stop generating", "Esc"],
  ["Copy last answer", "Ctrl+Shift+C"],
  ["Edit last message", "↑"],
  ["Show shortcuts", "?"],
];
