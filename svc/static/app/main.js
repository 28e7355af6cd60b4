// Start the page: finish a sign-in with a provider, then show the sign-in form or the shell with the current
// view.
import { computed, effect, signal } from "@preact/signals";
import { Component, render } from "preact";
import { api, session, signedIn } from "./api.js";
import { Failed, Overlays, toast } from "./components.js";
import { html } from "./html.js";
import { Lazy } from "./lazy.js";
import { go, route } from "./router.js";
import { texts } from "./texts.js";
import Shell from "./shell.js";
import Chat from "./views/chat.js";
import "./state.js";
import "./language.js";
import "./identity-providers.js"; // smaller here than as a file of the sign-in form and the settings

/**
 * The module of each view but the chat. Its default export is a component that gets `path` (the rest of the
 * fragment) and `query`.
 * @type {Record<Exclude<import("./router.js").Name, "chat">, () => Promise<{default: Function}>>}
 */
const VIEWS = {
  agents: () => import("./views/agents.js"),
  media: () => import("./views/media.js"),
  artifacts: () => import("./views/artifacts.js"),
  projects: () => import("./views/projects.js"),
  prompts: () => import("./views/prompts.js"),
  keys: () => import("./views/keys.js"),
  providers: () => import("./views/providers.js"),
  wallet: () => import("./views/wallet.js"),
  settings: () => import("./views/settings.js"),
  imports: () => import("./views/imports.js"),
  memory: () => import("./views/memory.js"),
  "tool-servers": () => import("./views/tool-servers.js"),
  support: () => import("./views/support.js"),
  admin: () => import("./views/admin.js"),
  shares: () => import("./views/shares.js"),
  shared: () => import("./views/shared.js"),
};
const RETURN = "svc.return";
const CHECKOUT_RETURN = "svc.checkout-return";
const signInTrouble = signal("");

/** Errors while drawing a view are shown in its place; the rest of the page stays. */
class Guarded extends Component {
  static getDerivedStateFromError = (error) => ({ error });
  componentDidUpdate({ name }) {
    if (name !== this.props.name && this.state.error) this.setState({ error: null });
  }
  render({ children }, { error }) {
    if (!error) return children;
    console.error(error);
    return html`<div class="page">
      <${Failed}
        error=${{ message: texts.common.viewFailed }}
        retry=${() => this.setState({ error: null })}
      />
    </div>`;
  }
}

function App() {
  const { name, path, query } = route.value;
  const view = () =>
    html`<${Lazy} key=${name} name=${name} from=${VIEWS[name]} path=${path} query=${query} />`;
  if (name === "shared" && (session.value || !query.signin)) return html`${view()}<${Overlays} />`;
  if (!session.value)
    return html`
      <${Lazy} name="sign-in" from=${() => import("./views/sign-in.js")} trouble=${signInTrouble} />
      <${Overlays} />
    `;
  return html`
    <${Shell} view=${name}>
      <${Guarded} name=${name}>
        ${name === "chat" ? html`<${Chat} path=${path} query=${query} />` : view()}
      <//>
    <//>
    <${Overlays} />
  `;
}

/**
 * A sign-in with a provider returns here with a one-time code or an error in the fragment, which is removed
 * at once.
 */
async function takeFragment() {
  const paidFrom = sessionStorage.getItem(CHECKOUT_RETURN);
  sessionStorage.removeItem(CHECKOUT_RETURN);
  if (paidFrom && !location.hash) return go(paidFrom, { replace: true });
  const said = new URLSearchParams(location.hash.slice(1));
  if (!["code", "error", "linked"].some((name) => said.has(name))) return;
  go(sessionStorage.getItem(RETURN) ?? "#/chat", { replace: true });
  sessionStorage.removeItem(RETURN);
  const { linked, trouble: known } = (await import("./texts/en/sign-in.js")).texts.signIn;
  if (said.has("linked")) return void toast(linked, { kind: "good" });
  const code = said.get("error");
  if (code) return tellTrouble(`${Object.hasOwn(known, code) ? known[code] : known.other} (${code})`);
  try {
    signedIn(await api.auth.changeCode(said.get("code")));
  } catch (error) {
    tellTrouble(error.message);
  }
}

function tellTrouble(text) {
  if (session.peek()) toast(text, { kind: "bad", seconds: 12 });
  else signInTrouble.value = text;
}

const viewName = computed(() => route.value.name);
effect(() => {
  const title =
    session.value || viewName.value === "shared" ? texts.views[viewName.value] : texts.signIn.signIn;
  document.title = `${title} · ${texts.name}`;
});
addEventListener("hashchange", takeFragment);
// A file that is dropped where no view takes it must not replace the page.
for (const name of ["dragover", "drop"])
  addEventListener(name, (/** @type {DragEvent} */ event) => {
    if (event.defaultPrevented || !event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "none";
  });
takeFragment().then(() => render(html`<${App} />`, document.getElementById("app")));
