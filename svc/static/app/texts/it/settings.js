import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  settings: {
    since: "Membro dal",
    unverified: "La tua email non è verificata. Controlla la posta in arrivo o invia di nuovo il link.",
    noMail:
      "La tua email non è verificata e questo servizio non può inviare email. Chiedi al " +
      "gestore un link per reimpostare la password.",
    sendMail: "Invia di nuovo il link",
    chat: "Chat",
    defaultModel: "Modello predefinito",
    defaultModelHint: "Usato quando una chat o una richiesta non indica un modello.",
    operatorsModel: "Predefinito del servizio",
    memory: "Memoria",
    sharesText: "Vedi quali conversazioni condividi con un link e disattiva i link.",
    memoryText: "Vedi cosa le chat possono ricordare e fai dimenticare dei messaggi.",
    titles: "Titoli delle nuove chat",
    titlesHint: "Li scrive il modello della chat, al suo prezzo. Altrimenti il titolo sono le prime parole.",
    titleChoices: { free: "Con modelli gratuiti", always: "Con tutti i modelli", never: "Le prime parole" },
    memoryHint:
      "Le chat possono usare passaggi delle tue conversazioni precedenti. La risposta mostra quali.",
    instructions: "Istruzioni personalizzate",
    saveInstructions: "Salva istruzioni",
    instructionsHint: "Inviate con ogni chat: cosa i modelli devono sapere di te e come devono rispondere.",
    look: "Aspetto",
    languageHint: "Per questa app e per le email.",
    verificationSent: "Un link di verifica è in arrivo alla tua email.",
    signIn: "Accesso",
    changeEmail: "Cambia email",
    newEmail: "Nuova email",
    newEmailHint: "Invieremo un link a questo indirizzo. Aprilo per confermare la modifica.",
    noMailToChange: "Questo servizio non può inviare email. Chiedi al gestore di cambiare il tuo indirizzo.",
    emailSent: (email) => `Abbiamo inviato un link a ${email}. Aprilo per confermare la modifica.`,
    hasPassword: "Impostata",
    noPassword: "Non impostata. Accedi con un provider di identità.",
    changePassword: "Cambia password",
    setPassword: "Imposta password",
    currentPassword: "Password attuale",
    newPassword: "Nuova password",
    passwordChanged: "La tua password è stata cambiata.",
    identities: "Provider di identità",
    noIdentities: "Nessuno collegato.",
    link: (provider) => `Collega ${provider}`,
    unlink: "Scollega",
    unlinkTitle: "Scollegare questo metodo di accesso?",
    unlinkText: (provider) => `Potrai collegare di nuovo ${provider} in seguito.`,
    data: "I tuoi dati",
    exportText:
      "Scarica un archivio di tutti i tuoi dati: conversazioni, artefatti, esecuzioni, progetti e movimenti.",
    retention: {
      conversations_days: (n) =>
        `Le chat vengono eliminate ${count(n, "giorno", "giorni")} dopo l’ultimo messaggio.`,
      runs_days: (n) =>
        `Le esecuzioni degli agenti vengono eliminate ${count(n, "giorno", "giorni")} dopo la fine.`,
      files_days: (n) => `I file vengono eliminati ${count(n, "giorno", "giorni")} dopo l’ultima modifica.`,
    },
    exportAction: "Esporta dati",
    tools: "Strumenti",
    toolsText: "Collega server MCP. Le tue chat e i tuoi agenti possono usarne gli strumenti.",
    importText: "Importa chat da ChatGPT, Claude, Open WebUI, LibreChat o da un altro server come questo.",
    exporting: (size) => `${size} finora…`,
    end: "Elimina account",
    endText: "Elimina definitivamente conversazioni, artefatti, chiavi e provider.",
    endAction: "Elimina account",
  },
};
