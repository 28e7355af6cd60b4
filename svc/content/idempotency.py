"""Requests with an `Idempotency-Key`, and their kept answers, for 24 hours.

claim() with the hold -> add_chunks() while a long answer grows -> keep() or release() with the settlement
A repeat finds the answer with `kept`, and reads it with `chunk`.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import NamedTuple

import orjson

from svc import quota
from svc.tables import Table, delete_found, refusals

KEPT_SECONDS = 24 * 3600
MOST_BYTES = 8 * 1024 * 1024  # as in schema.sql
CHUNK_BYTES = 256 * 1024
RESERVED_BYTES = 256 * 1024  # a longer answer is kept if there is room for it when it is whole
_RELEASE = "UPDATE idempotency_keys SET place = NULL, claimed_at = 0 WHERE status IS NULL"
_DELETE_CHUNK = """
    DELETE FROM idempotency_chunks WHERE account_id = ?1 AND key_id = ?2 AND number = (
        SELECT max(number) FROM idempotency_chunks WHERE account_id = ?1 AND key_id = ?2)
"""
_TABLE = Table("idempotency_keys", lambda row: row, "idempotency key")


class Place(NamedTuple):
    """An account's key at a path: `hashed` is the SHA-256 of both."""

    account_id: str
    hashed: bytes


class Kept(NamedTuple):
    """A kept answer; `size` in bytes. It is None if the answer is not kept, or if the request started `run_id`."""

    id: str
    body_sha256: bytes
    status: int
    headers: Mapping[str, str]
    size: int | None
    run_id: str | None


def place_of(account_id: str, path: str, key: str) -> Place:
    return Place(account_id, sha256(f"{path}\n{key}".encode()).digest())


def kept(conn: sqlite3.Connection, place: Place, now_seconds: float) -> Kept | None:
    """Return the answer that is kept at `place`. None if there is no answer, or it has expired."""
    query = """
        SELECT id, body_sha256, status, headers, size, run_id FROM idempotency_keys
        WHERE account_id = ? AND place = ? AND status IS NOT NULL AND claimed_at > ?
    """
    row = conn.execute(query, (*place, now_seconds - KEPT_SECONDS)).fetchone()
    return row and Kept(**{**dict(row), "headers": orjson.loads(row["headers"])})


def chunk(conn: sqlite3.Connection, account_id: str, claim_id: str, number: int) -> bytes | None:
    """Return the chunk `number` (from 0) of a kept answer. None after the last one, and if the answer was deleted."""
    query = "SELECT content FROM idempotency_chunks WHERE account_id = ? AND key_id = ? AND number = ?"
    row = conn.execute(query, (account_id, claim_id, number)).fetchone()
    return row and bytes(row["content"])


# --- the course of a request


def claim(tx: sqlite3.Connection, place: Place, claim_id: str, body_sha256: bytes, now_seconds: float) -> None:
    """Claim `place` for a request, and reserve room for its answer. Raises ApiError `quota_exceeded`."""
    account_id = place.account_id
    quota.reserve(tx, account_id, claim_id, quota.ROW_BYTES + RESERVED_BYTES)
    # What is there has expired, or belongs to a call that failed and is not settled yet.
    tx.execute("UPDATE idempotency_keys SET place = NULL WHERE account_id = ? AND place = ?", place)
    columns = {"id": claim_id, "account_id": account_id, "place": place.hashed, "body_sha256": body_sha256}
    with refusals():
        _TABLE.insert(tx, {**columns, "claimed_at": now_seconds})


def reserve_more(tx: sqlite3.Connection, account_id: str, claim_id: str, size: int) -> None:
    """Reserve room for an answer of `size` bytes. Raises ApiError `quota_exceeded`."""
    quota.release(tx, account_id, claim_id)
    quota.reserve(tx, account_id, claim_id, quota.ROW_BYTES + size)


def add_chunks(tx: sqlite3.Connection, account_id: str, claim_id: str, first: int, chunks: Sequence[bytes]) -> None:
    """Store chunks of an answer, from the number `first`."""
    statement = "INSERT INTO idempotency_chunks (account_id, key_id, number, content) VALUES (?, ?, ?, ?)"
    with refusals():
        tx.executemany(statement, [(account_id, claim_id, number, part) for number, part in enumerate(chunks, first)])


def keep(
    tx: sqlite3.Connection,
    account_id: str,
    claim_id: str,
    *,
    status: int,
    headers: Mapping[str, str],
    size: int | None,
    rest: tuple[int, Sequence[bytes]],
) -> None:
    """Keep the answer of a claim. `rest` is the number of its first chunk that is not stored, and the chunks from it.

    Without a `size`, or if its conversation is deleted, the answer is not kept, and a repeat is refused. A second call
    changes nothing.
    """
    quota.release(tx, account_id, claim_id)
    conversation_id = headers.get("x-service-conversation")
    if conversation_id is not None:
        query = "SELECT 1 FROM conversations WHERE account_id = ? AND id = ?"
        size = size if tx.execute(query, (account_id, conversation_id)).fetchone() else None
    statement = """
        UPDATE idempotency_keys SET status = ?, headers = ?, size = ?, conversation_id = ?
        WHERE account_id = ? AND id = ? AND status IS NULL AND claimed_at > 0
    """
    written = orjson.dumps(headers).decode()
    # An account that is being deleted has no claims.
    if (
        tx.execute(statement, (status, written, size, conversation_id, account_id, claim_id)).rowcount
        and size is not None
    ):
        add_chunks(tx, account_id, claim_id, *rest)


def start_run(tx: sqlite3.Connection, account_id: str, claim_id: str, run_id: str) -> None:
    """Note the agent run that a claim has started."""
    quota.release(tx, account_id, claim_id)
    statement = "UPDATE idempotency_keys SET status = 200, headers = '{}', run_id = ? WHERE account_id = ? AND id = ?"
    tx.execute(statement, (run_id, account_id, claim_id))


def release(tx: sqlite3.Connection, account_id: str, claim_id: str) -> None:
    """Release a claim without an answer, so that a repeat runs again. `delete_released` deletes it with its chunks."""
    quota.release(tx, account_id, claim_id)
    tx.execute(f"{_RELEASE} AND account_id = ? AND id = ?", (account_id, claim_id))


# --- deletion


def _forget(tx: sqlite3.Connection, account_id: str, claim_id: str) -> None:
    """Delete a chunk of a kept answer. Its key stays, so that a repeat is not charged: it is refused."""
    tx.execute("UPDATE idempotency_keys SET size = NULL WHERE account_id = ? AND id = ?", (account_id, claim_id))
    tx.execute(_DELETE_CHUNK, (account_id, claim_id))


_OF_CONVERSATION = """
    SELECT account_id, id FROM idempotency_keys
    WHERE account_id = ?1 AND conversation_id = ?2 AND EXISTS (
        SELECT 1 FROM idempotency_chunks WHERE account_id = ?1 AND key_id = idempotency_keys.id)
    LIMIT 1
"""


def release_all(tx: sqlite3.Connection) -> None:
    """Release the claims of an earlier server's requests. For the start, with their holds."""
    tx.execute(_RELEASE)


def _delete(tx: sqlite3.Connection, account_id: str, claim_id: str) -> None:
    """Delete a chunk of a kept answer, and after the last one its row."""
    if not tx.execute(_DELETE_CHUNK, (account_id, claim_id)).rowcount:
        _TABLE.delete(tx, account_id, claim_id)


_RELEASED = "SELECT account_id, id FROM idempotency_keys WHERE claimed_at = 0 LIMIT 1"
delete_released = partial(delete_found, _RELEASED, _delete)  # the writer deletes the contents later, when it has time
forget_some = partial(delete_found, _OF_CONVERSATION, _forget)  # those of a conversation that is being deleted
_OLD = "SELECT account_id, id FROM idempotency_keys WHERE claimed_at < ? ORDER BY claimed_at LIMIT 1"
delete_old = partial(delete_found, _OLD, _delete)
_OF_ACCOUNT = "SELECT account_id, id FROM idempotency_keys WHERE account_id = ? LIMIT 1"
delete_some = partial(delete_found, _OF_ACCOUNT, _delete)  # of an account that is being deleted
