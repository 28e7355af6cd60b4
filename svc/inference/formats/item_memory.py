"""Output items that accounts were given, in memory alone: some clients of Responses send references to them."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from svc.errors import ApiError

KEPT_SECONDS = 3600.0
ACCOUNT_ITEMS = 256
ACCOUNT_BYTES = 1024 * 1024
ALL_BYTES = 64 * 1024 * 1024
# What an item takes beside its JSON.
_OVERHEAD_BYTES = 400


class ItemMemory:
    """The last items of each account, for an hour; the oldest ones go first. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # By account, the one that was given an item last at the end: its items, oldest first, and when each expires.
        self._accounts: dict[str, dict[str, tuple[bytes, float]]] = {}
        self._all_bytes = 0
        self._lock = threading.Lock()  # long answers are written in threads

    def add(self, account_id: str, items: Mapping[str, bytes]) -> None:
        """Keep items, which are JSON, by their ids."""
        now = self._clock()
        with self._lock:
            if items:
                new = {item_id: (item, now + KEPT_SECONDS) for item_id, item in items.items()}
                self._accounts[account_id] = kept = self._accounts.pop(account_id, {}) | new
                self._all_bytes += _size_bytes(new)
                while len(kept) > ACCOUNT_ITEMS or _size_bytes(kept) > ACCOUNT_BYTES:
                    self._drop_oldest(account_id)
            while self._accounts:
                oldest_id, oldest = next(iter(self._accounts.items()))
                _, expires_at = next(iter(oldest.values()))
                if self._all_bytes <= ALL_BYTES and expires_at > now:
                    break
                self._drop_oldest(oldest_id)

    def owners(self) -> set[str]:
        with self._lock:
            return set(self._accounts)

    def delete_account(self, account_id: str) -> None:
        with self._lock:
            self._all_bytes -= _size_bytes(self._accounts.pop(account_id, {}))

    def item(self, account_id: str, item_id: str, param: str) -> dict[str, Any]:
        """Return a kept item. Raises ApiError `not_found` that names `item_id`, for the field `param`."""
        found: dict[str, Any] = orjson.loads(self.json(account_id, item_id, param))
        return found

    def json(self, account_id: str, item_id: str, param: str) -> bytes:
        """Return the JSON of a kept item, and raise the same."""
        item, expires_at = self._accounts.get(account_id, {}).get(item_id, (b"", 0.0))
        if expires_at <= self._clock():
            hint = "Items are not stored here: send whole items, with store: false."
            raise ApiError("not_found", f"Item with id {item_id!r} not found. {hint}", param=param)
        return item

    def _drop_oldest(self, account_id: str) -> None:
        kept = self._accounts[account_id]
        oldest_id = next(iter(kept))
        self._all_bytes -= _size_bytes({oldest_id: kept.pop(oldest_id)})
        if not kept:
            del self._accounts[account_id]


def _size_bytes(items: dict[str, tuple[bytes, float]]) -> int:
    return sum(len(item) + _OVERHEAD_BYTES for item, _ in items.values())
