"""What a person was given of a month's allowance before: a deleted account does not begin the month again.

remember: an address or an identity leaves its account -> given_before: it counts for whoever has it now -> delete_old

Rows have a hash, not the address or the identity. Its key is random and in the database. So the rows remain valid after
a rotation of the master secret, and commands that delete accounts need no secret.
"""

import hmac
import sqlite3

import orjson

from svc.months import month_of

_SLICE = 1_000


def remember(tx: sqlite3.Connection, account_id: str, next_email_key: str | None = None) -> None:
    """Store the account's last allowance for its address and its identities, one of which is about to leave it.

    What their former owners were given counts as well. `next_email_key` is the form of the address that it gets.
    """
    query = "SELECT allowance_month, allowance_given_micros FROM accounts WHERE id = ? AND allowance_given_micros > 0"
    hashes = _hashes(tx, account_id)
    found = [tuple(row) for row in tx.execute(query, (account_id,))] + [
        row for each in hashes for row in _rows(tx, each)
    ]
    if not found:
        return
    month, micros = max(found)
    if next_email_key is not None:
        hashes.append(_hash(tx, [next_email_key, None]))
    statement = """
        INSERT INTO given_allowances (month, identity_hash, given_micros) VALUES (?, ?, ?)
        ON CONFLICT (identity_hash, month) DO UPDATE SET given_micros = max(given_micros, excluded.given_micros)
    """
    tx.executemany(statement, [(month, each, micros) for each in hashes])


def given_before(conn: sqlite3.Connection, account_id: str, month: str) -> int:
    """Return the micros that former owners of the account's address and identities were given in the month."""
    if conn.execute("SELECT 1 FROM given_allowances WHERE month = ? LIMIT 1", (month,)).fetchone() is None:
        return 0
    rows = (row for each in _hashes(conn, account_id) for row in _rows(conn, each))
    return max((micros for of_month, micros in rows if of_month == month), default=0)


def has_old(conn: sqlite3.Connection, now_seconds: float) -> bool:
    """Return whether rows of earlier months are left."""
    query = "SELECT 1 FROM given_allowances WHERE month < ? LIMIT 1"
    return conn.execute(query, (month_of(now_seconds),)).fetchone() is not None


def delete_old(tx: sqlite3.Connection, now_seconds: float) -> bool:
    """Delete a slice of what was given before this month; return whether there is more."""
    statement = """
        DELETE FROM given_allowances WHERE (identity_hash, month) IN (
            SELECT identity_hash, month FROM given_allowances WHERE month < ? LIMIT ?)
    """
    return tx.execute(statement, (month_of(now_seconds), _SLICE)).rowcount == _SLICE


def _rows(conn: sqlite3.Connection, identity_hash: bytes) -> list[tuple[str, int]]:
    """Return the months and micros that are stored for a hash."""
    query = "SELECT month, given_micros FROM given_allowances WHERE identity_hash = ?"
    return [(row[0], row[1]) for row in conn.execute(query, (identity_hash,))]


def _hashes(conn: sqlite3.Connection, account_id: str) -> list[bytes]:
    """Return the hashes of the account's address, in the form in which it is unique, and of its identities."""
    query = """
        SELECT email_key, NULL FROM accounts WHERE id = ?1 AND email_key IS NOT NULL
        UNION ALL SELECT issuer, subject FROM identities WHERE account_id = ?1
    """
    return [_hash(conn, list(row)) for row in conn.execute(query, (account_id,)).fetchall()]


def _hash(conn: sqlite3.Connection, identity: list[str | None]) -> bytes:
    key = conn.execute("SELECT identity_key FROM installation").fetchone()[0]
    return hmac.digest(key, orjson.dumps(identity), "sha256")
