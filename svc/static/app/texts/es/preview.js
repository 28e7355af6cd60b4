// Spanish texts of previews.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  preview: {
    title: "Vista previa",
    frame: "Contenido de la vista previa",
    kinds: { html: "HTML", svg: "SVG", mermaid: "Mermaid" },
    save: "Guardar como artefacto",
    saved: (name) => `Se guardó “${name}” como artefacto`,
    show: "Mostrar",
    fullScreen: "Pantalla completa",
    note: "El contenido no tiene acceso a la red ni a tu cuenta.",
    failed: "El diagrama tiene un error:",
    left: "El contenido intentó cargar otra página. La vista previa se cerró.",
    notLoaded: "No se pudo cargar la vista previa.",
  },
};
