// Signing in with other providers on the start page: their links, and what the fragment says when one has sent people back.
import { codeBlock, el } from "./page.js";

const alertBox = document.querySelector("[role=alert]");
const statusBox = document.querySelector("[role=status]");
const TROUBLE = {
  access_denied: "You were not signed in: the provider says that you, or it, refused.",
  email_missing: "The provider told no e-mail address of yours, and an account needs one.",
  email_taken:
    "There is an account with this e-mail already. Sign in with its password, then link this way of signing in in your settings.",
  identity_taken: "This identity is linked to another account.",
  invalid_token: "This sign-in took too long, was used before, or began in another browser. Begin it again.",
  shutting_down: "The service is just being restarted. Try again in a moment.",
  signup_closed: "There is no account for you here, and sign-up is closed. Ask the operator for one.",
  storage_unavailable: "The service cannot write to its storage. Try again later.",
};

/** The message to show of an `error` in the fragment: only texts of ours, whatever stands there. */
function troubleOf(code) {
  return Object.hasOwn(TROUBLE, code) ? TROUBLE[code] : "The provider could not be reached, or gave no proper answer. Try again in a moment.";
}

async function changeCode(code) {
  try {
    const answer = await fetch("/auth/oauth/session", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ code }),
    });
    const body = await answer.json();
    if (!answer.ok) {
      alertBox.textContent = body.error.message;
      return;
    }
    statusBox.append(
      el("p", {}, `You are signed in as ${body.user.email}. This is your session token, valid for 8 hours:`),
      codeBlock(body.access_token, "Session token"),
    );
  } catch {
    alertBox.textContent = "The service did not answer. Check your connection and begin the sign-in again.";
  }
}

// The code leaves the address bar at once, and with it the history and any screenshot.
async function readFragment() {
  const said = new URLSearchParams(location.hash.slice(1));
  if (!["code", "error", "linked"].some((name) => said.has(name))) return;
  history.replaceState(null, "", location.pathname);
  alertBox.replaceChildren();
  statusBox.replaceChildren();
  if (said.has("error")) alertBox.textContent = troubleOf(said.get("error"));
  else if (said.has("linked")) statusBox.textContent = "Linked. From now on you can sign in this way, too.";
  else await changeCode(said.get("code"));
}

async function showProviders() {
  const answer = await fetch("/auth/oauth");
  const providers = answer.ok ? (await answer.json()).data : [];
  const links = providers.map(({ provider, url }) => el("a", { href: url }, `Sign in with ${provider}`));
  const place = document.querySelector("[data-providers]");
  place.replaceChildren(...links.flatMap((link) => [link, " "]));
  place.hidden = links.length === 0;
}

addEventListener("hashchange", readFragment);
readFragment();
showProviders();
