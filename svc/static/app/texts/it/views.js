// Italian texts of views that are loaded when first shown.
import { count, number } from "../locale.js";

export const importTexts = {
  intro:
    "Importa chat da ChatGPT, Claude, Open WebUI, LibreChat o da un’esportazione di questo " +
    "servizio. Scegli il file ZIP o JSON dell’esportazione, di 200 MB al massimo.",
  action: "Scegli un file",
  sending: (size) => `Caricamento, ${size} finora…`,
  reading: (n) => `Importazione, ${count(n, "conversazione", "conversazioni")} finora…`,
  done: (source) => `L’importazione da ${source} è completa.`,
  sources: {
    chatgpt: "ChatGPT",
    claude: "Claude",
    open_webui: "Open WebUI",
    librechat: "LibreChat",
    svc: "questo servizio",
  },
  counts: ({ imported, skipped, failed }) =>
    `${count(imported, "conversazione importata", "conversazioni importate")}, ${skipped} ` +
    `ignorate, ${failed} non riuscite.`,
  details: "Mostra ogni conversazione",
  statuses: { imported: "Importata", skipped: "Ignorata", failed: "Non riuscita" },
  more: (n) => `E altre ${number(n)}.`,
  undo: "Annulla importazione",
  undoTitle: "Annullare questa importazione?",
  undoText:
    "Tutto ciò che è stato importato verrà eliminato, anche ciò che hai scritto da allora in " +
    "queste conversazioni. Puoi importare di nuovo il file.",
  undone: "L’importazione è stata annullata.",
};

export const memoryTexts = {
  intro: "Le chat possono ricordare questi messaggi. Un messaggio dimenticato resta nella sua conversazione.",
  search: "Mostra cosa ricordano le chat per una domanda",
  find: "Cerca",
  forgotten: "Mostra messaggi dimenticati",
  none: "Nessun ricordo.",
  noneForgotten: "Nessun messaggio è dimenticato.",
  forget: "Dimentica",
  remember: "Ricorda di nuovo",
  done: "Le chat non ricordano più questo messaggio.",
  roles: { user: "Tu", assistant: "Assistente", system: "Sistema" },
};

export const temporaryTexts = {
  hint: "Nulla viene salvato o ricordato. Ricaricando la pagina, questa chat va persa.",
  files: "Una chat temporanea accetta solo file di testo, perché non salva nulla.",
};

export const projectsTexts = {
  intro:
    "Un progetto raccoglie conversazioni, esecuzioni e artefatti, e aggiunge le sue " +
    "istruzioni a ogni chat e a ogni esecuzione di agenti.",
  none: "Ancora nessun progetto",
  noneText: "Un progetto raccoglie conversazioni, esecuzioni e artefatti con istruzioni comuni.",
  create: "Nuovo progetto",
  createAction: "Crea progetto",
  name: "Nome",
  instructions: "Istruzioni",
  instructionsHint: "Aggiunte a ogni conversazione e a ogni esecuzione di agenti in questo progetto.",
  noInstructions: "Nessuna istruzione",
  cap: "Numero massimo di passi di un’esecuzione",
  capHint: "Le esecuzioni di questo progetto non possono usare più passi.",
  noCap: "Nessun limite",
  back: "Tutti i progetti",
  newChat: "Nuova chat",
  newRun: "Nuova esecuzione",
  files: {
    title: "File",
    none: "Ancora nessun file",
    noneText:
      "Trascina qui i documenti. Le chat e le esecuzioni di questo progetto possono " +
      "cercare al loro interno, leggerli e citarli.",
    dropHere: "Trascina i file per aggiungerli a questo progetto",
    add: "Aggiungi file",
    choose: "Aggiungi un artefatto",
    addAction: "Aggiungi",
    addNamed: (name) => `Aggiungi ${name}`,
    added: "Aggiunto",
    remove: (name) => `Rimuovi ${name}`,
    removed: (name) => `“${name}” è stato rimosso. L’artefatto resta.`,
    progress: (read, all) => `Lettura: ${read} di ${count(all, "file", "file")}`,
    sum: (n, size) => `${count(n, "file", "file")}, ${size} di testo`,
    states: { reading: "Lettura…", ready: "Pronto" },
    failed: (reason) => `Non utilizzabile. ${reason}`,
    inChat: (n) => `${count(n, "file", "file")} del progetto`,
    notReady: { reading: "ancora in lettura", failed: "non utilizzabile" },
    manage: "File del progetto",
  },
  conversations: "Conversazioni",
  runs: "Esecuzioni di agenti",
  nothingFiled: "Ancora niente qui.",
  deleteTitle: "Eliminare questo progetto?",
  deleteText: (name) =>
    `“${name}” e le sue istruzioni verranno eliminati. Le conversazioni, le esecuzioni e gli ` +
    "artefatti restano.",
  deleted: (name) => `“${name}” è stato eliminato`,
};

export const mediaTexts = {
  intro: "Crea immagini e voce. Vengono salvate come artefatti.",
  kinds: { picture: "Immagine", sound: "Voce" },
  prompt: "Descrivi l’immagine",
  size: "Dimensione",
  number: "Numero di immagini",
  draw: "Genera",
  drawing: "Generazione…",
  again: (prompt) => `Usa di nuovo: ${prompt}`,
  gallery: "Galleria",
  sounds: "Audio",
  noPictures: "Ancora nessuna immagine",
  noSounds: "Ancora nessun audio",
  text: "Testo da pronunciare",
  voice: "Voce",
  speed: "Velocità",
  cap: "Durata massima",
  capChoice: (minutes, words) => `${minutes} min, circa ${words} parole`,
  speak: "Genera voce",
  speaking: "Generazione della voce…",
  truncated: (minutes) =>
    `L’audio è stato tagliato dopo ${minutes}. Scegli una durata massima maggiore per ascoltare tutto.`,
  spoken: (length) => `${length} di parlato`,
  keep: "Salva come artefatto",
  kept: "Salvato",
  view: (name) => `Vedi ${name}`,
  previous: "Immagine precedente",
  next: "Immagine successiva",
};
