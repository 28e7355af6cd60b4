"""Contents of artifacts, stored with a transaction for each MiB, so that a large one does not delay other writes.

add -> the caller's checks -> pieces of a content without an artifact, a MiB at a time -> the last transaction calls `finish`,
which makes it an artifact's content. An unfinished content is deleted; after a crash, by the next start.
"""

import asyncio
import contextlib
import hashlib
import sqlite3
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from svc.db import Database
from svc.errors import ApiError
from svc.ids import new_id
from svc.retry import retry_write
from svc.slices import without_overwriting

T = TypeVar("T")
CONTENT_BYTES = 32 * 1024 * 1024
PIECE_BYTES = 256 * 1024
_PIECES_AT_ONCE = 4


class ContentReplaced(Exception):
    """The content was replaced or deleted while it was read."""


class ArtifactContent(NamedTuple):
    """The fields of an artifact's row about its content; `size` in bytes."""

    id: str
    size: int
    sha256: bytes


async def add_content(
    db: Database,
    account_id: str,
    chunks: list[bytes],
    *,
    check: Callable[[sqlite3.Connection], object],
    finish: Callable[[sqlite3.Connection, ArtifactContent], T],
) -> T:
    """Store `chunks` and return the result of `finish(tx, content)`, which makes them an artifact's in the last transaction.

    `check(tx)` is called in the first and the last transaction and may raise an error. The content is visible only when it is
    whole. The list is emptied. Raises ApiError `PAYLOAD_TOO_LARGE`, and `invalid_api_key` if the account was deleted.
    """
    size = sum(map(len, chunks))
    if size > CONTENT_BYTES:
        raise ApiError("PAYLOAD_TOO_LARGE", f"A content may have at most {CONTENT_BYTES} bytes. Send less.", param="content")
    pieces, sha256 = await asyncio.to_thread(_cut, chunks) if size > PIECE_BYTES else _cut(chunks)
    chunks.clear()  # else it would be in memory twice
    content = ArtifactContent(new_id("content"), size, sha256)
    last = max(len(pieces) - 1, 0) // _PIECES_AT_ONCE * _PIECES_AT_ONCE

    def add(tx: sqlite3.Connection, first: int) -> None:
        if first in (0, last):
            check(tx)
        _add_pieces(tx, account_id, content.id, pieces, first)

    def add_last(tx: sqlite3.Connection) -> T:
        add(tx, last)
        return finish(tx, content)

    try:
        for first in range(0, last, _PIECES_AT_ONCE):
            await db.write_as("alone", add, first)
        return await db.write_as("alone", add_last)
    except BaseException:
        if last:
            with contextlib.suppress(ApiError):
                await retry_write(lambda: db.write(_delete, account_id, content.id))
        raise


def _cut(chunks: list[bytes]) -> tuple[list[bytes], bytes]:
    pieces, held, digest = [], bytearray(), hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
        for start in range(0, len(chunk), PIECE_BYTES):  # small parts let other threads run
            held += chunk[start : start + PIECE_BYTES]
            if len(held) >= PIECE_BYTES:
                pieces.append(bytes(held[:PIECE_BYTES]))
                del held[:PIECE_BYTES]
    return [*pieces, bytes(held)] if held else pieces, digest.digest()


def _add_pieces(tx: sqlite3.Connection, account_id: str, content_id: str, pieces: list[bytes], first: int) -> None:
    numbers = range(first, min(first + _PIECES_AT_ONCE, len(pieces)))
    try:
        if first == 0:
            tx.execute("INSERT INTO artifact_contents (account_id, id) VALUES (?, ?)", (account_id, content_id))
        tx.executemany(
            "INSERT INTO artifact_pieces (account_id, content_id, number, content) VALUES (?, ?, ?, ?)",
            ((account_id, content_id, number, pieces[number]) for number in numbers),
        )
    except sqlite3.IntegrityError as error:
        if error.sqlite_errorname != "SQLITE_CONSTRAINT_FOREIGNKEY":
            raise
        raise ApiError("invalid_api_key") from None


def content_piece(conn: sqlite3.Connection, account_id: str, artifact_id: str, sha256: bytes, number: int) -> bytes:
    """Return the piece `number` (from 0) of the content whose hash is `sha256`. Raises ContentReplaced."""
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


def _delete(tx: sqlite3.Connection, account_id: str, content_id: str) -> None:
    with without_overwriting(tx):
        tx.execute(
            """
            DELETE FROM artifact_contents WHERE account_id = ?1 AND id = ?2
                AND NOT EXISTS (SELECT 1 FROM artifacts WHERE account_id = ?1 AND content_id = ?2)
            """,
            (account_id, content_id),
        )


def delete_unfinished(tx: sqlite3.Connection) -> None:
    """Delete contents that an earlier server did not finish. For the start, before anything is written."""
    with without_overwriting(tx):
        tx.execute(
            """
            DELETE FROM artifact_contents WHERE NOT EXISTS (
                SELECT 1 FROM artifacts WHERE account_id = artifact_contents.account_id AND content_id = artifact_contents.id)
            """
        )
