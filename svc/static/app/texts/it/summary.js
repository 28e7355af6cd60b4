// Italian texts of the line where the view of the model begins.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  viewLine: {
    label: "Inizio di ciò che il modello legge",
    begins:
      "Il modello legge questa chat da qui in poi. I messaggi precedenti non rientrano nel suo contesto.",
    summarized: "Il modello legge questa chat da qui in poi, con un riassunto dei messaggi precedenti.",
    summarize: "Riassumi i messaggi precedenti",
    again: "Riassumi di nuovo",
    cost: (amount) => `Costa circa ${amount}`,
    summary: "Riassunto",
    edit: "Modifica riassunto",
    remove: "Rimuovi riassunto",
    save: "Salva",
    cancel: "Annulla",
  },
};
