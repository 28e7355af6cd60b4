"""Words of an account's own texts, found through FTS5 at a cost that does not depend on what other accounts wrote.

A table with such an index has `number INTEGER PRIMARY KEY` and `account_id`, and its words in the FTS5 table `<table>_text`: the
words of each piece of a message are an entry of their own: place = number * 128 + piece. Each word stands there behind its
account's id: a search reads the entries of that account alone, and common words cost nobody else.

add -> the first pieces at once, of a long text a row of `unindexed` -> index_some, between others' writes, until none is left
"""

import sqlite3
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from svc.budget import spent
from svc.content.words import LEAST_MISSPELT, are_forms, is_near, is_unspaced, words_of
from svc.db import run_some

INDEXED_CHARACTERS = 100_000
PIECE_CHARACTERS = 1_000
PIECES = 128
_PIECES_AT_ONCE = 4
_MERGED_PAGES = 8  # of 500 bytes each
_MERGE_SECONDS = 0.005
_FORMS_READ = 300
_FORMS_KEPT = 12
_NEAR_READ = 1_500
_NEAR_KEPT = 8


def pieces_of(text: str) -> list[str]:
    """The pieces in which the first 100,000 characters of `text` are indexed, cut between words where there are any."""
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


def _terms(account_id: str, words: Iterable[str]) -> list[str]:
    prefix = account_id.replace("_", "")
    return [prefix + word for word in words]


class Index(NamedTuple):
    """The words of a column in `table`. Written here, not by triggers: under trusted_schema = OFF those may not touch FTS5."""

    table: str

    def add_piece(self, tx: sqlite3.Connection, account_id: str, place: int, words: Iterable[str]) -> None:
        tx.execute(
            f"INSERT INTO {self.table}_text (rowid, words) VALUES (?, ?)",  # noqa: S608
            (place, " ".join(_terms(account_id, words))),
        )

    def remove_piece(self, tx: sqlite3.Connection, account_id: str, place: int, words: Iterable[str]) -> None:
        """Takes out what `add_piece` has put in."""
        tx.execute(
            f"INSERT INTO {self.table}_text ({self.table}_text, rowid, words) VALUES ('delete', ?, ?)",  # noqa: S608
            (place, " ".join(_terms(account_id, words))),
        )

    def newest(
        self, conn: sqlite3.Connection, account_id: str, words: Iterable[str], most: int, *, beginning: bool = False
    ) -> list[int]:
        """The places of the account's pieces that hold any of `words` (folded, at least one), the `most` newest first.

        With `beginning`, those that hold a word which begins so.
        """
        star = " *" if beginning else ""
        query = " OR ".join(f'"{term}"{star}' for term in _terms(account_id, words))
        rows = conn.execute(
            f"SELECT rowid FROM {self.table}_text WHERE {self.table}_text MATCH ? ORDER BY rowid DESC LIMIT ?",  # noqa: S608
            (query, most),
        ).fetchall()
        return [row[0] for row in rows]


TITLES, MESSAGES = Index("conversations"), Index("messages")


def distinct_words(text: str) -> list[str]:
    return list(dict.fromkeys(words_of(text)))


# --- the words of messages: in pieces, with a vocabulary in which forms and misspellings are looked up


def add_message_words(tx: sqlite3.Connection, account_id: str, number: int, text: str) -> None:
    """Indexes what was said, of a long text only the beginning: `index_some` does the rest."""
    pieces = pieces_of(text)
    if len(pieces) > _PIECES_AT_ONCE:
        tx.execute("INSERT INTO unindexed (number, next_piece) VALUES (?, ?)", (number, _PIECES_AT_ONCE))
    for piece, part in enumerate(pieces[:_PIECES_AT_ONCE]):
        _add_part(tx, account_id, number * PIECES + piece, part)


def _add_part(tx: sqlite3.Connection, account_id: str, place: int, part: str) -> None:
    words = distinct_words(part)
    MESSAGES.add_piece(tx, account_id, place, words)
    tx.executemany(
        "INSERT OR IGNORE INTO vocabulary (account_id, word, backwards) VALUES (?, ?, ?)",
        ((account_id, word, word[::-1]) for word in words if not is_unspaced(word)),
    )


def index_some(tx: sqlite3.Connection) -> bool:
    """Indexes one more piece of a long message; whether any message still waits. It takes a few milliseconds."""
    row = tx.execute(
        """
        SELECT unindexed.number, next_piece, account_id, substr(content, 1, ?)
        FROM unindexed JOIN messages USING (number) ORDER BY next_piece, unindexed.number LIMIT 1 -- so that all get on alike
        """,
        (INDEXED_CHARACTERS,),
    ).fetchone()
    if row is None:
        return False
    number, next_piece, account_id, content = row
    pieces = pieces_of(content)
    if next_piece < len(pieces):
        _add_part(tx, account_id, number * PIECES + next_piece, pieces[next_piece])
    if next_piece + 1 < len(pieces):
        tx.execute("UPDATE unindexed SET next_piece = next_piece + 1 WHERE number = ?", (number,))
    else:
        tx.execute("DELETE FROM unindexed WHERE number = ?", (number,))
    return True


def remove_last_words(tx: sqlite3.Connection, account_id: str, number: int, text: str) -> tuple[str, set[str]]:
    """Takes the last pieces of a message out of the index, and out of what waits for it: what is left of its text, and the words
    that are not in that any more, or still are, for `forget_words`."""
    pieces = pieces_of(text)
    waiting = tx.execute("DELETE FROM unindexed WHERE number = ? RETURNING next_piece", (number,)).fetchone()
    if waiting is not None:
        del pieces[waiting[0] :]
    found: set[str] = set()
    for piece in range(max(len(pieces) - _PIECES_AT_ONCE, 0), len(pieces)):
        words = distinct_words(pieces[piece])
        MESSAGES.remove_piece(tx, account_id, number * PIECES + piece, words)
        found.update(words)
    return "".join(pieces[:-_PIECES_AT_ONCE]), found


def forget_words(tx: sqlite3.Connection, account_id: str, words: Iterable[str]) -> None:
    """Takes those of `words` that stand in no message any more out of the vocabulary."""
    for word in words:
        if not is_unspaced(word) and not MESSAGES.newest(tx, account_id, [word], 1):
            tx.execute("DELETE FROM vocabulary WHERE account_id = ? AND word = ?", (account_id, word))


def forget_vocabulary(tx: sqlite3.Connection, account_id: str) -> bool:
    """Deletes words of an account for 5 ms; whether there are more."""
    own = "SELECT word FROM vocabulary WHERE account_id = ?1 LIMIT ?2"
    return run_some(tx, f"DELETE FROM vocabulary WHERE account_id = ?1 AND word IN ({own})", account_id)  # noqa: S608 - our own words


def begin_merge(tx: sqlite3.Connection) -> None:
    """Begins to merge both indexes into one part each, which takes what was deleted out of them: else it stays in old parts."""
    _merge(tx, -_MERGED_PAGES)


def merge_some(tx: sqlite3.Connection) -> bool:
    """Merges for 5 ms; whether there is more to do."""
    ends = time.monotonic() + _MERGE_SECONDS
    while True:
        before = tx.total_changes
        _merge(tx, _MERGED_PAGES)
        if tx.total_changes - before <= 2:  # each of the two statements counts as one change itself
            return False
        if time.monotonic() > ends:
            return True


def _merge(tx: sqlite3.Connection, pages: int) -> None:
    for table in ("conversations_text", "messages_text"):
        tx.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (pages,))  # noqa: S608 - our own names


def forms_of(conn: sqlite3.Connection, account_id: str, word: str) -> list[str]:
    """The words that the account has used which are forms of the folded `word`, up to 12, itself first if it has been used."""
    if is_unspaced(word):
        return [word]
    # Forms of one word begin alike, and a word may be the beginning of a longer one: Zahnarzt in Zahnarzttermin.
    beginning = word[: max(3, min(5, len(word) - 2))]
    found: list[str] = []
    if not any(sign.isdigit() for sign in word):  # numbers have no forms
        found = [other for other in _beginning_with(conn, account_id, beginning, _FORMS_READ) if are_forms(word, other)]
    known = conn.execute("SELECT word FROM vocabulary WHERE account_id = ? AND word = ?", (account_id, word)).fetchone()
    return list(dict.fromkeys([word, *found] if known else found))[:_FORMS_KEPT]


def near_words(conn: sqlite3.Connection, account_id: str, word: str) -> list[str]:
    """The words that the account has used of which the folded `word` may be a misspelling, up to 8."""
    if is_unspaced(word) or len(word) < LEAST_MISSPELT or any(sign.isdigit() for sign in word):
        return []
    alike = [*_beginning_with(conn, account_id, word[:2], _NEAR_READ, len(word)), *_ending_with(conn, account_id, word)]
    found = []
    for other in dict.fromkeys(alike):
        if spent():
            break
        if is_near(word, other):
            found.append(other)
    return found[:_NEAR_KEPT]


def _beginning_with(
    conn: sqlite3.Connection, account_id: str, beginning: str, most: int, length: int | None = None
) -> Iterator[str]:
    rows = conn.execute(
        """
        SELECT word FROM vocabulary WHERE account_id = :account_id AND word >= :first AND word < :last
            AND (:length IS NULL OR length(word) BETWEEN :length - 2 AND :length + 2) LIMIT :most
        """,
        {"account_id": account_id, "first": beginning, "last": beginning + "\U0010ffff", "length": length, "most": most},
    )
    return (row[0] for row in rows)


def _ending_with(conn: sqlite3.Connection, account_id: str, word: str) -> Iterator[str]:
    ending = word[:-4:-1]
    rows = conn.execute(
        """
        SELECT word FROM vocabulary WHERE account_id = :account_id AND backwards >= :first AND backwards < :last
            AND length(word) BETWEEN :length - 2 AND :length + 2 LIMIT :most
        """,
        {"account_id": account_id, "first": ending, "last": ending + "\U0010ffff", "length": len(word), "most": _NEAR_READ},
    )
    return (row[0] for row in rows)
