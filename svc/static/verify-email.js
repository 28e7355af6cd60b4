// Verify an email address with the one-time token in the fragment of the link.

const texts = JSON.parse(document.getElementById("texts").textContent);
const button = document.querySelector("button");
const alertBox = document.querySelector("[role=alert]");
const statusBox = document.querySelector("[role=status]");
let token = "";

// Remove the token from the address bar at once, and so from history and screenshots.
function takeToken() {
  token = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  button.hidden = !token;
  statusBox.textContent = "";
  alertBox.textContent = token ? "" : texts.incomplete;
}

button.addEventListener("click", async () => {
  button.disabled = true;
  alertBox.textContent = "";
  try {
    const answer = await fetch("/auth/verify-email", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token }),
    });
    if (answer.ok) statusBox.textContent = texts.verified;
    else {
      const { code, message } = (await answer.json()).error;
      alertBox.textContent = texts.errors[code] ?? message;
    }
    button.hidden = answer.ok;
  } catch {
    alertBox.textContent = texts.unreachable;
  }
  button.disabled = false;
});

addEventListener("hashchange", takeToken);
takeToken();

export {};
