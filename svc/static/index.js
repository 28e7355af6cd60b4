// The start page: its commands name the address under which it was opened, and can be copied.
import { withCopyButton } from "./page.js";

for (const place of document.querySelectorAll("[data-origin]")) place.textContent = location.origin;
for (const pre of document.querySelectorAll("pre")) {
  const place = document.createComment("");
  pre.replaceWith(place);
  place.replaceWith(withCopyButton(pre));
}
