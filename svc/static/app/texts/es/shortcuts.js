// Spanish texts of the keyboard shortcuts, each with its keys.

export const shortcutTexts = [
  ["Nuevo chat", "N", "Ctrl+Mayús+O"],
  ["Buscar conversaciones", "/", "Ctrl+K"],
  ["Elegir un modelo", "M"],
  ["Ir al cuadro de mensaje", "Mayús+Esc"],
  ["Enviar mensaje", "Enter"],
  ["Nueva línea", "Mayús+Enter"],
  ["Insertar un prompt guardado", "/"],
  ["Detener la respuesta", "Esc"],
  ["Copiar la última respuesta", "Ctrl+Mayús+C"],
  ["Editar el último mensaje", "↑"],
  ["Mostrar atajos", "?"],
];
