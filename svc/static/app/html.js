// Markup as tagged templates: html`<p class="lead">${text}</p>` gives Preact elements. Text is always text, never markup.
import { h } from "preact";
import htm from "htm";

export const html = htm.bind(h);
