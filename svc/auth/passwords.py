"""Password hashes: argon2id off the event loop, on few threads, with a bounded number waiting and a share for logins.

login     -> its line -> either thread
all else  -> its line -> one of the threads at most: sign-ups, resets and deletions never take the last one from a login
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from svc.errors import ApiError

if TYPE_CHECKING:
    from argon2 import PasswordHasher

T = TypeVar("T")
_THREADS = 2  # so that the event loop keeps a core
_WAITING = 50  # in each line: some five seconds of work


class Passwords:
    """Used inside one event loop. `waiting` is how many may wait in each of the two lines; a new one beyond puts out the oldest,
    whose caller has waited long enough to be gone."""

    def __init__(self, memory_kib: int, time_cost: int, waiting: int = _WAITING) -> None:
        self._memory_kib, self._time_cost = memory_kib, time_cost
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="argon2")
        self._most_waiting = waiting
        self._logins = _Line(_THREADS)
        self._others = _Line(_THREADS - 1)
        # What has this form and these costs takes as long to verify as any hash; no password is known to give only zeros.
        self._nobody = f"$argon2id$v=19$m={memory_kib},t={time_cost},p=1${'A' * 22}${'A' * 43}"

    @cached_property
    def _hasher(self) -> "PasswordHasher":
        from argon2 import PasswordHasher  # late: a start would wait for it

        return PasswordHasher(time_cost=self._time_cost, memory_cost=self._memory_kib, parallelism=1)

    async def hash(self, password: str) -> str:
        """The hash to store of a password. Raises ApiError `overloaded` when too many wait."""
        return await self._run(self._others, lambda: self._hasher.hash(password))

    async def matches(self, password: str, stored: str | None, *, login: bool = True) -> bool:
        """Whether `password` is the one behind `stored`; takes as long when there is none, so that nobody learns which it was.

        Raises ApiError `overloaded` when too many wait.
        """
        return await self._run(self._logins if login else self._others, lambda: self._verify(password, stored))

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _verify(self, password: str, stored: str | None) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError

        try:
            self._hasher.verify(stored or self._nobody, password)
        except (VerificationError, InvalidHashError):
            return False
        return stored is not None

    async def _run(self, line: "_Line", work: Callable[[], T]) -> T:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.waiting.append(turn)
        self._give_turns()
        if len(line.waiting) > self._most_waiting:
            _end(line.waiting.popleft(), ApiError("overloaded", "Too many people sign in at this moment. Try again shortly."))
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled() and turn.exception() is None:  # it came with the cancellation
                self._take_back(line)
            raise
        running = asyncio.get_running_loop().run_in_executor(self._pool, work)
        # The thread is free when its work is done, whatever has become of its caller.
        running.add_done_callback(lambda _: self._take_back(line))
        return await asyncio.shield(running)

    def _take_back(self, line: "_Line") -> None:
        line.running -= 1
        self._give_turns()

    def _give_turns(self) -> None:
        for line in (self._others, self._logins):
            while line.waiting and line.running < line.share and self._logins.running + self._others.running < _THREADS:
                turn = line.waiting.popleft()
                if not turn.done():  # its caller was cancelled
                    turn.set_result(None)
                    line.running += 1


class _Line:
    """Those of one kind that wait, the oldest first, and how many threads they have and may have."""

    def __init__(self, share: int) -> None:
        self.share = share
        self.running = 0
        self.waiting: deque[asyncio.Future[Any]] = deque()


def _end(turn: "asyncio.Future[Any]", error: ApiError) -> None:
    if not turn.done():
        turn.set_exception(error)
