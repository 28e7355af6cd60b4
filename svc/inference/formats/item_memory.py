"""Output items that accounts were given, for the references to them that some clients of Responses send. In memory alone."""

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


class _Account:
    """The items of one account, the oldest first."""

    def __init__(self) -> None:
        self.items: OrderedDict[str, _KeptItem] = OrderedDict()
        self.size_bytes = 0


class ItemMemory:
    """The last items of each account, for an hour; the oldest ones go first. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._accounts: OrderedDict[str, _Account] = OrderedDict()  # the account that was given an item last is last
        self._all_bytes = 0
        self._lock = threading.Lock()  # long answers are written in threads

    def add(self, account_id: str, items: Mapping[str, bytes]) -> None:
        """Keep items, which are JSON, by their ids."""
        now = self._clock()
        with self._lock:
            account = self._accounts.setdefault(account_id, _Account())
            self._accounts.move_to_end(account_id)
            for item_id, item in items.items():
                account.items[item_id] = _KeptItem(item, now + KEPT_SECONDS)
                self._count(account, len(item) + _OVERHEAD_BYTES)
            while len(account.items) > ACCOUNT_ITEMS or account.size_bytes > ACCOUNT_BYTES:
                self._drop_oldest(account)
            while self._accounts:
                oldest_id, oldest = next(iter(self._accounts.items()))
                if not oldest.items:
                    del self._accounts[oldest_id]
                elif self._all_bytes > ALL_BYTES or next(iter(oldest.items.values())).expires_at <= now:
                    self._drop_oldest(oldest)
                else:
                    break

    def owners(self) -> set[str]:
        """Return the accounts that have items."""
        with self._lock:
            return set(self._accounts)

    def delete_account(self, account_id: str) -> None:
        with self._lock:
            account = self._accounts.pop(account_id, _Account())
            self._all_bytes -= account.size_bytes

    def item(self, account_id: str, item_id: str, param: str) -> dict[str, Any]:
        """Return a kept item. Raises ApiError `not_found` that names `item_id`, for the field `param`."""
        account = self._accounts.get(account_id)
        kept = account.items.get(item_id) if account else None
        if kept is None or kept.expires_at <= self._clock():
            message = f"Item with id {item_id!r} not found. Items are not stored here: send whole items, with store: false."
            raise ApiError("not_found", message, param=param)
        found: dict[str, Any] = orjson.loads(kept.item)
        return found

    def _drop_oldest(self, account: _Account) -> None:
        _, (item, _) = account.items.popitem(last=False)
        self._count(account, -len(item) - _OVERHEAD_BYTES)

    def _count(self, account: _Account, size_bytes: int) -> None:
        account.size_bytes += size_bytes
        self._all_bytes += size_bytes
