// Italian texts of previews.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  preview: {
    title: "Anteprima",
    frame: "Contenuto dell’anteprima",
    kinds: { html: "HTML", svg: "SVG", mermaid: "Mermaid" },
    save: "Salva come artefatto",
    saved: (name) => `“${name}” è stato salvato come artefatto`,
    show: "Mostra",
    fullScreen: "Schermo intero",
    note: "Il contenuto non ha accesso alla rete o al tuo account.",
    failed: "Il diagramma contiene un errore:",
    left: "Il contenuto ha tentato di caricare un’altra pagina. L’anteprima è stata chiusa.",
    notLoaded: "Impossibile caricare l’anteprima.",
  },
};
