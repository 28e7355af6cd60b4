"""What a person was given of a month's allowance before: a deleted account does not begin the month again.

remember: an address or an identity leaves its account -> given_before: it counts for whoever has it now -> delete_old

Rows have a hash, not the address or the identity. Its key is random and in the database. So the rows remain valid after
a rotation of the master secret, and commands that delete accounts need no secret.
"""

import hmac
import sqlite3
from collections.abc import Iterator

import orjson

from svc.months import month_of

_SLICE = 1_000


def remember(tx: sqlite3.Connection, account_id: str) -> None:
    """Store the account's last allowance for its address and its identities, which are about to leave it."""
    query = "SELECT allowance_month, allowance_given_micros FROM accounts WHERE id = ? AND allowance_given_micros > 0"
    month, given_micros = tx.execute(query, (account_id,)).fetchone() or (None, 0)
    if month is None:
        return
    given_micros = max(given_micros, given_before(tx, account_id, month))
    statement = """
        INSERT INTO given_allowances (month, identity_hash, given_micros) VALUES (?, ?, ?)
        ON CONFLICT (month, identity_hash) DO UPDATE SET given_micros = max(given_micros, excluded.given_micros)
    """
    tx.executemany(statement, [(month, each, given_micros) for each in _hashes(tx, account_id)])


def given_before(conn: sqlite3.Connection, account_id: str, month: str) -> int:
    """Return the micros that former owners of the account's address and identities were given in the month."""
    if conn.execute("SELECT 1 FROM given_allowances WHERE month = ? LIMIT 1", (month,)).fetchone() is None:
        return 0
    query = "SELECT ifnull(max(given_micros), 0) FROM given_allowances WHERE month = ? AND identity_hash = ?"
    return max((conn.execute(query, (month, each)).fetchone()[0] for each in _hashes(conn, account_id)), default=0)


def has_old(conn: sqlite3.Connection, now_seconds: float) -> bool:
    """Return whether rows of earlier months are left."""
    query = "SELECT 1 FROM given_allowances WHERE month < ? LIMIT 1"
    return conn.execute(query, (month_of(now_seconds),)).fetchone() is not None


def delete_old(tx: sqlite3.Connection, now_seconds: float) -> bool:
    """Delete a slice of what was given before this month; return whether there is more."""
    statement = """
        DELETE FROM given_allowances WHERE (month, identity_hash) IN (
            SELECT month, identity_hash FROM given_allowances WHERE month < ? LIMIT ?)
    """
    return tx.execute(statement, (month_of(now_seconds), _SLICE)).rowcount == _SLICE


def _hashes(conn: sqlite3.Connection, account_id: str) -> Iterator[bytes]:
    """Yield the hashes of the account's address, in the form in which it is unique, and of its identities."""
    key = conn.execute("SELECT identity_key FROM installation").fetchone()[0]
    query = """
        SELECT email_key, NULL FROM accounts WHERE id = ?1 AND email_key IS NOT NULL
        UNION ALL SELECT issuer, subject FROM identities WHERE account_id = ?1
    """
    for row in conn.execute(query, (account_id,)).fetchall():
        yield hmac.digest(key, orjson.dumps(list(row)), "sha256")
