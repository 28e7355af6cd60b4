"""Memory: which passages of what an account said and was told earlier bear on what it says now.

words of the question, without those that tell nothing -> their forms that the account has used, or what they misspell
-> the pieces of messages that hold them -> those that hold enough of the question, and something rare -> up to 5 passages
"""

import math
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any, NamedTuple

from svc.budget import best_effort, spent
from svc.content import answers
from svc.content.fulltext import MESSAGES, PIECES, distinct_words, forms_of, near_words, pieces_of
from svc.content.words import is_own_word, is_stop_word, is_unspaced, is_weak_word, places_of, words_of
from svc.ids import timestamp

MOST_PASSAGES = 5
MOST_CHARACTERS = 2_000
_PASSAGE_CHARACTERS = 700
_LEAST_CHARACTERS = 80
_QUERY_CHARACTERS = 4_000
_WORDS = 40
# CPU time for looking up the words of a question, and again for the passages. Words and passages that are left then do not count.
_SEARCH_SECONDS = 0.25
_MISSPELT = 8  # so many unknown words are taken for misspellings at most
# How many of a word's newest pieces count, and how many messages of an account at most say how rare a word is.
_HITS = 300
_COUNTED = 3_000
_CANDIDATES = 30
# A word is rare in 2 % of the messages, or in so many of a short history.
_RARE_SHARE, _RARE = 0.02, 30
_WEAK, _NEAR, _SIGN, _ABSENT, _QUESTION = 0.35, 0.9, 0.5, 0.8, 0.7
# How much of what the question tells a passage must hold: less where somebody asks about themselves, or what was said.
_SHARE, _OWN_SHARE = 0.4, 0.25
_BEST_SHARE = 0.5
_REPEATED = 0.6


class Passage(NamedTuple):
    """Part of a message that bears on a question; `source` is the id of its conversation or run, times are Unix seconds."""

    message_id: str
    role: str
    text: str
    source: str
    created_at: float

    def as_json(self) -> dict[str, Any]:
        """The passage as the API and an agent's tool show it."""
        return {
            "message_id": self.message_id,
            "text": self.text,
            "role": self.role,
            "source": self.source,
            "created_at": timestamp(self.created_at),
        }

    def line(self) -> str:
        """The passage with its day and its speaker, as a model reads it."""
        return f"[{timestamp(self.created_at)[:10]}, the {self.role} said] {self.text}"


def matching_passages(
    conn: sqlite3.Connection, account_id: str, question: str, known: Collection[str] = frozenset()
) -> list[Passage]:
    """Up to 5 passages of the account that bear on `question`, best first, with their days and speakers 2,000 characters at most.

    What is in `known` as a whole is left out, and what the assistant said only because it was recalled.
    """
    asked = _asked_words(conn, account_id, question)
    total = sum(word.weight for word in asked)
    share = _OWN_SHARE if any(is_own_word(word) for word in distinct_words(question[:_QUERY_CHARACTERS])) else _SHARE
    told = {text.strip() for text in known}
    passages: list[Passage] = []
    left, best = MOST_CHARACTERS, 0.0
    with best_effort(_SEARCH_SECONDS):
        for message, piece, score, forms in _best(conn, account_id, asked, share * total):
            if spent():
                break
            best = best or score
            text = _own_text(conn, account_id, message, pieces_of(message["content"])[piece], forms)
            if message["content"].strip() in told or not text or score < _BEST_SHARE * best:
                continue
            told.add(message["content"].strip())
            room = min(_PASSAGE_CHARACTERS, left - 40)
            if room < min(_LEAST_CHARACTERS, len(text)):
                break
            source = message["conversation_id"] or message["run_id"]
            passages.append(Passage(message["id"], message["role"], _cut(text, forms, room), source, message["created_at"]))
            left -= len(passages[-1].line())
            if len(passages) == MOST_PASSAGES:
                break
    return passages


class _AskedWord(NamedTuple):
    forms: list[str]
    places: list[int]
    weight: float  # what the whole question gains by it
    found_weight: float  # what a passage gains that holds it
    rare: bool


def _asked_words(conn: sqlite3.Connection, account_id: str, question: str) -> list[_AskedWord]:
    telling = [word for word in distinct_words(question[:_QUERY_CHARACTERS]) if not is_stop_word(word)]
    if len(telling) > _WORDS:  # what is asked stands at the beginning or at the end
        telling = telling[: _WORDS // 2] + telling[-_WORDS // 2 :]
    all_weak = all(is_weak_word(word) for word in telling)
    counted = conn.execute(
        "SELECT count(*) FROM (SELECT 1 FROM messages WHERE account_id = ? LIMIT ?)", (account_id, _COUNTED)
    ).fetchone()[0]
    asked: list[_AskedWord] = []
    looked_up = 0
    with best_effort(_SEARCH_SECONDS):
        for word in telling:
            if spent():
                break
            forms, quality = forms_of(conn, account_id, word), 1.0
            if not forms and looked_up < _MISSPELT:
                looked_up += 1
                forms, quality = near_words(conn, account_id, word), _NEAR
            places = MESSAGES.newest(conn, account_id, forms, _HITS) if forms else []
            weight = math.log(1 + counted / len(places)) if places else _ABSENT * math.log(1 + counted)
            weight *= _SIGN if is_unspaced(word) and len(word) == 1 else 1
            weight *= _WEAK if is_weak_word(word) and not all_weak else 1
            rare = len(places) <= max(_RARE, _RARE_SHARE * counted) and (all_weak or not is_weak_word(word))
            asked.append(_AskedWord(forms, places, weight, weight * quality, rare))
    return asked


def _best(
    conn: sqlite3.Connection, account_id: str, asked: list[_AskedWord], least: float
) -> Iterator[tuple[sqlite3.Row, int, float, set[str]]]:
    """The messages that hold enough of what is asked, the best first and of equal ones the newest: with the piece, how much of
    it that holds, and the words by which it was found."""
    scores: defaultdict[int, float] = defaultdict(float)
    rare: set[int] = set()
    for word in asked:
        for place in word.places:
            scores[place] += word.found_weight
        if word.rare:
            rare.update(word.places)
    enough = [place for place, score in scores.items() if score >= least and place in rare]
    forms = set(chain.from_iterable(word.forms for word in asked))
    found = []
    for place in sorted(enough, key=lambda place: (scores[place], place), reverse=True)[:_CANDIDATES]:
        number, piece = divmod(place, PIECES)
        message = conn.execute("SELECT * FROM messages WHERE account_id = ? AND number = ?", (account_id, number)).fetchone()
        if message is None or message["role"] == "system":
            continue
        # Who asked before has not told it.
        is_question = message["role"] == "user" and message["content"].rstrip().endswith(("?", "\uff1f"))
        score = scores[place] * (_QUESTION if is_question else 1)
        if score >= least:
            found.append((score, place, message, piece))
    for score, _, message, piece in sorted(found, key=lambda one: one[:2], reverse=True):
        yield message, piece, score, forms


def _own_text(conn: sqlite3.Connection, account_id: str, message: sqlite3.Row, text: str, forms: set[str]) -> str:
    """`text` without the lines that repeat what was recalled for the answer; nothing where those alone held what is asked."""
    answer = answers.by_message(conn, account_id, [message["id"]]).get(message["id"])
    if answer is None or not answer.memory:
        return text.strip()
    recalled = {word for passage in answer.memory for word in words_of(passage["text"])}
    own = [line for line in text.splitlines() if not _repeats(line, recalled)]
    return "\n".join(own).strip() if any(places_of(line, forms) for line in own) else ""


def _repeats(line: str, recalled: set[str]) -> bool:
    telling = [word for word in distinct_words(line) if not is_stop_word(word)]
    return sum(word in recalled for word in telling) > _REPEATED * len(telling)


def _cut(text: str, forms: set[str], most: int) -> str:
    """`text`, or of a long one what is around the place where most of the words stand."""
    if len(text) <= most:
        return text
    places = [start for start, _ in places_of(text, forms)]
    window = most - 2
    first = max(places, key=lambda start: sum(start <= other < start + window * 3 // 4 for other in places), default=0)
    start = max(0, min(first - window // 4, len(text) - window))
    return ("…" if start else "") + text[start : start + window] + ("…" if start + window < len(text) else "")
