import { limits } from "../../limits.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  signIn: {
    ...first.signIn,
    lead: "La tua piattaforma di IA, sulla tua macchina.",
    about:
      "Chat, agenti, immagini e audio con qualsiasi server di modelli, in un solo account. " +
      "Vedi sempre quanto costa ogni cosa, e l’API è compatibile con OpenAI.",
    points: [
      ["chat", "Chatta con tutti i tuoi modelli e conserva le tue conversazioni."],
      ["agents", "Dai un obiettivo a un agente e segui ogni passo."],
      ["key", "Usa lo stesso account da curl, Python o JavaScript."],
    ],
    signUp: "Crea il tuo account",
    toSignIn: "Hai già un account? Accedi",
    toSignUp: "Crea un account",
    signUpAction: "Crea account",
    show: "Mostra password",
    hide: "Nascondi password",
    forgot: "Hai dimenticato la password?",
    forgotTitle: "Reimposta la password",
    forgotText: "Ti invieremo un link via email. È valido per un’ora.",
    forgotAction: "Invia link",
    forgotDone:
      "Se esiste un account con questa email, abbiamo inviato un link. Non è arrivato? " +
      "Chiedi un link al gestore di questo servizio.",
    forgotNoMail: "Questo servizio non invia email. Chiedi un link al gestore.",
    back: "Torna all’accesso",
    closed: "Le registrazioni sono chiuse. Chiedi un account al gestore.",
    again: "La tua sessione è scaduta",
    againText: (email) =>
      `Le sessioni durano ${limits.session_hours} ore. Inserisci la password di ${email} per ` +
      "continuare. Il tuo lavoro è salvato.",
    againAction: "Continua",
    otherAccount: "Usa un altro account",
    linked: "Collegato. Ora puoi accedere anche in questo modo.",
    trouble: {
      access_denied: "L’accesso è stato annullato o rifiutato dal provider.",
      domain_not_allowed:
        "Le registrazioni sono chiuse per il dominio della tua email. Chiedi un account al gestore.",
      email_missing: "Il provider non ha fornito la tua email. Un account ne richiede una.",
      email_not_verified:
        "Il provider non indica che la tua email è verificata. Avvisa il gestore, oppure " +
        "accedi come prima e collega questo metodo di accesso nelle impostazioni.",
      email_taken:
        "Esiste già un account con questa email. Accedi come prima o reimposta la password. " +
        "Poi collega questo metodo di accesso nelle impostazioni.",
      identity_taken: "Questa identità è collegata a un altro account.",
      invalid_token: "Questo accesso è scaduto o è iniziato in un altro browser. Riprova.",
      shutting_down: "Il servizio si sta riavviando. Riprova tra poco.",
      signup_closed: "Le registrazioni sono chiuse e non hai un account. Chiedine uno al gestore.",
      storage_unavailable: "Il servizio non può salvare dati in questo momento. Riprova più tardi.",
      other: "Impossibile contattare il provider. Riprova tra poco.",
    },
  },
};
