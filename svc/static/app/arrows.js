// Arrow keys that move along a line of text.

/** Return 1 for the arrow key that moves forward, -1 for the one that moves back, and 0 for other keys. */
export function stepOf({ key }) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[key] ?? 0;
  return document.dir === "rtl" ? -step : step;
}
