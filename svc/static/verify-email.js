// Verify an email address with the one-time token in the fragment of the link.

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
  alertBox.textContent = token
    ? ""
    : "This link is incomplete. Open the full link, or resend it in your settings.";
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
    if (answer.ok) statusBox.textContent = "Your email is verified.";
    else alertBox.textContent = (await answer.json()).error.message;
    button.hidden = answer.ok;
  } catch {
    alertBox.textContent = "Cannot reach the server. Check your connection and try again.";
  }
  button.disabled = false;
});

addEventListener("hashchange", takeToken);
takeToken();

export {};
