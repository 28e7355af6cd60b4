"""Fixed rate-limit windows, and what an account may have open at once, counted in this process."""

import contextlib
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from svc.errors import ApiError
from svc.server.body_budget import network_of

CHAT_PER_MINUTE = {"free": 20, "pro": 120}
# Beyond so many callers in one window the oldest are forgotten. Who has that many addresses gains nothing by it: each of
# them had its own allowance anyway. It bounds the memory (about 6 MB a rule).
_MOST_CALLERS = 30_000


# What a window still allows: how many admissions in all, how many are left of them, and the seconds until it ends.
Admission = tuple[int, int, int]


class Window:
    """A fixed window per caller: at most `limit` admissions from a caller's first one until `seconds` later."""

    def __init__(self, seconds: int, monotonic: Callable[[], float]) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        # When the window of each ends, and how many it had. All windows are as long: first in, first over.
        self._callers: OrderedDict[bytes | str, list[Any]] = OrderedDict()

    def take(self, caller: bytes | str, limit: int) -> Admission:
        """Counts one admission of `caller`. Raises ApiError `rate_limit_exceeded` when it had `limit` in this window."""
        now = self._monotonic()
        window = self._callers.get(caller)
        if window is None or window[0] <= now:
            window = self._begin(caller, now)
        ends, count = window
        reset_seconds = min(math.ceil(ends - now), self._seconds - 1)
        if count >= limit:
            raise ApiError(
                "rate_limit_exceeded",
                f"Too many requests: {limit} in {self._seconds} seconds are allowed. Try again in {reset_seconds} seconds.",
                retry_after_seconds=reset_seconds,
            )
        window[1] = count + 1
        return limit, limit - count - 1, reset_seconds

    def _begin(self, caller: bytes | str, now: float) -> list[Any]:
        callers = self._callers
        while callers and next(iter(callers.values()))[0] <= now:
            callers.popitem(last=False)
        if len(callers) >= _MOST_CALLERS:
            callers.popitem(last=False)
        window = callers[caller] = [now + self._seconds, 0]
        return window


class Limits:
    """The service's limits."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._chat = Window(60, monotonic)
        self._by_rule = {
            "login": (5, Window(60, monotonic)),
            "signup": (10, Window(3600, monotonic)),
            "password_reset": (3, Window(3600, monotonic)),
            "password_reset_confirm": (10, Window(60, monotonic)),
            "oauth": (300, Window(60, monotonic)),  # each step stores something, or asks the provider
        }

        self._by_account = {
            "verify_email": (3, Window(3600, monotonic)),
            "delete_account": (5, Window(60, monotonic)),  # each try is a guess at the password
            "checkout": (20, Window(3600, monotonic)),
            "ask_provider": (30, Window(60, monotonic)),  # it makes the service connect where the account says
        }

    def take_chat(self, account_id: str, tier: str) -> Admission:
        """One admission from the account's chat bucket, shared by its keys, sessions and agent starts."""
        return self._chat.take(account_id, CHAT_PER_MINUTE[tier])

    def take_by_ip(self, rule: str, address: str) -> Admission:
        """One admission of a client address under `login`, `signup`, `password_reset`, `password_reset_confirm` or `oauth`."""
        limit, window = self._by_rule[rule]
        return window.take(network_of(address), limit)

    def take_by_account(self, rule: str, account_id: str) -> Admission:
        """One admission of an account under `verify_email`, `delete_account`, `checkout` or `ask_provider`."""
        limit, window = self._by_account[rule]
        return window.take(account_id, limit)


class AtOnce:
    """At most `most` of something (`what`, in the plural) open at once for each account."""

    def __init__(self, most: int, what: str) -> None:
        self._most = most
        self._what = what
        self._open: Counter[str] = Counter()

    @contextlib.contextmanager
    def taken(self, account_id: str) -> Iterator[None]:
        """Counts one while the block runs. Raises ApiError `rate_limit_exceeded` when the account has too many."""
        if self._open[account_id] >= self._most:
            message = f"This account has {self._most} {self._what} open. Read one to its end first."
            raise ApiError("rate_limit_exceeded", message, retry_after_seconds=1)
        self._open[account_id] += 1
        try:
            yield
        finally:
            self._open[account_id] -= 1
            if not self._open[account_id]:
                del self._open[account_id]
