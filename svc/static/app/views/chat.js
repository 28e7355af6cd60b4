// Chat.
import { Page } from "../components.js";
import { html } from "../html.js";
import { texts } from "../texts.js";

export default function Chat() {
  return html`<${Page} title=${texts.views.chat} />`;
}
