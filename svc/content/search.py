"""Search conversations that have every word in a message or the title; the last word may be the beginning of one.

Equal titles come first. Texts with the words side by side follow, then texts with all words, then the others. Within a
rank, conversations have the order of their list.
"""

import re
import sqlite3
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from svc.budget import best_effort, spent
from svc.content import conversations, history
from svc.content.conversations import Conversation
from svc.content.plain_text import plain
from svc.content.word_runs import CHUNKS, MESSAGES, TITLES, Index
from svc.content.words import folded, is_unspaced, places_of, runs_of
from svc.tables import Page

QUERY_LENGTH = 500
# The newest chunks of messages that are read for a word. A word in more of them counts as being everywhere.
_HITS = 10_000
_WORDS = 32
# CPU time for each of the steps: looking up the words, finding their conversations, ranking them, cutting the snippets.
_LOOKUP_SECONDS, STEP_SECONDS = 0.25, 0.05
_BEFORE, _SNIPPET_CHARACTERS = 60, 200
_READ = 100  # texts that are read to find words side by side
_EQUAL, _SIDE_BY_SIDE, _BEGINS_SO, _ALL, _APART = range(5)  # ranks; _BEGINS_SO: the last word is a beginning


class _Term(NamedTuple):
    """A word of the query, or neighbouring signs of a script without spaces."""

    text: str
    is_beginning: bool


class _Found(NamedTuple):
    """The newest places of a term in messages and in titles, and the messages in which it is whole."""

    chunks: list[int]
    titles: list[int]
    whole: set[int]


class _Best(NamedTuple):
    """The rank of a conversation, and the chunk to show of it."""

    rank: int
    place: int | None


def search(
    conn: sqlite3.Connection,
    account_id: str,
    query: str,
    limit: int,
    after: str | None,
    project_id: str | None,
    archived: bool | None = None,
) -> dict[str, Any]:
    """Return a list of the account's conversations with all words of `query`, as the API shows it.

    Each has `matches`: texts in parts, which are found or not. If the list is `incomplete`, the search ran out of CPU
    time. Raises ApiError `invalid_value` if `after` is no id of a conversation.
    """
    terms = _terms(query[:QUERY_LENGTH])
    by_term: list[_Found] = []
    incomplete = True
    with best_effort(_LOOKUP_SECONDS):
        for term in terms:
            found = _looked_up(conn, account_id, term)
            if by_term and spent():  # places of this word may be missing, and then conversations would be
                break
            by_term.append(found)
        incomplete = spent()
    rare = sorted((found for found in by_term if len(found.chunks) < _HITS), key=lambda found: len(found.chunks))
    rare = rare or by_term[:1]
    newest: list[dict[int, int | None]] = []
    conversation_of: dict[int, int] = {}
    with best_effort(STEP_SECONDS):
        for found in rare:
            if spent():
                break
            newest.append(_newest_by_conversation(conn, account_id, found.chunks, found.titles, conversation_of))
    best = (
        {number: _Best(_APART, newest[0][number]) for number in set.intersection(*map(set, newest))} if newest else {}
    )
    if by_term and len(by_term) == len(terms):
        with best_effort(STEP_SECONDS):
            _rank(conn, account_id, terms, by_term, conversation_of, best)
    page = _page(conn, account_id, limit, after, {"project_id": project_id, "archived": archived}, best)
    items = [{**one.as_json(), "matches": []} for one in page.items]
    shown = 0
    with best_effort(STEP_SECONDS):
        for item, one in zip(items, page.items, strict=True):
            if spent():
                break
            item["matches"] = _snippets(conn, one, best[one.number].place, terms)
            shown += 1
    incomplete = incomplete or len(newest) < len(rare) or shown < len(items)
    return {"object": "list", "data": items, "has_more": page.has_more, "incomplete": incomplete}


def _terms(query: str) -> tuple[_Term, ...]:
    runs = runs_of(query)
    last = len(runs) - 1
    may_begin = bool(runs) and not query[-1].isspace() and not is_unspaced(runs[-1])
    terms = [_Term(run, place == last and may_begin) for place, run in enumerate(runs)]
    return tuple(dict.fromkeys(terms))[:_WORDS]


def _looked_up(conn: sqlite3.Connection, account_id: str, term: _Term) -> _Found:
    def places(index: Index, *, beginning: bool) -> list[int]:
        words = [term.text]
        if is_unspaced(term.text) and len(term.text) > 1:
            words = [term.text[start : start + 2] for start in range(len(term.text) - 1)]
        of_words = [index.newest(conn, account_id, [word], _HITS, beginning=beginning) for word in dict.fromkeys(words)]
        return sorted(set(of_words[0]).intersection(*of_words[1:]), reverse=True)

    def neighbours(places: list[int], read: Callable[[sqlite3.Connection, str, int], str]) -> list[int]:
        """Return the places at which the signs of the term are neighbours; of many, only the newest are read."""
        near = [place for place in places[:_READ] if term.text in folded(read(conn, account_id, place))]
        return near + places[_READ:]

    whole, whole_titles = places(MESSAGES, beginning=False), places(TITLES, beginning=False)
    if term.is_beginning:
        return _Found(places(MESSAGES, beginning=True), places(TITLES, beginning=True), set(whole))
    if is_unspaced(term.text) and len(term.text) > 2:  # its pairs may be apart
        whole, whole_titles = neighbours(whole, _text), neighbours(whole_titles, _title)
    return _Found(whole, whole_titles, set(whole))


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


def _rank(
    conn: sqlite3.Connection,
    account_id: str,
    terms: tuple[_Term, ...],
    by_term: list[_Found],
    conversation_of: dict[int, int],
    best: dict[int, _Best],
) -> None:
    """Raise the rank of conversations that have all words in one text, above all side by side."""

    def raise_to(rank: int, number: int | None, place: int | None) -> None:
        if number in best and rank < best[number].rank:
            best[number] = _Best(rank, place if place is not None else best[number].place)

    titles = set.intersection(*(set(found.titles) for found in by_term))
    for place in sorted(titles, reverse=True)[:_READ]:
        raise_to(_rank_of(terms, _title(conn, account_id, place), is_title=True), place // CHUNKS, None)
    # A word that is everywhere may be in older chunks than its newest.
    rare = [found for found in by_term if len(found.chunks) < _HITS] or by_term
    together = set.intersection(*(set(found.chunks) for found in rare))
    if len(rare) == len(by_term):
        for place in sorted(together, reverse=True):
            raise_to(_ALL, conversation_of.get(place // CHUNKS), place)
    whole = together.intersection(*(found.whole for found in rare))
    if len(terms) == 1:
        for place in sorted(together, reverse=True):
            rank = _SIDE_BY_SIDE if place in whole else _BEGINS_SO
            raise_to(rank, conversation_of.get(place // CHUNKS), place)
        return
    for place in [*sorted(whole, reverse=True)[:_READ], *sorted(together - whole, reverse=True)[:_READ]]:
        if spent():
            return
        number = conversation_of.get(place // CHUNKS)
        if number in best and best[number].rank > _SIDE_BY_SIDE:
            raise_to(_rank_of(terms, plain(_text(conn, account_id, place))), number, place)


def _rank_of(terms: tuple[_Term, ...], text: str, *, is_title: bool = False) -> int:
    runs = runs_of(text)
    if is_title and runs == [term.text for term in terms]:
        return _EQUAL
    if match := _pattern(terms).search(folded(text)):
        return _BEGINS_SO if match["rest"] else _SIDE_BY_SIDE
    return _ALL if all(any(_has(run, term) for run in runs) for term in terms) else _APART


def _has(run: str, term: _Term) -> bool:
    return (
        term.text in run if is_unspaced(run) else run == term.text or (term.is_beginning and run.startswith(term.text))
    )


@lru_cache(maxsize=1)
def _pattern(terms: tuple[_Term, ...]) -> re.Pattern[str]:
    """Return a pattern of the terms side by side in a folded text, with the `rest` of the last word."""
    parts = [re.escape(term.text) for term in terms]
    before = "" if is_unspaced(terms[0].text) else r"(?<!\w)"
    after = r"(?P<rest>\w*)" if terms[-1].is_beginning else r"(?P<rest>)(?!\w)"
    if is_unspaced(terms[-1].text):
        after = "(?P<rest>)"
    return re.compile(before + r"\W+".join(parts) + after)


def _page(
    conn: sqlite3.Connection,
    account_id: str,
    limit: int,
    after: str | None,
    narrowed: Mapping[str, str | int | None],
    best: dict[int, _Best],
) -> Page[Conversation]:
    """Return the conversations after the one with the id `after`, by rank, then in the order of the list."""
    by_rank: dict[int, list[int]] = {}
    for number in sorted(best):
        by_rank.setdefault(best[number].rank, []).append(number)
    ranks = sorted(by_rank) or [_APART]
    if after is not None:
        row = conn.execute("SELECT number FROM conversations WHERE account_id = ? AND id = ?", (account_id, after))
        number = (row.fetchone() or [None])[0]
        ranks = [rank for rank in ranks if number not in best or rank >= best[number].rank]
    items: list[Conversation] = []
    for rank in ranks:
        of_rank = {**narrowed, "number": by_rank.get(rank, [])}
        page = conversations.TABLE.page(conn, account_id, max(1, limit - len(items)), after, **of_rank)
        if len(items) == limit:
            return Page(items, has_more=bool(page.items))
        items += page.items
        if page.has_more:
            return Page(items, has_more=True)
        after = None
    return Page(items, has_more=False)


def _snippets(
    conn: sqlite3.Connection, conversation: Conversation, place: int | None, terms: tuple[_Term, ...]
) -> list[dict[str, Any]]:
    words = {term.text for term in terms if not term.is_beginning}
    beginning = next((term.text for term in terms if term.is_beginning), None)
    found: list[dict[str, Any]] = []
    if conversation.title is not None and places_of(conversation.title, words, beginning):
        found.append(_match(None, plain(conversation.title), words, beginning))
    if place is not None:
        message, text = history.chunk_at(conn, conversation.account_id, place)
        text = plain(text)
        starts = [start for start, _ in places_of(text, words, beginning)]
        window = _SNIPPET_CHARACTERS - _BEFORE
        first = max(starts, key=lambda start: sum(start <= other < start + window for other in starts), default=0)
        start = max(0, first - _BEFORE)
        found.append(_match(message.id, text[start : start + _SNIPPET_CHARACTERS], words, beginning))
    return found


def _match(message_id: str | None, text: str, words: set[str], beginning: str | None) -> dict[str, Any]:
    parts, at = [], 0
    for start, end in [*places_of(text, words, beginning), (len(text), len(text))]:
        parts += [{"text": text[at:start], "found": False}, {"text": text[start:end], "found": True}]
        at = end
    return {"message_id": message_id, "text": text, "parts": [part for part in parts if part["text"]]}


def _text(conn: sqlite3.Connection, account_id: str, place: int) -> str:
    return history.chunk_at(conn, account_id, place)[1]


def _title(conn: sqlite3.Connection, account_id: str, place: int) -> str:
    query = "SELECT ifnull(title, '') FROM conversations WHERE account_id = ? AND number = ?"
    row = conn.execute(query, (account_id, place // CHUNKS)).fetchone()
    return row[0] if row else ""
