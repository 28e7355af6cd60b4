"""Output items that accounts were given, for the references to them that some clients of Responses send. In memory
alone.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from svc.errors import ApiError

KEPT_SECONDS = 3600.0
ACCOUNT_ITEMS = 256
ACCOUNT_BYTES = 1024 * 1024
ALL_BYTES = 64 * 1024 * 1024
# What an item takes beside its JSON.
_OVERHEAD_BYTES = 400


class _KeptItem(NamedTuple):
    item: bytes
    expires_at: float

    @property
    def size_bytes(self) -> int:
        return len(self.item) + _OVERHEAD_BYTES


class ItemMemory:
    """The last items of each account, for an hour; the oldest ones go first. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # By account, the one that was given an item last at the end; the items of each, the oldest first.
        self._accounts: OrderedDict[str, dict[str, _KeptItem]] = OrderedDict()
        self._all_bytes = 0
        self._lock = threading.Lock()  # long answers are written in threads

    def add(self, account_id: str, items: Mapping[str, bytes]) -> None:
        """Keep items, which are JSON, by their ids."""
        now = self._clock()
        with self._lock:
            kept = self._accounts.setdefault(account_id, {})
            self._accounts.move_to_end(account_id)
            for item_id, item in items.items():
                kept[item_id] = _KeptItem(item, now + KEPT_SECONDS)
                self._all_bytes += kept[item_id].size_bytes
            while len(kept) > ACCOUNT_ITEMS or _size_bytes(kept) > ACCOUNT_BYTES:
                self._drop_oldest(kept)
            while self._accounts:
                oldest_id, oldest = next(iter(self._accounts.items()))
                if not oldest:
                    del self._accounts[oldest_id]
                elif self._all_bytes > ALL_BYTES or next(iter(oldest.values())).expires_at <= now:
                    self._drop_oldest(oldest)
                else:
                    break

    def owners(self) -> set[str]:
        """Return the accounts that have items."""
        with self._lock:
            return set(self._accounts)

    def delete_account(self, account_id: str) -> None:
        with self._lock:
            self._all_bytes -= _size_bytes(self._accounts.pop(account_id, {}))

    def item(self, account_id: str, item_id: str, param: str) -> dict[str, Any]:
        """Return a kept item. Raises ApiError `not_found` that names `item_id`, for the field `param`."""
        kept = self._accounts.get(account_id, {}).get(item_id)
        if kept is None or kept.expires_at <= self._clock():
            message = (
                f"Item with id {item_id!r} not found. Items are not stored here: send whole items, with store: false."
            )
            raise ApiError("not_found", message, param=param)
        found: dict[str, Any] = orjson.loads(kept.item)
        return found

    def _drop_oldest(self, items: dict[str, _KeptItem]) -> None:
        self._all_bytes -= items.pop(next(iter(items))).size_bytes


def _size_bytes(items: dict[str, _KeptItem]) -> int:
    return sum(item.size_bytes for item in items.values())
