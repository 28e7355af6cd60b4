// Italian texts of the keyboard shortcuts, each with its keys.

export const shortcutTexts = [
  ["Nuova chat", "N", "Ctrl+Maiusc+O"],
  ["Cerca conversazioni", "/", "Ctrl+K"],
  ["Scegli un modello", "M"],
  ["Vai al campo del messaggio", "Maiusc+Esc"],
  ["Invia messaggio", "Invio"],
  ["Nuova riga", "Maiusc+Invio"],
  ["Inserisci un prompt salvato", "/"],
  ["Interrompi la generazione", "Esc"],
  ["Copia l’ultima risposta", "Ctrl+Maiusc+C"],
  ["Modifica l’ultimo messaggio", "↑"],
  ["Mostra scorciatoie", "?"],
];
