// Markup as tagged templates: html`<p class="lead">${text}</p>` returns Preact elements. Text is never
// parsed as markup.
import { Component, h } from "preact";
import htm from "htm";

export const html = htm.bind(h);

/** A component that is drawn again only if one of its properties or signals has changed. */
export function memo(component) {
  return class extends Component {
    shouldComponentUpdate(next) {
      return [...new Set([...Object.keys(this.props), ...Object.keys(next)])].some(
        (name) => next[name] !== this.props[name],
      );
    }

    render(props) {
      return h(component, props);
    }
  };
}
