// The dialog with the keyboard shortcuts.
import { Dialog } from "./components.js";
import { html } from "./html.js";
import { texts } from "./texts.js";
import { shortcutTexts } from "./texts/en/shortcuts.js";

/** `opened`: a signal that is false when the dialog is closed. */
export default function Shortcuts({ opened }) {
  const close = () => {
    opened.value = false;
  };
  return html`<${Dialog} title=${texts.shell.shortcuts} onClose=${close}>
    <dl class="keys">
      ${shortcutTexts.map(
        ([what, ...keys]) => html`<div>
          <dt>${what}</dt>
          <dd>${keys.map((key, at) => html`${at > 0 && " / "}<kbd>${key}</kbd>`)}</dd>
        </div>`,
      )}
    </dl>
  <//>`;
}
