"""Password hashes: argon2id in two threads, with bounded queues and a share for logins.

Logins use both threads. Sign-ups, resets and deletions have another queue and use one thread.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from svc.auth.accounts import PASSWORD_LENGTH
from svc.errors import ApiError

if TYPE_CHECKING:
    from argon2 import PasswordHasher

T = TypeVar("T")
_THREADS = 2  # so that the event loop keeps a core
_SHARES = {"other": _THREADS - 1, "login": _THREADS}  # the threads that each kind of call may use, by precedence
_WAITING = 50  # about five seconds of work


class Passwords:
    """Used inside one event loop. A new call in a full queue evicts the oldest, whose caller has probably left.

    Each queue has `waiting` calls at most.
    """

    def __init__(self, memory_kib: int, time_cost: int, waiting: int = _WAITING) -> None:
        self._waiting = waiting
        self._memory_kib, self._time_cost = memory_kib, time_cost
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="argon2")
        self._queues: dict[str, deque[tuple[asyncio.Future[Any], Callable[[], Any]]]] = {
            kind: deque() for kind in _SHARES
        }
        self._running: Counter[str] = Counter()
        # It takes as long to verify as any other hash; no password is known to give only zeros.
        self._no_account = f"$argon2id$v=19$m={memory_kib},t={time_cost},p=1${'A' * 22}${'A' * 43}"

    @cached_property
    def _hasher(self) -> "PasswordHasher":
        from argon2 import PasswordHasher  # late: it is slow to import

        return PasswordHasher(time_cost=self._time_cost, memory_cost=self._memory_kib, parallelism=1)

    async def hash(self, password: str) -> str:
        """Return the hash to store. Raises ApiError `overloaded` if too many calls wait."""
        return await self._run("other", lambda: self._hasher.hash(password))

    async def matches(self, password: str, stored: str | None, *, login: bool = True) -> bool:
        """Return whether `password` has the hash `stored`, in the same time without one. Raises as `hash`."""
        if len(password) > PASSWORD_LENGTH[1]:
            return False
        return await self._run("login" if login else "other", lambda: self._verify(password, stored))

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _verify(self, password: str, stored: str | None) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError

        try:
            self._hasher.verify(stored or self._no_account, password)
        except (VerificationError, InvalidHashError):
            return False
        return stored is not None

    async def _run(self, kind: str, work: Callable[[], T]) -> T:
        turn: asyncio.Future[asyncio.Future[T]] = asyncio.get_running_loop().create_future()
        waiting = self._queues[kind]
        waiting.append((turn, work))
        self._start_next()
        if len(waiting) > self._waiting and not (oldest := waiting.popleft()[0]).done():
            oldest.set_exception(ApiError("overloaded", "Too many people are signing in. Try again shortly."))
        return await asyncio.shield(await turn)

    def _start_next(self) -> None:
        for kind, share in _SHARES.items():
            waiting = self._queues[kind]
            while waiting and self._running[kind] < share and self._running.total() < _THREADS:
                turn, work = waiting.popleft()
                if not turn.done():  # else its caller was cancelled
                    self._running[kind] += 1
                    running = asyncio.get_running_loop().run_in_executor(self._pool, work)
                    # The thread is free when its work is done, even if the caller was cancelled.
                    running.add_done_callback(partial(self._end_turn, kind))
                    turn.set_result(running)

    def _end_turn(self, kind: str, ended: "asyncio.Future[Any]") -> None:
        self._running[kind] -= 1
        self._start_next()
