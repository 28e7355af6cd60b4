"""What a page costs its main thread, in milliseconds of CPU time on an idle machine.

CPU time leaves out other programs, but they share the core's units and caches. The same work then takes two or three
times as long. So the page does work of known cost right before and after the measurement. All times are divided by the
slowdown of that work. The divisor has a limit: a page that does far too much fails on a busy machine, too.
"""

import json
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Page

KNOWN_MS = 20.0  # what one turn of _WORK takes on two quiet cores of the kind that runs the tests
MOST_SLOWNESS = 3.0
TRIES = 3
_CATEGORIES = ["disabled-by-default-devtools.timeline", "blink.user_timing", "__metadata"]
_MARK = "work of known cost"
_WORK = """mark => new Promise(resolve => {
    let left = 3;
    const turn = () => {
        performance.mark(mark);
        const box = document.createElement("div"), list = document.createElement("ul");
        box.style.cssText = "all: initial; position: fixed; width: 600px; height: 400px; contain: strict; visibility: hidden";
        for (let number = 0; number < 300; number++) {
            const item = document.createElement("li"), bold = document.createElement("b"), code = document.createElement("i");
            bold.textContent = `bold ${number}`;
            code.textContent = `other ${number}`;
            item.append(`an item ${number} with `, bold, " text and ", code, " and more words");
            list.append(item);
        }
        box.append(list);
        document.body.append(box);
        box.offsetHeight;
        box.remove();
        --left ? setTimeout(turn, 5) : resolve();
    };
    setTimeout(turn);
})"""


@dataclass
class Spent:
    """`tasks` of the main thread in milliseconds as on an idle machine, the longest first; `slowness`
    is the machine's.
    """

    tasks: list[float] = field(default_factory=list)
    slowness: float = 1.0

    @property
    def longest(self) -> float:
        return self.tasks[0]

    @property
    def total(self) -> float:
        return sum(self.tasks)

    def __repr__(self) -> str:
        return f"<{self.total:.0f} ms, at most {[round(task, 1) for task in self.tasks[:5]]}, slowness {self.slowness:.2f}>"


@asynccontextmanager
async def measured(page: Page) -> AsyncIterator[Spent]:
    """Measure the main thread within the block. The object is filled at the end."""
    browser = page.context.browser
    assert browser is not None
    spent = Spent()
    await browser.start_tracing(page=page, categories=_CATEGORIES)
    try:
        await page.evaluate(_WORK, _MARK)
        yield spent
        await page.evaluate(_WORK, _MARK)
    finally:
        trace = json.loads(await browser.stop_tracing())["traceEvents"]
    known, others = _tasks(trace)
    spent.slowness = min(max(statistics.median(known) / KNOWN_MS, 1.0), MOST_SLOWNESS)
    spent.tasks = sorted((milliseconds / spent.slowness for milliseconds in others), reverse=True)


def _tasks(trace: list[dict[str, Any]]) -> tuple[list[float], list[float]]:
    """Return the CPU milliseconds of the main thread's tasks: those with the work of known cost, and the others."""
    main = {(event["pid"], event["tid"]) for event in trace if event.get("args", {}).get("name") == "CrRendererMain"}
    ours = [event for event in trace if (event["pid"], event["tid"]) in main]
    marks = [event["ts"] for event in ours if event["name"] == _MARK]
    known: list[float] = []
    others: list[float] = []
    for task in ours:
        if task["name"] == "RunTask" and "tdur" in task:
            is_known = any(task["ts"] <= mark <= task["ts"] + task["dur"] for mark in marks)
            (known if is_known else others).append(task["tdur"] / 1000)
    return known, others


async def holds(promise: Callable[[Spent], bool], measure: Callable[[], Awaitable[Spent]]) -> None:
    """Pass as soon as one of three measurements is below the limit: a fault of the page returns each time."""
    seen: list[Spent] = []
    while len(seen) < TRIES:
        seen.append(await measure())
        if promise(seen[-1]):
            return
    raise AssertionError(seen)
