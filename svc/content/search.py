"""Search conversations that have every word in a message or the title; the last word may be the beginning of one."""

import sqlite3
from typing import Any

from svc.budget import best_effort, spent
from svc.content import conversations, history
from svc.content.conversations import Conversation
from svc.content.fulltext import distinct_words
from svc.content.word_runs import CHUNKS, MESSAGES, TITLES
from svc.content.words import is_unspaced, places_of

QUERY_LENGTH = 500
# The newest chunks of messages that are read for a word. A word in more of them counts as being everywhere.
_HITS = 10_000
_WORDS = 32
# CPU time for each of three steps: looking up the words, finding their conversations, cutting the snippets.
_STEP_SECONDS = 0.25
_BEFORE, _SNIPPET_CHARACTERS = 60, 200


def search(
    conn: sqlite3.Connection, account_id: str, query: str, limit: int, after: str | None, project_id: str | None
) -> dict[str, Any]:
    """Return a list of the account's conversations with all words of `query`, as the API shows it.

    Each has `matches`: texts in parts, which are found or not. If the list is `incomplete`, the search ran out of CPU
    time. Raises ApiError `invalid_value` if `after` is no id of a conversation.
    """
    words = distinct_words(query[:QUERY_LENGTH])[:_WORDS]
    beginning = None if not words or query[-1].isspace() or is_unspaced(words[-1]) else words.pop()
    asked = [(word, False) for word in words] + ([] if beginning is None else [(beginning, True)])
    by_word: list[tuple[list[int], list[int]]] = []  # the newest chunks of messages, and the titles, with a word
    incomplete = True
    with best_effort(_STEP_SECONDS):
        for word, is_beginning in asked:
            chunks = MESSAGES.newest(conn, account_id, [word], _HITS, beginning=is_beginning)
            titles = TITLES.newest(conn, account_id, [word], _HITS, beginning=is_beginning)
            if by_word and spent():  # places of this word may be missing, and then conversations would be
                break
            by_word.append((chunks, titles))
        incomplete = spent()
    rare = sorted((found for found in by_word if len(found[0]) < _HITS), key=lambda found: len(found[0])) or by_word[:1]
    newest: list[dict[int, int | None]] = []
    with best_effort(_STEP_SECONDS):
        conversation_of: dict[int, int] = {}
        for chunks, titles in rare:
            if spent():
                break
            newest.append(_newest_by_conversation(conn, account_id, chunks, titles, conversation_of))
    numbers = set.intersection(*map(set, newest)) if newest else set()
    page = conversations.TABLE.page(conn, account_id, limit, after, project_id=project_id, number=sorted(numbers))
    items = [{**one.as_json(), "matches": []} for one in page.items]
    shown = 0
    with best_effort(_STEP_SECONDS):
        for item, one in zip(items, page.items, strict=True):
            if spent():
                break
            item["matches"] = _snippets(conn, one, newest[0].get(one.number), set(words), beginning)
            shown += 1
    incomplete = incomplete or len(newest) < len(rare) or shown < len(items)
    return {"object": "list", "data": items, "has_more": page.has_more, "incomplete": incomplete}


def _newest_by_conversation(
    conn: sqlite3.Connection, account_id: str, chunks: list[int], titles: list[int], conversation_of: dict[int, int]
) -> dict[int, int | None]:
    """Return the newest chunk with the word in each conversation, or None if only the title has it.

    Common words are in the same messages, so `conversation_of` caches the conversation of each message.
    """
    unknown = {place // CHUNKS for place in chunks} - conversation_of.keys()
    query = """
        SELECT messages.number, conversations.number
        -- In this order: else it reads every message.
        FROM json_each(?) CROSS JOIN messages ON messages.number = json_each.value
            JOIN conversations ON conversations.account_id = messages.account_id
                AND conversations.id = messages.conversation_id
        WHERE messages.account_id = ?
    """
    rows = conn.execute(query, (str(sorted(unknown)), account_id))
    conversation_of.update(rows.fetchall())
    newest: dict[int, int | None] = {}
    for place in chunks:
        if (conversation := conversation_of.get(place // CHUNKS)) is not None:
            newest.setdefault(conversation, place)
    for place in titles:
        newest.setdefault(place // CHUNKS, None)
    return newest


def _snippets(
    conn: sqlite3.Connection, conversation: Conversation, place: int | None, words: set[str], beginning: str | None
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if conversation.title is not None and places_of(conversation.title, words, beginning):
        found.append({"message_id": None, "parts": _parts(conversation.title, words, beginning)})
    if place is not None:
        message, text = history.chunk_at(conn, conversation.account_id, place)
        first = next((start for start, _ in places_of(text, words, beginning)), 0)
        start = max(0, first - _BEFORE)
        cut = text[start : start + _SNIPPET_CHARACTERS]
        found.append({"message_id": message.id, "parts": _parts(cut, words, beginning)})
    return found


def _parts(text: str, words: set[str], beginning: str | None) -> list[dict[str, Any]]:
    parts, at = [], 0
    for start, end in [*places_of(text, words, beginning), (len(text), len(text))]:
        parts += [{"text": text[at:start], "found": False}, {"text": text[start:end], "found": True}]
        at = end
    return [part for part in parts if part["text"]]
