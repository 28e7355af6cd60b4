"""What an account said and was told in its sessions, found again by its words (contract 4 and 5)."""

import re
import sqlite3
from typing import Any

from svc.ids import timestamp

MOST_PASSAGES = 5
_PASSAGE_CHARACTERS = 2_000
_TERMS = 32


def add_passage(tx: sqlite3.Connection, account_id: str, source: str, text: str, now_seconds: float) -> None:
    """Remembers `text`, said in `source` (the id of a run); a blank one is nothing to remember."""
    text = text[:_PASSAGE_CHARACTERS]
    if text.strip():
        number = tx.execute(
            "INSERT INTO passages (account_id, source, text, created_at) VALUES (?, ?, ?, ?)",
            (account_id, source, text, now_seconds),
        ).lastrowid
        tx.execute("INSERT INTO passages_text (rowid, text) VALUES (?, ?)", (number, text))


def forget(tx: sqlite3.Connection, account_id: str) -> None:
    """Removes everything that was remembered of an account, from the index of words too. To be called before it is deleted."""
    tx.execute(
        """
        INSERT INTO passages_text (passages_text, rowid, text)
        SELECT 'delete', id, text FROM passages WHERE account_id = ?
        """,
        (account_id,),
    )
    tx.execute("DELETE FROM passages WHERE account_id = ?", (account_id,))


def matching_passages(conn: sqlite3.Connection, account_id: str, query: str) -> list[dict[str, Any]]:
    """Up to 5 passages of the account that hold words of `query`, best first: `text`, `source`, `created_at`."""
    # FTS5 has a syntax of its own and fails on what people type: each word is quoted, and only so many are asked for.
    terms = [f'"{word}"' for word in re.findall(r"\w+", query)[:_TERMS]]
    if not terms:
        return []
    rows = conn.execute(
        """
        SELECT passages.text, passages.source, passages.created_at
        FROM passages_text JOIN passages ON passages.id = passages_text.rowid
        WHERE passages_text MATCH ? AND passages.account_id = ?
        ORDER BY passages_text.rank LIMIT ?
        """,
        (" OR ".join(terms), account_id, MOST_PASSAGES),
    ).fetchall()
    return [{"text": row["text"], "source": row["source"], "created_at": timestamp(row["created_at"])} for row in rows]
