// Data that is loaded again and again while it is shown.
import { useEffect } from "preact/hooks";

/**
 * Load now, and then every `milliseconds` while `wanted()` is true. A hidden page does not load; it
 * loads when it is shown again.
 */
export function usePolling(load, milliseconds, wanted = () => true) {
  useEffect(() => {
    load();
    const look = () => {
      if (!document.hidden && wanted()) load();
    };
    const timer = setInterval(look, milliseconds);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, []);
}
