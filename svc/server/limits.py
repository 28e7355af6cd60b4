"""Rate limits in fixed windows, and limits on the memory of request bodies, counted in this process."""

import ipaddress
import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from svc.config import Config
from svc.errors import ApiError
from svc.server.http.head import Context

KIB = 1024
MIB = 1024 * 1024
# A body of this size is never refused. Each connection also buffers so much of an unread body, so their number is the
# limit.
SMALL_BYTES = 64 * KIB
_BUDGET_BYTES = 192 * MIB
_SHARE_BYTES = 64 * MIB  # of one address or account: more than the largest body that any path accepts
CHAT_PER_MINUTE = {"free": 20, "pro": 120}
# With more callers in one window the oldest are forgotten, which bounds the memory to about 6 MB a rule. An attacker
# with so many addresses gains nothing: each of them has its own limit.
_MOST_CALLERS = 30_000


def network_of(address: str) -> bytes:
    """Return the key by which a client's address is counted: an IPv4 address (mapped, too), or an IPv6 /64."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return b"unknown"
    if isinstance(parsed, ipaddress.IPv4Address):
        return parsed.packed
    return parsed.ipv4_mapped.packed if parsed.ipv4_mapped else parsed.packed[:8]


class Window:
    """A fixed window for each caller, which begins with its first admission and ends after `seconds`."""

    def __init__(self, seconds: int, monotonic: Callable[[], float]) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        # The end of each caller's window and its admissions. All windows have the same length, so the first one ends
        # first.
        self._callers: OrderedDict[bytes | str, list[Any]] = OrderedDict()

    def take(self, caller: bytes | str, limit: int) -> tuple[int, int, int]:
        """Count one admission of `caller`. Raises ApiError `rate_limit_exceeded` over `limit` in this window.

        Return the limit, the admissions that are left, and the seconds until the window ends.
        """
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
        while callers and (len(callers) >= _MOST_CALLERS or next(iter(callers.values()))[0] <= now):
            callers.popitem(last=False)
        window = callers[caller] = [now + self._seconds, 0]
        return window


class Limits:
    """The rate limits, each of which raises ApiError `rate_limit_exceeded`."""

    def __init__(self, config: Config) -> None:
        monotonic = config.monotonic
        self.chat = Window(60, monotonic)  # chats and starts of agent runs, of all keys and sessions of an account
        rules = {  # admissions in so many seconds
            # counted for each address:
            "login": (config.logins_per_minute, 60),
            "signup": (config.signups_per_hour, 3600),
            "password_reset": (config.resets_per_hour, 3600),
            "password_reset_confirm": (10, 60),
            "shared": (240, 60),  # shares and their pictures
            "oauth": (300, 60),  # each step stores something, or sends a request to the provider
            # counted for each account:
            "verify_email": (3, 3600),
            "owner": (5, 60),  # each attempt is a guess at the password
            "change_email": (3, 3600),
            "checkout": (20, 3600),
            "ask_provider": (30, 60),  # connects to a host that the account names
        }
        self._by_rule = {rule: (limit, Window(seconds, monotonic)) for rule, (limit, seconds) in rules.items()}

    def take(self, rule: str, caller: bytes | str) -> None:
        """Count one admission of `caller`, the id of an account or the network of an address."""
        limit, window = self._by_rule[rule]
        window.take(caller, limit)


class BodyBudget:
    """The bytes of request bodies in memory, counted as they arrive and not as announced."""

    def __init__(self, budget_bytes: int = _BUDGET_BYTES, share_bytes: int = _SHARE_BYTES) -> None:
        self.budget_bytes = budget_bytes
        self.taken_bytes = 0
        self._share_bytes = share_bytes
        self._held_bytes: Counter[bytes] = Counter()

    def count(self, context: Context, size_bytes: int) -> None:
        """Count the body of a request, which has grown to `size_bytes`, until `give_back`.

        Raises ApiError `overloaded` over the limit of all bodies, or of those of its address or account.
        """
        counted_bytes, holders = context.counted_body or (0, _holders(context))
        more_bytes = size_bytes - counted_bytes
        most_held_bytes = max(self._held_bytes[holder] for holder in holders)
        if self.taken_bytes + more_bytes > self.budget_bytes or most_held_bytes + more_bytes > self._share_bytes:
            raise ApiError("overloaded", "The service is reading too many large requests now. Try again in a moment.")
        self.taken_bytes += more_bytes
        for holder in holders:
            self._held_bytes[holder] += more_bytes
        context.counted_body = (size_bytes, holders)

    def give_back(self, counted_bytes: int, holders: list[bytes]) -> None:
        self.taken_bytes -= counted_bytes
        for holder in holders:
            self._held_bytes[holder] -= counted_bytes
            if not self._held_bytes[holder]:
                del self._held_bytes[holder]


def _holders(context: Context) -> list[bytes]:
    account = [] if context.account_id is None else [b"account " + context.account_id.encode()]
    return [b"address " + network_of(context.client_ip), *account]
