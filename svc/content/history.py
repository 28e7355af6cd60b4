"""What an account said and was told in its sessions: messages, and how words find them again (contract 4, 5 and 8)."""

import heapq
import math
import sqlite3
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from svc.content.fulltext import Index, words_of
from svc.db import Page, page
from svc.errors import ApiError
from svc.ids import new_id, timestamp

MOST_PASSAGES = 5
MESSAGE_LENGTH = 1_000_000
_PASSAGE_CHARACTERS = 1_000
_INDEX = Index("messages", "content")
# How many of a word's newest messages are weighed against those of the other words; of these, how many are looked at.
_HITS = 100
_CANDIDATES = 50
_MATCHES = 10_000


@dataclass(frozen=True)
class Message:
    """A row of `messages`; `number` is its order and its place in the index of words, `created_at` is in Unix seconds."""

    number: int
    id: str
    account_id: str
    conversation_id: str | None
    run_id: str | None
    role: str
    content: str
    model: str | None
    created_at: float

    def as_json(self) -> dict[str, Any]:
        """The message of a conversation as the API shows it."""
        return {
            "id": self.id,
            "conversation_id": self.conversation_id,
            "role": self.role,
            "content": self.content,
            "model": self.model,
            "created_at": timestamp(self.created_at),
        }


def add_message(
    tx: sqlite3.Connection,
    account_id: str,
    *,
    role: str,
    content: str,
    now_seconds: float,
    conversation_id: str | None = None,
    run_id: str | None = None,
    model: str | None = None,
) -> Message:
    """Keeps what was said in a conversation or in an agent run, its first million characters, and returns it.

    Raises sqlite3.IntegrityError when the conversation or the account is gone.
    """
    # A model's answer may hold half an emoji, which neither UTF-8 nor the database takes.
    content = content[:MESSAGE_LENGTH].encode("utf-8", "replace").decode()
    row = tx.execute(
        """
        INSERT INTO messages (id, account_id, conversation_id, run_id, role, content, model, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING *
        """,
        (new_id("msg", now_seconds), account_id, conversation_id, run_id, role, content, model, now_seconds),
    ).fetchone()
    _INDEX.add(tx, account_id, row["number"], content)
    return Message(**row)


def messages_page(
    conn: sqlite3.Connection, account_id: str, conversation_id: str, limit: int, after: str | None
) -> Page[Message]:
    """A page of a conversation's messages, newest first, as svc/db.py's `page`."""
    rows = page(conn, "messages", account_id, limit, after, order=("number",), conversation_id=conversation_id)
    return rows.of(lambda row: Message(**row))


def delete_some(tx: sqlite3.Connection, account_id: str, conversation_id: str | None = None) -> bool:
    """Deletes some messages of a conversation, or of the whole account; whether there are more."""
    if conversation_id is None:
        return _INDEX.delete_some(tx, account_id)
    return _INDEX.delete_some(tx, account_id, "conversation_id = ?", conversation_id)


def delete_some_between(tx: sqlite3.Connection, account_id: str, conversation_id: str, first: int, end: int) -> bool:
    """Deletes some of a conversation's messages whose number is at least `first` and below `end`; whether there are more."""
    condition = "conversation_id = ? AND number >= ? AND number < ?"
    return _INDEX.delete_some(tx, account_id, condition, conversation_id, first, end)


def message_by_id(conn: sqlite3.Connection, account_id: str, conversation_id: str, message_id: str, param: str) -> Message:
    """One message of a conversation. Raises ApiError `not_found`; `param` names what in the request referred to it."""
    row = conn.execute(
        "SELECT * FROM messages WHERE account_id = ? AND conversation_id = ? AND id = ?",
        (account_id, conversation_id, message_id),
    ).fetchone()
    if row is None:
        raise ApiError("not_found", "There is no such message in this conversation.", param=param)
    return Message(**row)


def matching_conversations(conn: sqlite3.Connection, account_id: str, words: list[str]) -> list[int]:
    """The numbers of the conversations of the messages that hold all of `words`; only the newest 10,000 such messages count."""
    rows = conn.execute(
        """
        SELECT DISTINCT conversations.number
        -- In this order: else it looks at every message.
        FROM json_each(?) CROSS JOIN messages ON messages.number = json_each.value
            JOIN conversations ON conversations.account_id = messages.account_id AND conversations.id = messages.conversation_id
        WHERE messages.account_id = ?
        """,
        (str(_INDEX.newest(conn, account_id, words, _MATCHES)), account_id),
    ).fetchall()
    return [row["number"] for row in rows]


def matching_passages(
    conn: sqlite3.Connection, account_id: str, query: str, known: Collection[str] = frozenset()
) -> list[dict[str, Any]]:
    """Up to 5 passages of the account that hold words of `query`, best first: `text`, `source`, `created_at`.

    `source` is the id of a conversation or a run. What is in `known` as a whole is left out.
    """
    words = words_of(query)
    passages: list[dict[str, Any]] = []
    told = set(known)
    for number in _best_matches(conn, account_id, words):
        row = conn.execute("SELECT * FROM messages WHERE account_id = ? AND number = ?", (account_id, number)).fetchone()
        if row["content"] in told:
            continue
        told.add(row["content"])
        passages.append(
            {
                "text": _passage(row["content"], words),
                "source": row["conversation_id"] or row["run_id"],
                "created_at": timestamp(row["created_at"]),
            }
        )
        if len(passages) == MOST_PASSAGES:
            break
    return passages


def _best_matches(conn: sqlite3.Connection, account_id: str, words: list[str]) -> list[int]:
    """The numbers of the messages that hold the most and the rarest of `words`, of equal ones the newest first.

    FTS5's own rank would read every message with a common word, of all accounts; this reads the newest of each word.
    """
    scores: defaultdict[int, float] = defaultdict(float)
    for word in words:
        numbers = _INDEX.newest(conn, account_id, [word], _HITS)
        rarity = math.log(1 + _HITS / len(numbers)) ** 2 if numbers else 0.0
        for number in numbers:
            scores[number] += rarity
    return heapq.nlargest(_CANDIDATES, scores, key=lambda number: (scores[number], number))


def _passage(text: str, words: list[str]) -> str:
    """`text`, or of a long one what is around the longest of `words` that is in it as it was typed."""
    if len(text) <= _PASSAGE_CHARACTERS:
        return text
    lowered = text.lower()
    places = (lowered.find(word) for word in sorted(words, key=len, reverse=True))
    place = next((place for place in places if place >= 0), 0)
    start = max(0, min(place - _PASSAGE_CHARACTERS // 4, len(text) - _PASSAGE_CHARACTERS))
    passage = text[start : start + _PASSAGE_CHARACTERS]
    return ("…" if start else "") + passage + ("…" if start + _PASSAGE_CHARACTERS < len(text) else "")
