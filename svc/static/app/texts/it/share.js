// Italian texts of shared conversations.
import { count } from "../locale.js";
import { texts as first } from "./first.js";

const share = {
  dialog: "Condividi conversazione",
  about:
    "Chiunque abbia il link può leggere una copia della conversazione così com’è ora. I " +
    "messaggi successivi non vengono aggiunti.",
  has:
    "La copia contiene il titolo, le domande con il testo dei file allegati e le risposte con " +
    "le loro immagini.",
  hasNot:
    "Non contiene il tuo nome, le tue istruzioni, i passaggi ricordati, il ragionamento, le " +
    "azioni degli strumenti o le immagini che hai allegato.",
  ends: "Il link funziona per",
  days: (n) => (n ? count(n, "giorno", "giorni") : "Senza limite di tempo"),
  create: "Crea link",
  link: "Link",
  copy: "Copia link",
  once: "Copia il link ora. Non verrà più mostrato.",
  list: "Gestisci link condivisi",
  intro:
    "Ogni link mostra una copia di una conversazione a chiunque lo abbia. I link stessi non " +
    "vengono salvati, quindi non si possono mostrare di nuovo.",
  none: "Non hai condiviso nessuna conversazione.",
  sharedOn: (day) => `Condivisa il ${day}`,
  endsOn: (day) => `scade il ${day}`,
  endless: "senza limite di tempo",
  end: "Disattiva link",
  endTitle: "Disattivare questo link?",
  endText: "Non si aprirà più per nessuno e la copia verrà eliminata. La tua conversazione resta.",
  ended: "Il link non funziona più.",
  untitled: "Senza titolo",
  readOnly: (day) => `Una copia del ${day}. Non può essere modificata.`,
  gone: "Questa conversazione non è condivisa. Il link potrebbe essere scaduto o essere stato disattivato.",
  goOn: "Continua nel mio account",
  signIn: "Accedi per continuare",
  you: "Domanda",
  assistant: "Risposta",
  picture: "Immagine della risposta",
  cut: "Questa risposta non è completa.",
};

export const texts = { ...first, share };
