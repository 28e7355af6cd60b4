"""The audit log: what administrators and the operator changed. Rows of a deleted account stay, without its names."""

import sqlite3
from collections.abc import Mapping
from typing import Any

import orjson

from svc.ids import new_id, timestamp
from svc.tables import Table

OPERATOR = "operator"
_PERSONAL = ("email", "name")


def add(
    tx: sqlite3.Connection,
    now_seconds: float,
    actor: str,
    action: str,
    subject: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Store that `actor`, an account's id or OPERATOR, did `action` to `subject`, an account's id or another name.

    `details` must hold no secrets. Its `email`, which is added for an account, and `name` are removed with the account.
    """
    row = tx.execute("SELECT email FROM accounts WHERE id = ? AND deleting_at IS NULL", (subject,)).fetchone()
    values = {**({} if row is None else {"email": row[0]}), **(details or {})}
    person = {name: values.pop(name) for name in _PERSONAL if name in values}
    texts = (orjson.dumps(values).decode(), orjson.dumps(person).decode() if person else None)
    tx.execute(
        "INSERT INTO audit (id, at, actor, action, subject, details, person) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (new_id("aud", now_seconds), now_seconds, actor, action, subject, *texts),
    )


def _as_json(row: sqlite3.Row) -> dict[str, Any]:
    values = dict(row)
    del values["seq"], values["person"]
    details = {**orjson.loads(row["person"] or "{}"), **orjson.loads(row["details"])}
    return {**values, "at": timestamp(row["at"]), "details": details}


TABLE = Table("audit", _as_json, "audit row", "aud", order=("seq",))
