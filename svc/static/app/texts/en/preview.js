// English texts of previews.
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  preview: {
    title: "Preview",
    frame: "Content of the preview",
    kinds: { html: "HTML", svg: "SVG", mermaid: "Mermaid" },
    save: "Save as artifact",
    saved: (name) => `Saved “${name}” as an artifact`,
    show: "Show",
    fullScreen: "Full screen",
    note: "The content has no access to the network or your account.",
    failed: "The diagram has an error:",
    left: "The content tried to load another page. The preview was closed.",
    notLoaded: "The preview could not be loaded.",
  },
};
