// Icons as paths on a 24 × 24 grid: <${Icon} name="trash" />. Screen readers ignore them.
import { html } from "./html.js";

const PATHS = {
  agents:
    "M12 3v3M5 9a2 2 0 0 1 2-2h10a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2zM9.5 12v1.5" +
    "M14.5 12v1.5M2.5 11.5v3M21.5 11.5v3M9 21h6",
  archive: "M4 5h16v4H4zM6 9v9a1 1 0 0 0 1 1h10a1 1 0 0 0 1-1V9M10 13h4",
  artifacts: "M14 3H7a2 2 0 0 0-2 2v14a2 2 0 0 0 2 2h10a2 2 0 0 0 2-2V8zM14 3v5h5M9 13h6M9 17h4",
  attach: "M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.4 3.4 0 0 1 4.8 4.8l-8.3 8.3a1.7 1.7 0 0 1-2.4-2.4l7.6-7.6",
  back: "M15 5l-7 7 7 7",
  chat: "M4 6a2 2 0 0 1 2-2h12a2 2 0 0 1 2 2v9a2 2 0 0 1-2 2H9l-5 4z",
  check: "M5 12.5l4.5 4.5L19 7.5",
  close: "M6 6l12 12M18 6L6 18",
  copy:
    "M9 9h10a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H9a1 1 0 0 1-1-1V10a1 1 0 0 1 1-1zM16 9V5" +
    "a1 1 0 0 0-1-1H5a1 1 0 0 0-1 1v10a1 1 0 0 0 1 1h3",
  docs: "M5 4h6a2 2 0 0 1 2 2v14a2 2 0 0 0-2-2H5zM21 4h-6a2 2 0 0 0-2 2v14a2 2 0 0 1 2-2h6z",
  down: "M6 9l6 6 6-6",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  edit: "M4 20h4L19 9l-4-4L4 16zM13.5 6.5l4 4",
  external: "M14 4h6v6M20 4l-9 9M18 14v5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1h5",
  eye:
    "M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 15" +
    "a3 3 0 1 0 0-6 3 3 0 0 0 0 6z",
  folder: "M3 6a2 2 0 0 1 2-2h4l2 3h8a2 2 0 0 1 2 2v9a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2z",
  image:
    "M5 4h14a1 1 0 0 1 1 1v14a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V5a1 1 0 0 1 1-1zM4 16" +
    "l4.5-4.5 4 4 3-3L20 17M15 9.2v.1",
  key: "M12 15a4 4 0 1 1-8 0 4 4 0 0 1 8 0zM10.8 12.2L20 3M15.5 7.5l3 3",
  keyboard:
    "M4 6h16a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1zM7 10v.1M10.5 10v.1" +
    "M14 10v.1M17 10v.1M8 14h8",
  memory:
    "M9 4a3 3 0 0 0-3 3 3 3 0 0 0-2 5 3 3 0 0 0 2 5 3 3 0 0 0 6 1V6a2.5 2.5 0 0 0-3-2zM15 4" +
    "a3 3 0 0 1 3 3 3 3 0 0 1 2 5 3 3 0 0 1-2 5 3 3 0 0 1-6 1",
  menu: "M4 7h16M4 12h16M4 17h10",
  mic: "M12 3a3 3 0 0 0-3 3v5a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3zM6 11a6 6 0 0 0 12 0M12 17v4M9 21h6",
  more: "M5 12h.8M11.6 12h.8M18.2 12h.8",
  pause: "M8 5v14M16 5v14",
  pin: "M9 4h6l-1 6 3 3v2H7v-2l3-3zM12 15v6",
  play: "M8 5l11 7-11 7z",
  plus: "M12 5v14M5 12h14",
  provider:
    "M5 4h14a1 1 0 0 1 1 1v5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V5a1 1 0 0 1 1-1zM5 13h14" +
    "a1 1 0 0 1 1 1v5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1v-5a1 1 0 0 1 1-1zM8 7.5v.1M8 16.5v.1",
  retry: "M20 11a8 8 0 1 0-2 6.3M20 5v6h-6",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4",
  send: "M12 19V5M6 11l6-6 6 6",
  settings:
    "M4 7h9M17 7h3M4 17h3M11 17h9M15 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM9 19.5" +
    "a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z",
  signOut: "M10 4H6a1 1 0 0 0-1 1v14a1 1 0 0 0 1 1h4M14 8l4 4-4 4M18 12H9",
  sound: "M4 10v4h3.5L12 18V6L7.5 10zM16 9a4 4 0 0 1 0 6M18.5 6.5a8 8 0 0 1 0 11",
  stop: "M7.5 7.5h9v9h-9z",
  support:
    "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM9.5 9.5a2.5 2.5 0 1 1 3.6 2.2c-.7.4-1.1.9-1.1 1.8M12 16.8v.1",
  tools:
    "M14.5 6.5a4 4 0 0 1 5-3.8l-2.6 2.6.5 2.3 2.3.5 2.6-2.6a4 4 0 0 1-5.2 5L8.6 19a2.3 2.3 0 0 1-3.3-3.3" +
    "l8.5-8.5z",
  theme: "M12 4a8 8 0 1 0 8 8 6 6 0 0 1-8-8z",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
  upload: "M12 16V5M7 9l5-5 5 5M5 20h14",
  user: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20c1-3.5 4-5 7.5-5s6.5 1.5 7.5 5",
  wallet:
    "M4 7a2 2 0 0 1 2-2h11v3M4 7a2 2 0 0 0 2 2h13a1 1 0 0 1 1 1v8a1 1 0 0 1-1 1H6a2 2 0 0 1-2-2zM16.5 14v.1",
  warning: "M12 4l9 16H3zM12 10v4M12 17v.1",
};

export function Icon({ name, size = 20 }) {
  return html`<svg
    class=${name === "back" ? "icon icon-directed" : "icon"}
    width=${size}
    height=${size}
    viewBox="0 0 24 24"
    aria-hidden="true"
    focusable="false"
  ><path d=${PATHS[name]} /></svg>`;
}
