"""The index of words in titles, and in messages in chunks of up to 1,000 characters.

The words of a chunk have the place number * 128 + chunk, those of a title number * 128 + version (word_runs.py).

add_message_words -> the first chunks, and for a long text a row of `unindexed` -> index_some, between other writes
"""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Iterable
from typing import NamedTuple

from svc.content import word_runs
from svc.content.word_runs import CHUNKS as CHUNKS
from svc.content.word_runs import tidy_some
from svc.content.words import indexed_words, is_unspaced, words_of
from svc.db import Database
from svc.errors import ApiError

INDEXED_CHARACTERS = 100_000
# Of their UTF-8. Queries read bytes, because SQLite's functions end a text at its first NUL.
INDEXED_BYTES = 4 * INDEXED_CHARACTERS
CHUNK_CHARACTERS = 1_000
_CHUNKS_AT_ONCE = 4
_INDEX_SECONDS = 0.002
_PURGE_SECONDS = 60.0


def chunks_of(text: str) -> list[str]:
    """Return the chunks of the first 100,000 characters of `text`, cut between words where possible."""
    chunks: list[str] = []
    start, end = 0, min(len(text), INDEXED_CHARACTERS)
    while start < end:
        cut = min(start + CHUNK_CHARACTERS, end)
        if cut < end:
            blank = text.rfind(" ", start + CHUNK_CHARACTERS * 4 // 5, cut)
            cut = blank if blank > 0 else cut
        chunks.append(text[start:cut])
        start = cut
    return chunks


class Index(NamedTuple):
    """The words of titles or of messages, by their mark in word_runs.py."""

    mark: str

    def add(self, tx: sqlite3.Connection, account_id: str, place: int, text: str) -> None:
        word_runs.add(tx, account_id, self.mark, place, indexed_words(text))

    def remove(self, tx: sqlite3.Connection, account_id: str, first: int, end: int, size_bytes: int) -> None:
        """Remove the places from `first` to below `end` of a text that this transaction deletes."""
        word_runs.remove(tx, account_id, self.mark, first, end, size_bytes)

    def newest(
        self, conn: sqlite3.Connection, account_id: str, words: Iterable[str], most: int, *, beginning: bool = False
    ) -> list[int]:
        """Return the `most` newest places of any of the folded `words`, or with `beginning` of words that begin so."""
        whole: list[str] = []
        begun: list[str] = []
        for word in words:
            (begun if beginning or (len(word) == 1 and is_unspaced(word)) else whole).append(word)
        found = word_runs.newest_places(conn, account_id, self.mark, whole, most) if whole else []
        if begun:
            found += word_runs.newest_places(conn, account_id, self.mark, begun, most, beginning=True)
        return sorted(set(found), reverse=True)[:most]


TITLES, MESSAGES = Index("="), Index("")


def distinct_words(text: str) -> list[str]:
    return list(dict.fromkeys(words_of(text)))


def add_message_words(tx: sqlite3.Connection, account_id: str, number: int, text: str) -> None:
    """Index a message. For a long one `index_some` does the rest."""
    chunks = chunks_of(text)
    if len(chunks) > _CHUNKS_AT_ONCE:
        tx.execute("INSERT INTO unindexed (number, next_chunk) VALUES (?, ?)", (number, _CHUNKS_AT_ONCE))
    for chunk, part in enumerate(chunks[:_CHUNKS_AT_ONCE]):
        MESSAGES.add(tx, account_id, number * CHUNKS + chunk, part)


def index_later(tx: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Let `index_some` index the messages with these numbers."""
    tx.executemany("INSERT INTO unindexed (number, next_chunk) VALUES (?, 0)", [(number,) for number in numbers])


def index_some(tx: sqlite3.Connection) -> bool:
    """Index more chunks of a long message, or tidy the index, for some milliseconds; return whether there was work."""
    ends = time.monotonic() + _INDEX_SECONDS
    indexed = _index_chunks(tx, ends)
    if indexed and time.monotonic() > ends:
        return True
    return tidy_some(tx) or indexed


def _index_chunks(tx: sqlite3.Connection, ends: float) -> bool:
    row = tx.execute(
        """
        SELECT unindexed.number, next_chunk, account_id, substr(CAST(content AS BLOB), 1, ?)
        FROM unindexed JOIN messages USING (number) ORDER BY next_chunk, unindexed.number LIMIT 1 -- all advance alike
        """,
        (INDEXED_BYTES,),
    ).fetchone()
    if row is None:
        return False
    number, next_chunk, account_id, content = row
    chunks = chunks_of(content.decode(errors="ignore"))
    for part in chunks[next_chunk:]:
        MESSAGES.add(tx, account_id, number * CHUNKS + next_chunk, part)
        next_chunk += 1
        if time.monotonic() > ends:
            break
    if next_chunk < len(chunks):
        tx.execute("UPDATE unindexed SET next_chunk = ? WHERE number = ?", (next_chunk, number))
    else:
        tx.execute("DELETE FROM unindexed WHERE number = ?", (number,))
    return True


async def purge_in_time(db: Database) -> None:
    """Wake the writer once a minute for due purges. Without this it checks them only when something is written."""
    while True:
        await asyncio.sleep(_PURGE_SECONDS)
        with contextlib.suppress(ApiError):  # a full disk
            await db.write(lambda tx: None)


def remove_message_words(tx: sqlite3.Connection, account_id: str, number: int) -> None:
    """Remove the words of a message that this transaction deletes."""
    size = "SELECT length(CAST(content AS BLOB)) FROM messages WHERE account_id = ? AND number = ?"
    size_bytes = tx.execute(size, (account_id, number)).fetchone()[0]
    MESSAGES.remove(tx, account_id, number * CHUNKS, (number + 1) * CHUNKS, size_bytes)
