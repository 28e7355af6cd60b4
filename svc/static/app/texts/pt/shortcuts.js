// Portuguese texts of the keyboard shortcuts, each with its keys.

export const shortcutTexts = [
  ["Novo chat", "N", "Ctrl+Shift+O"],
  ["Buscar conversas", "/", "Ctrl+K"],
  ["Escolher um modelo", "M"],
  ["Ir para a caixa de mensagem", "Shift+Esc"],
  ["Enviar mensagem", "Enter"],
  ["Nova linha", "Shift+Enter"],
  ["Inserir um prompt salvo", "/"],
  ["Parar a geração", "Esc"],
  ["Copiar a última resposta", "Ctrl+Shift+C"],
  ["Editar a última mensagem", "↑"],
  ["Mostrar atalhos", "?"],
];
