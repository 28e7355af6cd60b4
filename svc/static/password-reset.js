// Set a new password with the one-time token in the fragment of the link.

const texts = JSON.parse(document.getElementById("texts").textContent);
const form = document.querySelector("form");
const [first, second, deleteKeys] = form.querySelectorAll("input");
// The suffix of a token for an account with an unverified address: its API keys may belong to a stranger
const UNVERIFIED = "u";
const button = form.querySelector("button");
const alertBox = document.querySelector("[role=alert]");
const statusBox = document.querySelector("[role=status]");
let token = "";

// Where passwords are disabled, the link signs in.
const signsIn = form.dataset.passwords === "off";
if (signsIn) {
  document.querySelector("h1").textContent = texts.sign_in;
  button.textContent = texts.sign_in;
  for (const field of [first, second]) {
    field.disabled = true;
    field.parentElement.hidden = true;
  }
}

function show(box, text) {
  alertBox.textContent = "";
  statusBox.textContent = "";
  box.textContent = text;
}

// Remove the token from the address bar at once, and so from history and screenshots.
function takeToken() {
  token = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  deleteKeys.checked = token.endsWith(UNVERIFIED);
  form.hidden = !token;
  button.disabled = !token;
  show(alertBox, token ? "" : texts.incomplete);
}

/** Store the session as the application does (svc/static/app/api.js) and open it. */
function enter({ access_token: accessToken, expires_in: seconds, user }) {
  localStorage.clear();
  sessionStorage.clear();
  const session = { token: accessToken, expiresAt: Date.now() + seconds * 1000, user };
  localStorage.setItem("svc.session", JSON.stringify(session));
  location.replace("/");
}

/** Return the message to show and whether the link was used. */
async function confirmReset(password) {
  try {
    const answer = await fetch("/auth/password-reset/confirm", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token, ...(!signsIn && { password }), delete_keys: deleteKeys.checked }),
    });
    if (answer.status === 200) {
      enter(await answer.json());
      return { done: true, message: texts.signed_in };
    }
    if (answer.status === 204) return { done: true, message: texts.changed };
    const { code, message } = (await answer.json()).error;
    return { done: false, message: texts.errors[code] ?? message };
  } catch {
    return { done: false, message: texts.unreachable };
  }
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (first.value !== second.value) {
    show(alertBox, texts.differ);
    second.focus();
    return;
  }
  button.disabled = true;
  show(statusBox, "");
  const { done, message } = await confirmReset(first.value);
  button.disabled = done;
  form.hidden = done;
  show(done ? statusBox : alertBox, message);
  if (done) form.reset();
});

addEventListener("hashchange", takeToken);
takeToken();

export {};
