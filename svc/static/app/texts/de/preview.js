// German texts of previews.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  preview: {
    title: "Vorschau",
    frame: "Inhalt der Vorschau",
    kinds: { html: "HTML", svg: "SVG", mermaid: "Mermaid" },
    save: "Als Artefakt speichern",
    saved: (name) => `„${name}“ wurde als Artefakt gespeichert`,
    show: "Anzeigen",
    fullScreen: "Vollbild",
    note: "Der Inhalt hat keinen Zugriff auf das Netz oder dein Konto.",
    failed: "Das Diagramm hat einen Fehler:",
    left: "Der Inhalt wollte eine andere Seite laden. Die Vorschau wurde geschlossen.",
    notLoaded: "Die Vorschau konnte nicht geladen werden.",
  },
};
