"""The encrypted API keys of users' providers and tool servers, when the master secret changes or is lost."""

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any

from svc.errors import ApiError
from svc.inference import providers
from svc.inference.providers import KeyBox
from svc.inference.tool_servers import records
from svc.secrets import key_check
from svc.tables import Table

_TABLES: tuple[Table[Any], ...] = (providers.TABLE, records.TABLE)


def count(conn: sqlite3.Connection) -> int:
    return sum(1 for _ in _sealed(conn))


def seal_again(tx: sqlite3.Connection, box: KeyBox) -> int:
    """Encrypt the API keys of all accounts with the database's new master secret; return their number.

    Keys that could not be read before stay as they are.
    """
    number, check = 0, key_check(tx)
    for table, row in list(_sealed(tx)):
        with contextlib.suppress(ApiError):
            owner = (row["account_id"], row["id"])
            sealed = box.seal(*owner, box.open(*owner, row["sealed_key"]), check)
            table.update(tx, *owner, {"sealed_key": sealed})
            number += 1
    return number


def drop(tx: sqlite3.Connection) -> None:
    """Delete the API keys of all accounts: the secret that encrypted them is lost."""
    for table, row in list(_sealed(tx)):
        table.update(tx, row["account_id"], row["id"], {"sealed_key": None, "api_key_hint": None})


def _sealed(conn: sqlite3.Connection) -> Iterator[tuple[Table[Any], sqlite3.Row]]:
    for table in _TABLES:
        with contextlib.suppress(sqlite3.OperationalError):  # a restored database of an earlier version lacks a table
            yield from ((table, row) for row in table.sealed(conn))
