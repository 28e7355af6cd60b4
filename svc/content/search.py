"""The search over conversations: every word somewhere in a conversation or its title, the last one as a beginning."""

import sqlite3
from typing import Any, NamedTuple

from svc.content.conversations import Conversation, conversations_page
from svc.content.fulltext import MESSAGES, PIECES, TITLES, distinct_words, pieces_of
from svc.content.words import is_unspaced, places_of
from svc.db import Page

QUERY_LENGTH = 500
# Of so many pieces of messages the newest count; a word in more of them is taken to be everywhere.
_HITS = 10_000
_WORDS = 32
_BEFORE, _SHOWN = 60, 200


class Match(NamedTuple):
    """A conversation with what of it a search has found; `message` is the id of the message, None where its title holds all."""

    conversation: Conversation
    snippets: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        """The conversation as the API shows it, with `matches`: texts in parts, of which those that were found are told."""
        return {**self.conversation.as_json(), "matches": self.snippets}


def search(
    conn: sqlite3.Connection, account_id: str, query: str, limit: int, after: str | None, project_id: str | None
) -> Page[Match]:
    """A page of the account's conversations that hold all words of `query`, the last used first; without any word in it, none.

    Raises ApiError `invalid_value` for an `after` that is none of them.
    """
    words = distinct_words(query[:QUERY_LENGTH])[:_WORDS]
    beginning = None if not words or query[-1].isspace() or is_unspaced(words[-1]) else words.pop()
    by_word = [_conversations_with(conn, account_id, word, beginning=False) for word in words]
    if beginning is not None:
        by_word.append(_conversations_with(conn, account_id, beginning, beginning=True))
    rare = [found for found in by_word if len(found.places) < _HITS] or by_word[:1]
    numbers = set.intersection(*(set(found.newest) for found in rare)) if rare else set()
    rarest = min(rare, key=lambda found: len(found.places), default=None)
    found = conversations_page(conn, account_id, limit, after, project_id, sorted(numbers))
    return found.of(
        lambda one: Match(one, _snippets(conn, one, rarest.newest.get(one.number) if rarest else None, set(words), beginning))
    )


class _Found(NamedTuple):
    places: list[int]
    newest: dict[int, int | None]  # the newest piece with the word in each conversation, None where only its title holds it


def _conversations_with(conn: sqlite3.Connection, account_id: str, word: str, *, beginning: bool) -> _Found:
    places = MESSAGES.newest(conn, account_id, [word], _HITS, beginning=beginning)
    titles = TITLES.newest(conn, account_id, [word], _HITS, beginning=beginning)
    newest: dict[int, int | None] = dict.fromkeys(titles)
    rows = conn.execute(
        """
        SELECT conversations.number, json_each.value
        -- In this order: else it looks at every message.
        FROM json_each(?) CROSS JOIN messages ON messages.number = json_each.value / ?
            JOIN conversations ON conversations.account_id = messages.account_id AND conversations.id = messages.conversation_id
        WHERE messages.account_id = ?
        """,
        (str(places), PIECES, account_id),
    )
    for number, place in rows:
        if newest.get(number) is None:
            newest[number] = place
    return _Found(places, newest)


def _snippets(
    conn: sqlite3.Connection, conversation: Conversation, place: int | None, words: set[str], beginning: str | None
) -> list[dict[str, Any]]:
    """What was found in the title, and around one of the words in a message."""
    shown = []
    if conversation.title is not None and places_of(conversation.title, words, beginning):
        shown.append({"message_id": None, "parts": _parts(conversation.title, words, beginning)})
    if place is not None:
        number, piece = divmod(place, PIECES)
        row = conn.execute(
            "SELECT id, content FROM messages WHERE account_id = ? AND number = ?", (conversation.account_id, number)
        ).fetchone()
        text = pieces_of(row["content"])[piece]
        first = next((start for start, _ in places_of(text, words, beginning)), 0)
        start = max(0, first - _BEFORE)
        cut = text[start : start + _SHOWN]
        shown.append({"message_id": row["id"], "parts": _parts(cut, words, beginning)})
    return shown


def _parts(text: str, words: set[str], beginning: str | None) -> list[dict[str, Any]]:
    """`text` cut in parts, those that were found apart from the others; together they are the text."""
    parts, at = [], 0
    for start, end in places_of(text, words, beginning):
        if start > at:
            parts.append({"text": text[at:start], "found": False})
        parts.append({"text": text[start:end], "found": True})
        at = end
    if at < len(text):
        parts.append({"text": text[at:], "found": False})
    return parts
