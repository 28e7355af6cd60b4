import { limits } from "../../limits.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  support: {
    intro: "Scrivi al gestore di questo servizio. Puoi avere una conversazione aperta.",
    pro: "L’assistenza fa parte di Pro",
    proText: `Ricarica almeno ${limits.least_dollars} USD per avere Pro.`,
    oneActive: "Hai una conversazione aperta.",
    open: "Aprila",
    earlier: "Conversazioni",
    none: "Ancora nessuna conversazione.",
    untitled: "Nessun oggetto",
    statuses: { active: "Aperta", closed: "Chiusa" },
    subject: "Oggetto (facoltativo)",
    message: "Messaggio",
    messages: "Messaggi",
    send: "Invia",
    back: "Tutte le conversazioni",
    roles: { user: "Tu", operator: "Gestore" },
    close: "Chiudi conversazione",
    closeTitle: "Chiudere questa conversazione?",
    closeText: "Potrai ancora leggerla e iniziarne una nuova.",
    closed: "Questa conversazione è chiusa.",
  },
};
