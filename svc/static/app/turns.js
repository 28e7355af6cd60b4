// Drawing in turns: what there is much of is drawn piece by piece, some milliseconds a frame, so that the
// page never stalls.
import { options } from "preact";

// Of drawing; what the browser then does to lay it out and paint it takes several times as long
const FRAME_MS = 1.5;
const waiting = new Set();
let isPlanned = false;

/**
 * Calls `draw`, which changes what is shown, in one of the next frames. Gives a function that calls it off.
 */
export function takeTurn(draw) {
  waiting.add(draw);
  plan();
  return () => waiting.delete(draw);
}

function plan() {
  if (isPlanned || !waiting.size) return;
  isPlanned = true;
  requestAnimationFrame(run);
}

function run() {
  isPlanned = false;
  const end = performance.now() + FRAME_MS;
  for (const draw of [...waiting]) {
    waiting.delete(draw);
    atOnce(draw);
    if (performance.now() >= end) break;
  }
  plan();
}

/**
 * Preact gathers what is to be drawn and draws it later; here it draws at once, so that its time is known.
 */
function atOnce(draw) {
  const usual = options.debounceRendering;
  options.debounceRendering = (render) => render();
  try {
    draw();
  } finally {
    options.debounceRendering = usual;
  }
}
