// What waits until it comes near the screen: long conversations and long texts cost what can be seen of them.
import { takeTurn } from "./turns.js";

const waiting = new Map(); // element -> what is done once it is near
const watcher = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      const act = waiting.get(target);
      waiting.delete(target);
      if (act) takeTurn(act);
    }
  },
  { rootMargin: "1500px", scrollMargin: "1500px" },
);

/** Calls `act`, which draws it, once `element` is near the screen. Gives a function that calls it off. */
export function whenNear(element, act) {
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
