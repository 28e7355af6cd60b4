// An image artifact, loaded with the session token and cached in memory.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { html } from "./html.js";
import { Icon } from "./icons.js";
import { pictureOf } from "./pictures.js";
import { link } from "./router.js";

export function Picture({ id, name }) {
  const url = useSignal(null),
    gone = useSignal(false);
  useEffect(() => {
    let made = null,
      left = false;
    pictureOf(id).then(
      (blob) => {
        if (left) return;
        if (blob.type.startsWith("image/") && blob.type !== "image/svg+xml")
          url.value = made = URL.createObjectURL(blob);
        else gone.value = true;
      },
      () => {
        gone.value = true;
      },
    );
    return () => {
      left = true;
      if (made) URL.revokeObjectURL(made);
    };
  }, [id]);
  if (gone.value) return html`<span class="picture-gone"><${Icon} name="image" size=${18} />${name}</span>`;
  return html`<a class="picture" href=${link("artifacts", id)}>
    ${url.value ? html`<img src=${url.value} alt=${name} />` : html`<span class="picture-wait"></span>`}
  </a>`;
}
