// The scroll position of a chat: it follows the answer at the end, and does not move elsewhere. Searched
// words are highlighted.
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { search } from "./conversation-list.js";

const MARKED_EVERY_MS = 300;
const AT_END_PX = 60;
const NEAR_TOP_PX = 1_500;

/** Keep the scroll position. At the end, follow the answer; elsewhere, do not move. */
export function useReadingPlace(column, thread) {
  const away = useSignal(false),
    following = useRef(true),
    before = useRef(null);
  const toEnd = () => {
    const box = column.current;
    if (box) box.scrollTop = box.scrollHeight;
  };
  // Scroll anchoring of the browser keeps messages in place when those above get their real heights. While an
  // answer grows at the end, it is off, because it is slow at each paint.
  const isGrowing = thread.live.value !== null;
  const hold = () =>
    column.current?.classList.toggle("following", following.current && thread.live.peek() !== null);
  useLayoutEffect(() => {
    hold();
  }, [isGrowing]);
  useEffect(() => {
    const box = column.current;
    if (!box) return undefined;
    hold();
    let last = box.scrollTop;
    const onScroll = () => {
      const left = box.scrollHeight - box.scrollTop - box.clientHeight;
      if (box.scrollTop < last - 2) following.current = left < 4;
      else if (left < AT_END_PX) following.current = true;
      hold();
      last = box.scrollTop;
      away.value = left > 300;
      if (box.scrollTop < NEAR_TOP_PX && !following.current) thread.loadOlder().catch(() => {});
    };
    const grown = new ResizeObserver(() => {
      if (following.current) toEnd();
    });
    box.addEventListener("scroll", onScroll, { passive: true });
    grown.observe(box);
    const watch = new MutationObserver(() => {
      for (const child of box.children) grown.observe(child);
    });
    watch.observe(box, { childList: true });
    for (const child of box.children) grown.observe(child);
    return () => {
      box.removeEventListener("scroll", onScroll);
      grown.disconnect();
      watch.disconnect();
    };
  }, [thread, thread.failed.value]);
  // Loading messages above keeps the distance to the end.
  const first = thread.messages.value?.[0]?.id;
  if (column.current && before.current?.first !== first)
    before.current = {
      first,
      fromEnd: column.current.scrollHeight - column.current.scrollTop,
      was: before.current?.first,
    };
  useLayoutEffect(() => {
    const box = column.current;
    if (!box) return;
    if (following.current) toEnd();
    else if (before.current?.was && thread.messages.peek().some(({ id }) => id === before.current.was))
      box.scrollTop = box.scrollHeight - before.current.fromEnd;
  }, [first]);
  useEffect(() => highlightFound(column.current, thread), [thread.messages.value, search.value]);
  return useMemo(
    () => ({
      away,
      follow() {
        following.current = true;
        hold();
        requestAnimationFrame(toEnd);
      },
      async show(messageId) {
        following.current = false;
        hold();
        if (!(await thread.loadBackTo(messageId).catch(() => false))) return;
        const message = () => column.current?.querySelector(`[data-id="${CSS.escape(messageId)}"]`);
        // Twice, because off-screen content gets its real size only after the first scroll.
        requestAnimationFrame(() => {
          message()?.scrollIntoView({ block: "center" });
          requestAnimationFrame(() => message()?.scrollIntoView({ block: "center" }));
        });
      },
    }),
    [thread],
  );
}

/** Highlight the searched words, also in content that is drawn later. */
function highlightFound(box, thread) {
  if (!globalThis.Highlight || !box) return undefined;
  CSS.highlights.delete("found");
  const words = search.peek().toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length || !thread.messages.peek()?.length) return undefined;
  let timer = 0;
  const drawn = new MutationObserver(() => {
    timer ||= setTimeout(() => {
      timer = 0;
      mark(box, words);
    }, MARKED_EVERY_MS);
  });
  drawn.observe(box, { childList: true, subtree: true });
  mark(box, words);
  return () => {
    clearTimeout(timer);
    drawn.disconnect();
    CSS.highlights.delete("found");
  };
}

function mark(box, words) {
  const ranges = [],
    walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < 1000; node = walker.nextNode()) {
    const text = /** @type {Text} */ (node).data.toLowerCase();
    for (const word of words) {
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        if (at > 0 && /[\p{L}\p{N}]/u.test(text[at - 1])) continue;
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
        ranges.push(range);
      }
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}
