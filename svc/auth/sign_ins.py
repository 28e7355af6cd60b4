"""Sign-ins of the last 90 days, also refused ones: who, when, in which way, and the code of the result.

The address that a person typed is not stored, and a refused one may belong to no account.
"""

import sqlite3
from typing import Any

from svc.auth import accounts
from svc.ids import new_id, timestamp
from svc.tables import Table, delete_found

OK = "ok"
KEPT_DAYS = 90
# Everybody can cause refusals, so their number is limited, too.
_MOST_ROWS = 1_000_000


def add(tx: sqlite3.Connection, account_id: str | None, way: str, code: str, now_seconds: float) -> None:
    """Store a sign-in to the account, None if there is none, by `password`, `link` or an identity provider's name.

    A successful one counts as a use of the account.
    """
    statement = """
        INSERT INTO sign_ins (id, at, account_id, way, code)
        VALUES (?, ?, (SELECT id FROM accounts WHERE id = ? AND deleting_at IS NULL), ?, ?)
    """
    tx.execute(statement, (new_id("sgn", now_seconds), now_seconds, account_id, way, code))
    tx.execute("DELETE FROM sign_ins WHERE seq <= (SELECT max(seq) FROM sign_ins) - ?", (_MOST_ROWS,))
    if account_id is not None and code == OK:
        accounts.mark_seen(tx, account_id, now_seconds)


def delete_old(tx: sqlite3.Connection, before_seconds: float) -> bool:
    """Delete sign-ins before this time for 5 ms; return whether there may be more."""

    def delete(tx: sqlite3.Connection, seq: int) -> None:
        tx.execute("DELETE FROM sign_ins WHERE seq = ?", (seq,))

    oldest = "SELECT seq FROM (SELECT seq, at FROM sign_ins ORDER BY seq LIMIT 1) WHERE at < ?"
    return delete_found(oldest, delete, tx, before_seconds)


def _as_json(row: sqlite3.Row) -> dict[str, Any]:
    return {"id": row["id"], **own_json(row), "account_id": row["account_id"], "email": row["email"]}


def own_json(row: sqlite3.Row) -> dict[str, Any]:
    """Return what a person gets of an own sign-in."""
    return {"at": timestamp(row["at"]), "way": row["way"], "code": row["code"]}


_LISTED = "*, (SELECT email FROM accounts WHERE id = account_id) AS email"
TABLE = Table("sign_ins", _as_json, "sign-in", "sgn", order=("seq",), listed=_LISTED)
