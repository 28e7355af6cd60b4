"""Limits on the memory of request bodies: of all, of one address and of one account."""

import ipaddress
from collections import Counter

from svc.errors import ApiError
from svc.server.head import Context

KIB = 1024
MIB = 1024 * 1024
# A body of this size is never refused. Each connection also buffers so much of an unread body, so their number is the
# limit.
SMALL_BYTES = 64 * KIB
_BUDGET_BYTES = 192 * MIB
_SHARE_BYTES = 64 * MIB  # of one address or account: more than the largest body that any path accepts


def network_of(address: str) -> bytes:
    """Return the key by which a client's address is counted: an IPv4 address (mapped, too), or an IPv6 /64."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return b"unknown"
    if isinstance(parsed, ipaddress.IPv4Address):
        return parsed.packed
    return parsed.ipv4_mapped.packed if parsed.ipv4_mapped else parsed.packed[:8]


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
