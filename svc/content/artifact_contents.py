"""Contents of artifacts, stored and deleted in parts, so that a large one does not delay other writes.

add -> the caller's checks -> chunks of a content without an artifact, a MiB at a time -> the last transaction calls
`finish`, which makes it an artifact's content. An unfinished content becomes unused; after a crash, at the next start.
delete, replace -> a trigger marks the content as unused -> delete_unused deletes its chunks between other writes
"""

import asyncio
import contextlib
import hashlib
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar, cast

from svc.db import Database
from svc.errors import ApiError
from svc.ids import new_id
from svc.retry import retry_write
from svc.tables import delete_found, refusals

T = TypeVar("T")
CONTENT_BYTES = 32 * 1024 * 1024
CHUNK_BYTES = 256 * 1024
_CHUNKS_AT_ONCE = 4
_STOP_SECONDS = 2.0


class ContentReplaced(Exception):
    """The content was replaced or deleted while it was read."""


class ArtifactContent(NamedTuple):
    """The fields of an artifact's row about its content; `size` in bytes."""

    content_id: str
    size: int
    sha256: bytes


async def add_content(
    db: Database,
    account_id: str,
    parts: list[bytes],
    *,
    check: Callable[[sqlite3.Connection], object],
    finish: Callable[[sqlite3.Connection, ArtifactContent], T],
) -> T:
    """Store `parts`. In the last transaction `finish(tx, content)` makes them an artifact's; return its result.

    `check(tx)` is called in the first and the last transaction and may raise an error. The content is visible only when
    it is whole. The list is emptied. Raises ApiError `PAYLOAD_TOO_LARGE`.
    """
    size = sum(map(len, parts))
    if size > CONTENT_BYTES:
        text = f"A content may have at most {CONTENT_BYTES} bytes. Send less."
        raise ApiError("PAYLOAD_TOO_LARGE", text, param="content")
    chunks, sha256 = await asyncio.to_thread(_cut, parts) if size > CHUNK_BYTES else _cut(parts)
    parts.clear()  # else it would be in memory twice
    content = ArtifactContent(new_id("content"), size, sha256)
    last = max(len(chunks) - 1, 0) // _CHUNKS_AT_ONCE * _CHUNKS_AT_ONCE

    def add(tx: sqlite3.Connection, first: int) -> T | None:
        if first in (0, last):
            check(tx)
        statement = "INSERT INTO artifact_chunks (account_id, content_id, number, content) VALUES (?, ?, ?, ?)"
        batch = enumerate(chunks[first : first + _CHUNKS_AT_ONCE], first)
        with refusals():
            if first == 0:
                tx.execute(
                    "INSERT INTO artifact_contents (account_id, id) VALUES (?, ?)", (account_id, content.content_id)
                )
            tx.executemany(statement, ((account_id, content.content_id, number, chunk) for number, chunk in batch))
        return finish(tx, content) if first == last else None

    try:
        for first in range(0, last, _CHUNKS_AT_ONCE):
            await db.write_as("alone", add, first)
            await db.write_as("alone", delete_some_unused)  # as much: replaced ones must not fill the disk
        return cast(T, await db.write_as("alone", add, last))
    except BaseException:
        if last:
            with contextlib.suppress(ApiError):
                await retry_write(lambda: db.write(_leave, account_id, content.content_id))
        raise


def _cut(parts: list[bytes]) -> tuple[list[bytes], bytes]:
    chunks, held, digest = [], bytearray(), hashlib.sha256()
    for part in parts:
        digest.update(part)
        for start in range(0, len(part), CHUNK_BYTES):  # small parts let other threads run
            held += part[start : start + CHUNK_BYTES]
            if len(held) >= CHUNK_BYTES:
                chunks.append(bytes(held[:CHUNK_BYTES]))
                del held[:CHUNK_BYTES]
    return [*chunks, bytes(held)] if held else chunks, digest.digest()


def content_chunk(conn: sqlite3.Connection, account_id: str, artifact_id: str, sha256: bytes, number: int) -> bytes:
    """Return the chunk `number` (from 0) of the content whose hash is `sha256`. Raises ContentReplaced."""
    query = """
        SELECT artifact_chunks.content
        FROM artifacts JOIN artifact_chunks USING (account_id, content_id)
        WHERE artifacts.account_id = ? AND artifacts.id = ? AND artifacts.sha256 = ? AND artifact_chunks.number = ?
    """
    row = conn.execute(query, (account_id, artifact_id, sha256, number)).fetchone()
    if row is None:
        raise ContentReplaced
    return bytes(row["content"])


def shared_chunk(conn: sqlite3.Connection, account_id: str, share_id: str, artifact_id: str, number: int) -> bytes:
    """Return the chunk `number` (from 0) of a picture of a share. Raises ContentReplaced if the share is gone."""
    query = """
        SELECT artifact_chunks.content
        FROM share_pictures JOIN artifact_chunks USING (account_id, content_id)
        WHERE share_pictures.account_id = ? AND share_id = ? AND artifact_id = ? AND artifact_chunks.number = ?
    """
    row = conn.execute(query, (account_id, share_id, artifact_id, number)).fetchone()
    if row is None:
        raise ContentReplaced
    return bytes(row["content"])


_LEAVE = """
    UPDATE artifact_contents SET unused = 1 WHERE NOT EXISTS (
        SELECT 1 FROM artifacts WHERE account_id = artifact_contents.account_id AND content_id = artifact_contents.id)
    AND NOT EXISTS (
        SELECT 1 FROM share_pictures
        WHERE account_id = artifact_contents.account_id AND content_id = artifact_contents.id)
"""


def _leave(tx: sqlite3.Connection, account_id: str, content_id: str) -> None:
    tx.execute(f"{_LEAVE} AND account_id = ? AND id = ?", (account_id, content_id))


def leave_unfinished(tx: sqlite3.Connection) -> None:
    """Mark contents that an earlier server did not finish as unused. For the start, before anything is written."""
    tx.execute(_LEAVE)


def _delete_chunk(tx: sqlite3.Connection, account_id: str, content_id: str) -> None:
    """Delete a chunk of a content, 0.7 ms of CPU, and after the last one its row."""
    statement = """
        DELETE FROM artifact_chunks WHERE account_id = ?1 AND content_id = ?2 AND number = (
            SELECT max(number) FROM artifact_chunks WHERE account_id = ?1 AND content_id = ?2)
    """
    if not tx.execute(statement, (account_id, content_id)).rowcount:
        tx.execute("DELETE FROM artifact_contents WHERE account_id = ? AND id = ?", (account_id, content_id))


_UNUSED = "SELECT account_id, id FROM artifact_contents WHERE unused LIMIT 1"
_OF_ACCOUNT = "SELECT account_id, id FROM artifact_contents WHERE account_id = ? LIMIT 1"
delete_some_unused = partial(delete_found, _UNUSED, _delete_chunk)
delete_some = partial(delete_found, _OF_ACCOUNT, _delete_chunk)  # for an account whose artifacts are already deleted


def delete_unused(tx: sqlite3.Connection) -> bool:
    """Delete a chunk of an unused content; return whether there was one."""
    row = tx.execute(_UNUSED).fetchone()
    if row is not None:
        _delete_chunk(tx, *row)
    return row is not None


async def finish_deletions(db: Database) -> None:
    """Delete unused contents before the server stops, for up to two seconds. The next start continues."""
    with contextlib.suppress(ApiError, TimeoutError):  # a full disk
        async with asyncio.timeout(_STOP_SECONDS):
            while await db.write_as("alone", delete_some_unused):
                pass
