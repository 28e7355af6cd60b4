import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  providers: {
    ...first.providers,
    intro: "Collega i tuoi server di modelli con le tue chiavi API. Qui il loro uso è gratuito.",
    none: "Ancora nessun provider",
    noneText: "Collega qualsiasi server compatibile con OpenAI: di un fornitore o sul tuo computer.",
    notAllowed: "Il gestore di questo servizio non consente server di modelli e di strumenti propri.",
    add: "Aggiungi provider",
    addAction: "Aggiungi",
    connectTitle: (program) => `Collega ${program}`,
    connectSteps: {
      ollama: [
        "Installa Ollama (ollama.com) sul computer che esegue questo servizio.",
        "Scarica un modello. In un terminale, esegui:",
        "I suoi modelli appaiono nel selettore dei modelli. Può richiedere un minuto.",
      ],
      lmstudio: [
        "Installa LM Studio (lmstudio.ai) sul computer che esegue questo servizio e scarica un modello.",
        "Avvia il suo server. In un terminale, esegui:",
        "I suoi modelli appaiono nel selettore dei modelli. Può richiedere un minuto.",
      ],
    },
    elsewhere: "È in esecuzione su un altro computer",
    checkAgain: "Controlla di nuovo",
    notFound: (program) => `Nessun modello di ${program} trovato.`,
    found: (program, n) => `Collegato a ${program}: ${count(n, "modello trovato", "modelli trovati")}.`,
    added: (name) => `${name} è stato aggiunto`,
    name: "Nome",
    nameHint: "Lettere minuscole, cifre, - e _. I modelli si chiamano nome/modello.",
    baseUrl: "URL di base",
    baseUrlHint: "L’indirizzo dell’API, che di solito termina con /v1.",
    format: "Formato",
    formatHint: "Il test di un provider mostra a quali formati risponde.",
    formats: { chat: "Chat completions", responses: "Responses", messages: "Messages" },
    answers: (formats) => `Risponde a ${formats.join(", ")}.`,
    apiKey: "Chiave API",
    apiKeyHint:
      "Lascia vuoto se il server non la richiede. La chiave viene salvata cifrata e non è più visibile.",
    keyStays: (hint) => `Lascia vuoto per mantenere la chiave salvata (${hint}).`,
    keyDropped: "L’URL è cambiato. Senza una nuova chiave, quella salvata verrà eliminata.",
    keyEnding: (hint) => `chiave ${hint}`,
    withKey: "con chiave",
    noKey: "senza chiave",
    withoutKey: "Rimuovi la chiave salvata",
    models: "Modelli",
    modelsHint:
      "Un modello per riga. Lascia vuoto per tutti i modelli. Aggiungi “image”, “speech” o " +
      "“transcription” dopo un modello di quel tipo.",
    allModels: "tutti i modelli",
    narrowed: (n) => count(n, "modello", "modelli"),
    test: "Prova",
    works: (n) => `Collegato: ${count(n, "modello trovato", "modelli trovati")}.`,
    worksEmpty: "Collegato, ma il server non elenca alcun modello.",
    andMore: (n) => ` e altri ${n}`,
    actions: (name) => `Azioni per ${name}`,
    edit: "Modifica",
    editTitle: (name) => `Modifica ${name}`,
    deleteTitle: "Eliminare questo provider?",
    deleteText: (name) =>
      `I modelli di “${name}” e la chiave salvata verranno eliminati. L’operazione non può essere annullata.`,
    deleted: (name) => `${name} è stato eliminato`,
  },
};
