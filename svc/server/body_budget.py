"""How much memory the bodies of requests may take, in all, from one address and from one account."""

import ipaddress
from collections import Counter

from svc.errors import ApiError
from svc.server.context import Context

KIB = 1024
MIB = 1024 * 1024
# What a connection may hold of a body that nobody reads yet, too: so much is never refused, the number of connections bounds it.
SMALL_BYTES = 64 * KIB
_BUDGET_BYTES = 192 * MIB
_SHARE_BYTES = 64 * MIB  # of one address, and of one account: more than the largest body that any path takes


def network_of(address: str) -> bytes:
    """A client's address as it is counted: IPv4 whole (also when mapped into IPv6), IPv6 by its /64."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return b"unknown"
    if isinstance(parsed, ipaddress.IPv4Address):
        return parsed.packed
    return parsed.ipv4_mapped.packed if parsed.ipv4_mapped else parsed.packed[:8]


class BodyBudget:
    """The bytes of request bodies that are in memory, counted as they arrive; what was only announced counts for nothing."""

    def __init__(self, budget_bytes: int = _BUDGET_BYTES, share_bytes: int = _SHARE_BYTES) -> None:
        self._budget_bytes = self.free_bytes = budget_bytes
        self._share_bytes = share_bytes
        self._held_bytes: Counter[bytes] = Counter()

    @property
    def taken_bytes(self) -> int:
        """What the bodies that are counted take now."""
        return self._budget_bytes - self.free_bytes

    def count(self, context: Context, size_bytes: int) -> None:
        """Note that the body of a request has grown to `size_bytes`; it counts until `give_back`.

        Raises ApiError `overloaded` when that is more than what is left in all, or than the share of its address or account.
        """
        if size_bytes <= SMALL_BYTES:
            return
        counted_bytes, holders = context.counted_body or (0, _holders(context))
        more_bytes = size_bytes - counted_bytes
        if more_bytes > self.free_bytes or any(self._held_bytes[holder] + more_bytes > self._share_bytes for holder in holders):
            raise ApiError("overloaded", "The service is reading too many large requests now. Try again in a moment.")
        self.free_bytes -= more_bytes
        for holder in holders:
            self._held_bytes[holder] += more_bytes
        context.counted_body = (size_bytes, holders)

    def give_back(self, context: Context) -> None:
        """End the counting of a request's body."""
        if context.counted_body is None:
            return
        (counted_bytes, holders), context.counted_body = context.counted_body, None
        self.free_bytes += counted_bytes
        for holder in holders:
            self._held_bytes[holder] -= counted_bytes
            if not self._held_bytes[holder]:
                del self._held_bytes[holder]


def _holders(context: Context) -> list[bytes]:
    holders = [b"address " + network_of(context.client_ip)]
    if context.account_id is not None:
        holders.append(b"account " + context.account_id.encode())
    return holders
