"""The index of words in titles, and in messages in pieces of up to 1,000 characters.

The words of a piece have the place number * 128 + piece, those of a title number * 128 + version (word_runs.py).

add_message_words -> the first pieces, and for a long text a row of `unindexed` -> index_some, between other writes
"""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Iterable
from typing import NamedTuple

from svc.content import word_runs
from svc.content.word_runs import PIECES as PIECES
from svc.content.word_runs import tidy_some
from svc.content.words import indexed_words, is_unspaced, words_of
from svc.db import Database
from svc.errors import ApiError

INDEXED_CHARACTERS = 100_000
PIECE_CHARACTERS = 1_000
_PIECES_AT_ONCE = 4
_INDEX_SECONDS = 0.002
_PURGE_SECONDS = 60.0


def pieces_of(text: str) -> list[str]:
    """Return the pieces of the first 100,000 characters of `text`, cut between words where possible."""
    pieces: list[str] = []
    start, end = 0, min(len(text), INDEXED_CHARACTERS)
    while start < end:
        cut = min(start + PIECE_CHARACTERS, end)
        if cut < end:
            blank = text.rfind(" ", start + PIECE_CHARACTERS * 4 // 5, cut)
            cut = blank if blank > 0 else cut
        pieces.append(text[start:cut])
        start = cut
    return pieces


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
    pieces = pieces_of(text)
    if len(pieces) > _PIECES_AT_ONCE:
        tx.execute("INSERT INTO unindexed (number, next_piece) VALUES (?, ?)", (number, _PIECES_AT_ONCE))
    for piece, part in enumerate(pieces[:_PIECES_AT_ONCE]):
        MESSAGES.add(tx, account_id, number * PIECES + piece, part)


def index_some(tx: sqlite3.Connection) -> bool:
    """Index more pieces of a long message, or tidy the index, for some milliseconds; return whether there was work."""
    ends = time.monotonic() + _INDEX_SECONDS
    indexed = _index_pieces(tx, ends)
    if indexed and time.monotonic() > ends:
        return True
    return tidy_some(tx) or indexed


def _index_pieces(tx: sqlite3.Connection, ends: float) -> bool:
    row = tx.execute(
        """
        SELECT unindexed.number, next_piece, account_id, substr(content, 1, ?)
        FROM unindexed JOIN messages USING (number) ORDER BY next_piece, unindexed.number LIMIT 1 -- all advance alike
        """,
        (INDEXED_CHARACTERS,),
    ).fetchone()
    if row is None:
        return False
    number, next_piece, account_id, content = row
    pieces = pieces_of(content)
    for part in pieces[next_piece:]:
        MESSAGES.add(tx, account_id, number * PIECES + next_piece, part)
        next_piece += 1
        if time.monotonic() > ends:
            break
    if next_piece < len(pieces):
        tx.execute("UPDATE unindexed SET next_piece = ? WHERE number = ?", (next_piece, number))
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
    MESSAGES.remove(tx, account_id, number * PIECES, (number + 1) * PIECES, size_bytes)
