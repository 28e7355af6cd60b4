"""Contents of artifacts: written a MiB at a time, so that one of 32 MiB holds up nobody else's write.

add -> the caller's checks -> pieces of a content that is no artifact's yet, a transaction for each MiB -> in the last of them
`finish` makes it an artifact's. What does not get there is deleted; after a crash, by the next start.
"""

import asyncio
import contextlib
import hashlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from svc.db import Database, without_overwriting
from svc.durable import write_until_done
from svc.errors import ApiError
from svc.ids import new_id

T = TypeVar("T")
CONTENT_BYTES = 32 * 1024 * 1024
PIECE_BYTES = 256 * 1024
_AT_ONCE_BYTES = 4 * PIECE_BYTES


class ContentReplaced(Exception):
    """The content that was being read is not there any more: another one has taken its place, or the artifact is gone."""


@dataclass(frozen=True)
class ArtifactContent:
    """What an artifact's row tells of its content; `size` in bytes."""

    id: str
    size: int
    sha256: bytes


async def add_content(
    db: Database,
    account_id: str,
    data: bytes,
    *,
    check: Callable[[sqlite3.Connection], object],
    finish: Callable[[sqlite3.Connection, ArtifactContent], T],
) -> T:
    """Writes `data`, and returns the result of `finish(tx, content)`, which makes it an artifact's in the last transaction.

    `check(tx)` refuses, before anything is written and again at the end. The content is not seen before it is whole, and nothing
    of it stays if it never is.
    Raises what they raise, ApiError `PAYLOAD_TOO_LARGE`, and `invalid_api_key` where the account goes meanwhile.
    """
    if len(data) > CONTENT_BYTES:
        raise ApiError("PAYLOAD_TOO_LARGE", f"A content may have at most {CONTENT_BYTES} bytes. Send less.", param="content")
    content = ArtifactContent(new_id("content"), len(data), await _sha256_of(data))
    last = max(len(data) - 1, 0) // _AT_ONCE_BYTES * _AT_ONCE_BYTES

    def add(tx: sqlite3.Connection, start: int) -> None:
        if start in (0, last):
            check(tx)
        _add_pieces(tx, account_id, content.id, data, start)

    def add_last(tx: sqlite3.Connection) -> T:
        add(tx, last)
        return finish(tx, content)

    try:
        for start in range(0, last, _AT_ONCE_BYTES):
            await db.write_much(add, start)
        return await db.write_much(add_last)
    except BaseException:
        if last:
            with contextlib.suppress(ApiError):
                await write_until_done(lambda: db.write(_forget, account_id, content.id))
        raise


async def _sha256_of(data: bytes) -> bytes:
    digest = await asyncio.to_thread(hashlib.sha256, data) if len(data) > _AT_ONCE_BYTES else hashlib.sha256(data)
    return digest.digest()


def _add_pieces(tx: sqlite3.Connection, account_id: str, content_id: str, data: bytes, start: int) -> None:
    """Adds a MiB of the pieces, from the byte `start` on."""
    whole = memoryview(data)
    begins = range(start, min(start + _AT_ONCE_BYTES, len(data)), PIECE_BYTES)
    try:
        if start == 0:
            tx.execute("INSERT INTO artifact_contents (account_id, id) VALUES (?, ?)", (account_id, content_id))
        tx.executemany(
            "INSERT INTO artifact_pieces (account_id, content_id, number, content) VALUES (?, ?, ?, ?)",
            ((account_id, content_id, begin // PIECE_BYTES, whole[begin : begin + PIECE_BYTES]) for begin in begins),
        )
    except sqlite3.IntegrityError as error:
        if error.sqlite_errorname != "SQLITE_CONSTRAINT_FOREIGNKEY":
            raise
        raise ApiError("invalid_api_key") from None


def content_piece(conn: sqlite3.Connection, account_id: str, artifact_id: str, sha256: bytes, number: int) -> bytes:
    """Piece `number` (from 0, of `PIECE_BYTES`) of the content whose hash is `sha256`. Raises ContentReplaced."""
    row = conn.execute(
        """
        SELECT artifact_pieces.content
        FROM artifacts JOIN artifact_pieces USING (account_id, content_id)
        WHERE artifacts.account_id = ? AND artifacts.id = ? AND artifacts.sha256 = ? AND artifact_pieces.number = ?
        """,
        (account_id, artifact_id, sha256, number),
    ).fetchone()
    if row is None:
        raise ContentReplaced
    content: bytes = row["content"]
    return content


def _forget(tx: sqlite3.Connection, account_id: str, content_id: str) -> None:
    with without_overwriting(tx):
        tx.execute(
            """
            DELETE FROM artifact_contents WHERE account_id = ?1 AND id = ?2
                AND NOT EXISTS (SELECT 1 FROM artifacts WHERE account_id = ?1 AND content_id = ?2)
            """,
            (account_id, content_id),
        )


def forget_unfinished(tx: sqlite3.Connection) -> None:
    """Deletes what a server that went had not yet made an artifact's. For the start, when nothing is being written."""
    with without_overwriting(tx):
        tx.execute(
            """
            DELETE FROM artifact_contents WHERE NOT EXISTS (
                SELECT 1 FROM artifacts WHERE account_id = artifact_contents.account_id AND content_id = artifact_contents.id)
            """
        )
