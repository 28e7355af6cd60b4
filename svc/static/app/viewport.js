// Delay drawing until an element is near the screen, so that long conversations cost no more than their
// visible part.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { schedule } from "./scheduler.js";

const waiting = new Map(); // element -> callback
const watcher = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      const act = waiting.get(target);
      waiting.delete(target);
      if (act) schedule(act);
    }
  },
  { rootMargin: "1500px", scrollMargin: "1500px" },
);

/** Call `act` when `element` is near the screen. Returns a function that cancels it. */
export function whenVisible(element, act) {
  if (!element) return () => {}; // the view has changed before
  let gone = false;
  waiting.set(element, () => {
    if (!gone) act();
  });
  watcher.observe(element);
  return () => {
    gone = true;
    waiting.delete(element);
    watcher.unobserve(element);
  };
}

/** Whether the element of `box` is or was near the screen. Draws the component again then. */
export function useNear(isNear) {
  const near = useSignal(isNear),
    box = useRef(null);
  useEffect(
    () =>
      near.peek()
        ? undefined
        : whenVisible(box.current, () => {
            near.value = true;
          }),
    [],
  );
  return { near: near.value, box };
}
