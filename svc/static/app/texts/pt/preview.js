// Portuguese texts of previews.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  preview: {
    title: "Prévia",
    frame: "Conteúdo da prévia",
    kinds: { html: "HTML", svg: "SVG", mermaid: "Mermaid" },
    save: "Salvar como artefato",
    saved: (name) => `“${name}” foi salvo como artefato`,
    show: "Mostrar",
    fullScreen: "Tela cheia",
    note: "O conteúdo não tem acesso à rede nem à sua conta.",
    failed: "O diagrama tem um erro:",
    left: "O conteúdo tentou carregar outra página. A prévia foi fechada.",
    notLoaded: "Não foi possível carregar a prévia.",
  },
};
