"""Watches that no step of the application holds up the event loop: CPU time of this thread, so a busy machine does not
count.

A step is what runs between two waits. It belongs to a request, measured where the application is called. Or it
belongs to a task or callback of the application, known by the context that it inherits. What the test itself computes is none.
"""

import asyncio
import contextlib
import gc
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextvars import ContextVar
from typing import Any

MOST_SECONDS = 0.1  # on a machine that does nothing else

_in_app: ContextVar[bool] = ContextVar("in_app", default=False)


class Watchdog:
    """`stalls` holds what took too long, with its seconds."""

    def __init__(self) -> None:
        self.stalls: list[tuple[str, float]] = []
        self.most_seconds = MOST_SECONDS
        self._collecting_seconds = 0.0
        self._collection_began = 0.0
        self._quickest_seconds = min(_fixed_work() for _ in range(5))

    def _note(self, name: str, took_seconds: float) -> None:
        """Record a stall. CPU time itself grows beside other programs, which share the caches: by up to three times."""
        if took_seconds > self.most_seconds:
            now_seconds = _fixed_work()
            self._quickest_seconds = min(self._quickest_seconds, now_seconds)
            if took_seconds > self.most_seconds * min(now_seconds / self._quickest_seconds, 3):
                self.stalls.append((name, round(took_seconds, 3)))

    def drive(self, coroutine: Awaitable[Any], name: str) -> "_Driven":
        """`coroutine` with each of its steps measured."""
        return _Driven(coroutine, name, self)

    def step(self, name: str, resume: Callable[[Any], Any], value: Any) -> Any:
        """Return `resume(value)`, measured as a step of the application."""
        token = _in_app.set(True)
        began, collected = time.thread_time(), self._collecting_seconds
        try:
            return resume(value)
        finally:
            took = time.thread_time() - began - (self._collecting_seconds - collected)
            _in_app.reset(token)
            self._note(name, took)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Measures the callbacks and tasks of the application while the block runs."""
        self.most_seconds = MOST_SECONDS  # a test may set less
        run = asyncio.Handle._run

        def measured(handle: asyncio.Handle) -> None:
            if not handle._context.get(_in_app):  # type: ignore[attr-defined]
                run(handle)
                return
            began, collected = time.thread_time(), self._collecting_seconds
            run(handle)
            took = time.thread_time() - began - (self._collecting_seconds - collected)
            if took > self.most_seconds:
                self._note(repr(getattr(handle._callback, "__self__", handle)), took)

        asyncio.Handle._run = measured  # type: ignore[method-assign]
        gc.callbacks.append(self._collects)
        try:
            yield
        finally:
            asyncio.Handle._run = run  # type: ignore[method-assign]
            gc.callbacks.remove(self._collects)

    def _collects(self, phase: str, info: dict[str, int]) -> None:
        # A test process holds ten times the objects of a server: its collections say nothing about the application.
        if phase == "start":
            self._collection_began = time.thread_time()
        else:
            self._collecting_seconds += time.thread_time() - self._collection_began


def _fixed_work() -> float:
    """Return the CPU time of some milliseconds of work that is always the same."""
    began, seen = time.thread_time(), dict[int, str]()
    for number in range(20_000):
        seen[number % 5_000] = str(number)
    return time.thread_time() - began


class _Driven:
    def __init__(self, coroutine: Awaitable[Any], name: str, watchdog: Watchdog) -> None:
        self._coroutine = coroutine
        self._name = name
        self._watchdog = watchdog

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._coroutine.__await__()
        resume: Callable[[Any], Any] = steps.send
        value: Any = None
        while True:
            try:
                waited_for = self._watchdog.step(self._name, resume, value)
            except StopIteration as end:
                return end.value
            try:
                value = yield waited_for
            except BaseException as error:
                resume, value = steps.throw, error
            else:
                resume = steps.send


# One for the process: the tests of a process run one after the other.
WATCHDOG = Watchdog()
