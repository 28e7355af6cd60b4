"""Rate limits in fixed windows, counted in this process."""

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from svc.config import Config
from svc.errors import ApiError

CHAT_PER_MINUTE = {"free": 20, "pro": 120}
# With more callers in one window the oldest are forgotten, which bounds the memory to about 6 MB a rule. An attacker
# with so many addresses gains nothing: each of them has its own limit.
_MOST_CALLERS = 30_000

# Of a window: its limit, the admissions that are left, and the seconds until it ends.
Admission = tuple[int, int, int]


class Window:
    """A fixed window for each caller, which begins with its first admission and ends after `seconds`."""

    def __init__(self, seconds: int, monotonic: Callable[[], float]) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        # The end of each caller's window and its admissions. All windows have the same length, so the first one ends
        # first.
        self._callers: OrderedDict[bytes | str, list[Any]] = OrderedDict()

    def take(self, caller: bytes | str, limit: int) -> Admission:
        """Count one admission of `caller`. Raises ApiError `rate_limit_exceeded` over `limit` in this window."""
        now = self._monotonic()
        window = self._callers.get(caller)
        if window is None or window[0] <= now:
            window = self._begin(caller, now)
        ends, count = window
        reset_seconds = min(math.ceil(ends - now), self._seconds - 1)
        if count >= limit:
            raise ApiError(
                "rate_limit_exceeded",
                f"Too many requests: {limit} in {self._seconds} seconds are allowed. "
                f"Try again in {reset_seconds} seconds.",
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
    """The rate limits, each of which raises ApiError `rate_limit_exceeded`."""

    def __init__(self, config: Config) -> None:
        monotonic = config.monotonic
        self.chat = Window(60, monotonic)  # chats and starts of agent runs, of all keys and sessions of an account
        rules = {  # admissions in so many seconds
            # of an address
            "login": (config.logins_per_minute, 60),
            "signup": (config.signups_per_hour, 3600),
            "password_reset": (config.resets_per_hour, 3600),
            "password_reset_confirm": (10, 60),
            "oauth": (300, 60),  # each step stores something, or sends a request to the provider
            # of an account
            "verify_email": (3, 3600),
            "owner": (5, 60),  # each attempt is a guess at the password
            "change_email": (3, 3600),
            "checkout": (20, 3600),
            "ask_provider": (30, 60),  # connects to a host that the account names
        }
        self._by_rule = {rule: (limit, Window(seconds, monotonic)) for rule, (limit, seconds) in rules.items()}

    def take(self, rule: str, caller: bytes | str) -> Admission:
        """Count one admission of `caller`, the id of an account or the network of an address."""
        limit, window = self._by_rule[rule]
        return window.take(caller, limit)
