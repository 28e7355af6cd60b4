// Schedule drawing: some milliseconds per frame, so that the page stays responsive.
import { options } from "preact";

// Script time; layout and paint take several times as long
const FRAME_MS = 1.5;
const waiting = new Set();
let isPlanned = false;

/** Call `draw` in one of the next frames. Returns a function that cancels it. */
export function schedule(draw) {
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
    drawNow(draw);
    if (performance.now() >= end) break;
  }
  plan();
}

/** Preact batches drawing; here it draws at once, so that its time can be measured. */
function drawNow(draw) {
  const usual = options.debounceRendering;
  options.debounceRendering = (render) => render();
  try {
    draw();
  } finally {
    options.debounceRendering = usual;
  }
}
