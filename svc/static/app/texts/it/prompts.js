// Italian texts of saved prompts.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  prompts: {
    intro: "Digita / all’inizio di un messaggio per usarne uno.",
    none: "Ancora nessun prompt",
    noneText: "Salva i testi che invii spesso. Scrivi {{nome}} per un valore che viene chiesto ogni volta.",
    create: "Nuovo prompt",
    edit: "Modifica",
    editTitle: (name) => `Modifica “${name}”`,
    actions: (name) => `Azioni per ${name}`,
    name: "Nome",
    text: "Testo",
    textHint: "Scrivi {{nome}} per un valore che viene chiesto ogni volta.",
    asksFor: (names) => `Chiede: ${names.join(", ")}`,
    group: "Gruppo",
    everyone: "Tutti",
    deleteTitle: "Eliminare questo prompt?",
    deleteText: (name) => `“${name}” verrà eliminato.`,
    deleted: (name) => `“${name}” è stato eliminato`,
    shared: "Condivisi con te",
    sharedText: "Solo gli amministratori possono modificare questi prompt.",
    more: "Importa ed esporta",
    importAction: "Importa da un file",
    exportAction: "Esporta in un file",
    imported: (n) => count(n, { one: "# prompt importato.", other: "# prompt importati." }),
    skipped: (n) =>
      count(n, {
        one: "# prompt ignorato, perché ne hai già uno con questo nome.",
        other: "# prompt ignorati, perché ne hai già con questi nomi.",
      }),
    tooLarge: "Il file supera i 10 MB. Scegline uno più piccolo.",
    notJson: "Il file non è JSON. Scegli un file di prompt esportato.",
    noPrompts: "Il file non contiene prompt. Scegli un file di prompt esportato.",
    wrong: (n, field, most) => `Prompt ${n}: “${field}” deve essere un testo da 1 a ${most} caratteri.`,
    search: "Cerca prompt",
    choose: "Scegli un prompt",
    ofGroup: (name) => `Condiviso con ${name}`,
    ofEveryone: "Condiviso con tutti",
    manage: "Gestisci prompt",
    noMatch: "Nessun prompt ha questo nome.",
    insert: "Inserisci",
    adminIntro: "I membri di un gruppo vedono i suoi prompt quando digitano / in una chat.",
    adminNone: "Ancora nessun prompt condiviso",
  },
};
