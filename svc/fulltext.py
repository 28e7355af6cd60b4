"""Words of an account's own texts, found through FTS5 at a cost that does not depend on what other accounts wrote.

A table with such an index has `number INTEGER PRIMARY KEY` and `account_id`, and its words in the FTS5 table `<table>_text`. All
numbers of an account are in one block of 2^32, so that a search reads that range of the index alone.
"""

import math
import re
import sqlite3
from dataclasses import dataclass
from typing import Any, NamedTuple

_BLOCK_BITS = 32
_QUERY_CHARACTERS = 10_000
_TERMS = 32


class Bounds(NamedTuple):
    """The oldest and the newest number of an account."""

    oldest: int
    newest: int


def words_of(text: str) -> list[str]:
    """The distinct words of a query, the first 32 of them."""
    found = re.findall(r"\w+", text[:_QUERY_CHARACTERS])
    return list({word.lower(): word for word in found}.values())[:_TERMS]


def quoted(word: str) -> str:
    """A word as FTS5 takes it: it has a syntax of its own and fails on what people type."""
    return f'"{word}"'


@dataclass(frozen=True)
class Index:
    """The words of `column` in `table`. Written here, not by triggers: under trusted_schema = OFF those may not touch FTS5."""

    table: str
    column: str

    def next_number(self, tx: sqlite3.Connection, account_id: str) -> int:
        """The number of the account's next row: in its block, or in a new one behind all others."""
        row = tx.execute(
            f"SELECT (SELECT max(number) FROM {self.table} WHERE account_id = ?), (SELECT max(number) FROM {self.table})",  # noqa: S608
            (account_id,),
        ).fetchone()
        last, last_of_all = row
        if last is None:
            last = (((last_of_all or 0) >> _BLOCK_BITS) + 1) << _BLOCK_BITS
        number: int = last + 1
        return number

    def add(self, tx: sqlite3.Connection, number: int, text: str) -> None:
        tx.execute(f"INSERT INTO {self.table}_text (rowid, {self.column}) VALUES (?, ?)", (number, text))  # noqa: S608

    def remove(self, tx: sqlite3.Connection, account_id: str, condition: str, value: Any) -> None:
        """Takes out the account's rows that meet `condition`, such as `id = ?`. To be called before they change or go."""
        tx.execute(
            f"""
            INSERT INTO {self.table}_text ({self.table}_text, rowid, {self.column})
            SELECT 'delete', number, {self.column} FROM {self.table}
            WHERE account_id = ? AND {condition} AND {self.column} IS NOT NULL
            """,  # noqa: S608 - our own names
            (account_id, value),
        )

    def delete(self, tx: sqlite3.Connection, account_id: str, condition: str, value: Any) -> int:
        """Deletes the account's rows that meet `condition` with their words; how many there were."""
        self.remove(tx, account_id, condition, value)
        return tx.execute(f"DELETE FROM {self.table} WHERE account_id = ? AND {condition}", (account_id, value)).rowcount  # noqa: S608

    def delete_oldest(self, tx: sqlite3.Connection, account_id: str, most: int) -> bool:
        """Deletes the account's `most` oldest rows with their words; whether there are more."""
        row = tx.execute(
            f"SELECT number FROM {self.table} WHERE account_id = ? ORDER BY number LIMIT 1 OFFSET ?",  # noqa: S608
            (account_id, most),
        ).fetchone()
        self.delete(tx, account_id, "number < ?", math.inf if row is None else row["number"])
        return row is not None

    def bounds(self, conn: sqlite3.Connection, account_id: str) -> Bounds | None:
        """Where the account's rows are; None when it has none."""
        # Two queries: SQLite looks up a minimum or a maximum in an index, but counts through it for both at once.
        oldest, newest = conn.execute(
            f"""
            SELECT (SELECT min(number) FROM {self.table} WHERE account_id = :id),
                (SELECT max(number) FROM {self.table} WHERE account_id = :id)
            """,  # noqa: S608
            {"id": account_id},
        ).fetchone()
        return None if oldest is None else Bounds(oldest, newest)

    def newest_matches(self, conn: sqlite3.Connection, bounds: Bounds, match: str, most: int) -> list[int]:
        """The numbers within `bounds` whose texts meet an FTS5 expression of quoted words, newest first, at most `most`."""
        rows = conn.execute(
            f"""
            SELECT rowid FROM {self.table}_text WHERE {self.table}_text MATCH ? AND rowid BETWEEN ? AND ?
            ORDER BY rowid DESC LIMIT ?
            """,  # noqa: S608
            (match, *bounds, most),
        ).fetchall()
        return [row[0] for row in rows]
