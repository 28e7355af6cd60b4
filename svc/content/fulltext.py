"""Words of an account's own texts, found through FTS5 at a cost that does not depend on what other accounts wrote.

A table with such an index has `number INTEGER PRIMARY KEY` and `account_id`, and its words in the FTS5 table `<table>_text`. Each
word stands there behind its account's id: a search reads the entries of that account alone, and common words cost nobody else.
"""

import re
import sqlite3
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_INDEXED_CHARACTERS = 100_000
_QUERY_CHARACTERS = 10_000
_TERMS = 32
_WORD_LENGTH = 64
_DELETED_ROWS = 500
_DELETED_CHARACTERS = 2_000_000
# Thai, Khmer, Chinese, Japanese, Korean and their kin: words have no spaces between, so each character is one.
_UNSPACED = "\u0e00-\u109f\u1780-\u17ff\u3040-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_ACCENT = re.compile("[\u0300-\u036f]+")


def words_of(query: str) -> list[str]:
    """The distinct words of a query, the first 32 of them, without case and accents."""
    return list(dict.fromkeys(_words(query[:_QUERY_CHARACTERS])))[:_TERMS]


def _words(text: str) -> Iterable[str]:
    bare = _ACCENT.sub("", unicodedata.normalize("NFD", text))
    return (word[:_WORD_LENGTH] for word in _WORD.findall(unicodedata.normalize("NFKC", bare).lower()))


def _terms(account_id: str, words: Iterable[str]) -> list[str]:
    prefix = account_id.replace("_", "")
    return [prefix + word for word in words]


@dataclass(frozen=True)
class Index:
    """The words of `column` in `table`. Written here, not by triggers: under trusted_schema = OFF those may not touch FTS5."""

    table: str
    column: str

    def add(self, tx: sqlite3.Connection, account_id: str, number: int, text: str) -> None:
        """Indexes the first 100,000 characters of `text`, which is the account's row `number`."""
        tx.execute(
            f"INSERT INTO {self.table}_text (rowid, words) VALUES (?, ?)",  # noqa: S608
            (number, _entry(account_id, text)),
        )

    def remove(self, tx: sqlite3.Connection, account_id: str, number: int, text: str) -> None:
        """Takes out what `add` has put in."""
        tx.execute(
            f"INSERT INTO {self.table}_text ({self.table}_text, rowid, words) VALUES ('delete', ?, ?)",  # noqa: S608
            (number, _entry(account_id, text)),
        )

    def delete_some(self, tx: sqlite3.Connection, account_id: str, condition: str = "1", *values: Any) -> bool:
        """Deletes some of the account's rows that meet `condition`, such as `id = ?`, with their words; whether there are more.

        To be called until there are none: all at once would hold up everybody else's writes.
        """
        rows = tx.execute(
            f"SELECT number, {self.column} FROM {self.table} WHERE account_id = ? AND {condition} ORDER BY number",  # noqa: S608
            (account_id, *values),
        )
        characters = 0
        for count, (number, text) in enumerate(rows):
            if count == _DELETED_ROWS or characters > _DELETED_CHARACTERS:
                rows.close()
                return True
            if text is not None:
                self.remove(tx, account_id, number, text)
                characters += min(len(text), _INDEXED_CHARACTERS)
            tx.execute(f"DELETE FROM {self.table} WHERE account_id = ? AND number = ?", (account_id, number))  # noqa: S608
        return False

    def newest(self, conn: sqlite3.Connection, account_id: str, words: Iterable[str], most: int) -> list[int]:
        """The numbers of the account's rows that hold all of `words` (of `words_of`, at least one): the `most` newest first."""
        rows = conn.execute(
            f"SELECT rowid FROM {self.table}_text WHERE {self.table}_text MATCH ? ORDER BY rowid DESC LIMIT ?",  # noqa: S608
            (" AND ".join(f'"{term}"' for term in _terms(account_id, words)), most),
        ).fetchall()
        return [row[0] for row in rows]


def _entry(account_id: str, text: str) -> str:
    return " ".join(_terms(account_id, dict.fromkeys(_words(text[:_INDEXED_CHARACTERS]))))
