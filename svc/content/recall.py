"""Find passages of an account's earlier messages that help to answer its question.

significant words of the question -> their forms in the account's messages, or the words that they misspell
-> the chunks of messages with these words -> those that share a rare word and enough of the question -> up to 5
passages
"""

import math
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from heapq import nlargest
from itertools import pairwise
from typing import Any, NamedTuple

from svc.budget import best_effort, spent
from svc.content import answers, history
from svc.content.fulltext import distinct_words
from svc.content.history import Message, chunk_at
from svc.content.language import (
    forms_of,
    is_dense_script,
    is_own_word,
    is_stop_word,
    is_task_word,
    is_weak_word,
    kana_nouns,
    language_of,
    language_of_script,
    similar_words,
    stemmer,
)
from svc.content.word_runs import MESSAGES
from svc.content.words import folded, is_unspaced, places_of, words_of
from svc.ids import fields_as_json, timestamp

MOST_PASSAGES = 5
MOST_CHARACTERS = 2_000
_PASSAGE_CHARACTERS = 700
_LEAST_CHARACTERS = 80
QUERY_LENGTH = 4_000
# CPU time for looking up the words of a question, and for each of two steps that read messages.
_LOOKUP_SECONDS, _READING_SECONDS = 0.03, 0.01
_WORDS = 24  # of a long question, half from its beginning and half from its end
_MISSPELT = 4  # unknown words of a question that are looked up as misspellings
_HITS = 300  # newest chunks of messages that are read for a word
_COUNTED = 3_000  # messages by which a word's rarity is measured
_CANDIDATES = 100
# A word is rare if it is in at most so many chunks, or in this share of all. Names are known by capitals; a word of
# a script without spaces may be one.
_RARE, _RARE_SHARE, _RARE_NAME_SHARE = 60, 0.25, 0.5
# The share of a question's weight that a passage must have: a little less than one of four words.
_SHARE = 0.24
_LONG = 8  # letters; unrelated texts seldom share a longer word
_MEDIUM, _MEDIUM_DENSE = 6, 3  # letters of a word that is enough if it is in few chunks
_FEW = 6
_NUMBER = re.compile(r"\d{1,4}[a-z]{0,2}")  # "3", "1998", "5th", "20km": amounts and dates, which many texts share
_INNER_WORD = re.compile(r"(?<=[\w,;:] )[^\W\d_]{3,}")
_TOPIC = re.compile("^[\u3400-\u9fff]{2}")  # Chinese and Japanese questions often begin with the name of a person
_REPEATED = 0.6


class Passage(NamedTuple):
    """Part of a message; `source` is the id of its conversation or run. Times are Unix seconds."""

    message_id: str
    role: str
    text: str
    source: str
    created_at: float

    def as_json(self) -> dict[str, Any]:
        return fields_as_json(self._asdict(), "message_id text role source created_at")

    def line(self) -> str:
        """Return the passage with its day and its speaker, for a model."""
        return f"[{timestamp(self.created_at)[:10]}, the {self.role} said] {self.text}"


def matching_passages(
    conn: sqlite3.Connection,
    account_id: str,
    question: str,
    known: Collection[str] = frozenset(),
    replaced: Message | None = None,
    *,
    forgotten: bool = False,
) -> list[Passage]:
    """Return up to 5 passages of the account that help to answer `question`, best first, at most 2,000 characters.

    They are not of messages whose text is in `known`, nor of `replaced` and what follows it, nor of forgotten ones.
    With `forgotten` they are only of those.
    """
    asked = _asked(question[:QUERY_LENGTH])
    words: list[_Word] = []
    with best_effort(_LOOKUP_SECONDS):
        words.extend(_looked_up(conn, account_id, asked))
    words = _without_seams(words)
    found: list[_Found] = []
    with best_effort(_READING_SECONDS):
        found.extend(_sharing(conn, account_id, asked, words, replaced, forgotten))
    forms = {form for word in words for form in word.forms}
    used = {text.strip() for text in known}
    passages: list[Passage] = []
    left = MOST_CHARACTERS
    with best_effort(_READING_SECONDS):
        for _, message, chunk in _ordered(found):
            if spent() or len(passages) == MOST_PASSAGES:
                break
            text = _own_text(conn, message, chunk, forms)
            if message.content.strip() in used or not text:
                continue
            used.add(message.content.strip())
            room = min(_PASSAGE_CHARACTERS, left - 40)
            if room < min(_LEAST_CHARACTERS, len(text)):
                break
            source = message.conversation_id or message.run_id or ""
            passages.append(Passage(message.id, message.role, _cut(text, forms, room), source, message.created_at))
            left -= len(passages[-1].line())
    return passages


class _Asked(NamedTuple):
    """The significant words of a question, and its language."""

    words: list[str]
    language: str | None  # None if the question is too short
    stem: Callable[[str], str]
    names: set[str]
    is_task: bool  # such as "Write a poem"
    is_own: bool  # about "I" or "my", as general questions seldom are


def _asked(question: str) -> _Asked:
    words = distinct_words(question)
    names = _names(question)
    others = [word for word in words if word not in names]
    language = language_of(others)
    stem = stemmer(language or language_of(others, 1) or language_of_script(others))
    if language == "de":  # all nouns have a capital
        names = set()
    names.update(pair for pair in _TOPIC.findall(question) if not is_stop_word(pair, None))
    names.update(map("".join, (pair for noun in kana_nouns(question) for pair in pairwise(noun))))
    is_own = any(is_own_word(word, language) for word in words)
    significant = [word for word in words if word in names or _is_significant(word, language)]
    pairs = {sign for word in significant if is_unspaced(word) and len(word) == 2 for sign in word}
    significant = [word for word in significant if word not in pairs]
    strong = [word for word in significant if not is_weak_word(word, language)]
    significant = strong or (significant if is_own else [])  # "What is my name?"
    if len(significant) > _WORDS:
        significant = significant[: _WORDS // 2] + significant[-_WORDS // 2 :]
    is_task = any(is_task_word(word, language) for word in words[:3])
    return _Asked(significant, language, stem, names, is_task, is_own)


def _names(question: str) -> set[str]:
    """Return the folded words with a capital inside a sentence, such as "May" or "Will", unless most words have one."""
    names = {folded(word) for word in _INNER_WORD.findall(question) if word.istitle()}
    return names if 2 * len(names) < len(question.split()) else set()


def _is_significant(word: str, language: str | None) -> bool:
    if is_unspaced(word):
        return not is_stop_word(word, None)
    if _NUMBER.fullmatch(word) or (len(word) < 3 and word.isalpha()):
        return False
    return language is None or not is_stop_word(word, language)


class _Word(NamedTuple):
    """A word of the question, and its places in the account's messages."""

    text: str
    forms: list[str]
    close: set[str]  # the forms that are neither compounds nor derived words
    places: set[int]
    weight: float
    is_rare: bool


def _looked_up(conn: sqlite3.Connection, account_id: str, asked: _Asked) -> Iterator[_Word]:
    query = "SELECT count(*) FROM (SELECT 1 FROM messages WHERE account_id = ? LIMIT ?)"
    counted = conn.execute(query, (account_id, _COUNTED)).fetchone()[0]
    misspelt = 0
    for word in asked.words:
        if spent():
            return
        forms = [word, *_without_stop_words(forms_of(conn, account_id, word, asked.stem), asked)]
        close = {form for form in forms if asked.stem(form) == asked.stem(word)}
        places = MESSAGES.newest(conn, account_id, forms, _HITS)
        if not places and misspelt < _MISSPELT:
            misspelt += 1
            forms = _without_stop_words(similar_words(conn, account_id, word), asked)
            places = MESSAGES.newest(conn, account_id, forms, _HITS) if forms else []
            close = set(forms)
        may_be_name = word in asked.names or is_unspaced(word)
        share = _RARE_NAME_SHARE if may_be_name else _RARE_SHARE
        is_rare = 0 < len(places) <= max(_RARE, int(share * counted))
        yield _Word(word, forms, close, set(places), _weight(word, may_be_name, len(places), counted), is_rare)


def _weight(word: str, may_be_name: bool, count: int, counted: int) -> float:
    """Return the weight of a word in `count` of `counted` chunks: of a name at least half that of an unknown word."""
    weight = math.log(1 + counted / max(count, 1))
    if is_unspaced(word) and len(word) == 1:
        return weight / 2
    return max(weight, math.log(1 + counted) / 2) if may_be_name else weight


def _without_seams(words: list[_Word]) -> list[_Word]:
    """Leave out unknown pairs of signs that overlap a known one: each has parts of two words."""
    known = {word.text for word in words if word.places and is_unspaced(word.text) and len(word.text) == 2}
    first, last = {pair[0] for pair in known}, {pair[1] for pair in known}
    return [
        word
        for word in words
        if word.places or not is_unspaced(word.text) or (word.text[0] not in last and word.text[-1] not in first)
    ]


def _without_stop_words(words: list[str], asked: _Asked) -> list[str]:
    return [word for word in words if not is_stop_word(word, asked.language)]


# Statements before questions, then by the words shared, then the newer place first.
_Order = tuple[bool, float, int]
_Found = tuple[_Order, Message, str]


def _ordered(found: list[_Found]) -> list[_Found]:
    """Return passages in their order. Of many that share the same words, the first has most words that no other has."""
    if len(found) <= MOST_PASSAGES:
        return sorted(found, reverse=True)
    words = [set(words_of(text)) for _, _, text in found]
    counts = Counter(word for own in words for word in own)
    own = {order: sum(counts[word] == 1 for word in each) for (order, _, _), each in zip(found, words, strict=True)}
    return sorted(found, key=lambda one: (one[0][:2], own[one[0]], one[0][2]), reverse=True)


def _sharing(
    conn: sqlite3.Connection,
    account_id: str,
    asked: _Asked,
    words: list[_Word],
    replaced: Message | None,
    forgotten: bool,
) -> Iterator[_Found]:
    """Yield the messages that may help, each with its order and the chunk that shares words with the question."""
    scores: defaultdict[int, float] = defaultdict(float)
    for word in words:
        for place in word.places:
            scores[place] += word.weight
    rare = {place for word in words if word.is_rare for place in word.places}
    for place in nlargest(_CANDIDATES, rare, key=lambda place: (scores[place], place)):
        if spent():
            return
        message, text = chunk_at(conn, account_id, place)
        if message.role == "system" or history.is_forgotten(conn, account_id, message.id) != forgotten:
            continue
        if replaced and message.conversation_id == replaced.conversation_id and message.number >= replaced.number:
            continue
        significant = words
        if asked.language is None and (language := language_of(distinct_words(text))) is not None:
            significant = [word for word in words if not is_stop_word(word.text, language)]
        shared = [word for word in significant if place in word.places]
        if shared and _is_enough(asked, significant, shared, text):
            # A question of the user answers nothing, but it has more of the words.
            is_statement = message.role != "user" or not message.content.rstrip().endswith(("?", "\uff1f"))
            yield (is_statement, scores[place], place), message, text


def _is_enough(asked: _Asked, significant: list[_Word], shared: list[_Word], text: str) -> bool:
    """Whether a passage that shares words with the question helps to answer it.

    One word is enough if it is long and not only related, or is most of the question, or the question has "I" or "my".
    """
    share = sum(word.weight for word in shared) / sum(word.weight for word in significant)
    if share <= _SHARE or not any(word.is_rare for word in shared):
        return False
    if len(shared) > 1 or asked.is_own or share > 0.5:
        return True
    (word,) = shared
    return _is_special(asked, word) and not word.close.isdisjoint(words_of(text))


def _is_special(asked: _Asked, word: _Word) -> bool:
    if len(word.text) >= _LONG or word.text in asked.names:
        return True
    least = 2 if is_unspaced(word.text) else _MEDIUM_DENSE if is_dense_script(word.text) else _MEDIUM
    return len(word.text) >= least and len(word.places) <= _FEW and not asked.is_task


def _own_text(conn: sqlite3.Connection, message: Message, text: str, forms: set[str]) -> str:
    """Return `text` without the lines that repeat recalled passages, or nothing if only those lines have the words."""
    answer = answers.by_message(conn, message.account_id, [message.id]).get(message.id)
    if answer is None or not answer["memory"]:
        return text.strip()
    recalled = {word for passage in answer["memory"] for word in words_of(passage["text"])}
    own = [line for line in text.splitlines() if not _repeats(line, recalled)]
    return "\n".join(own).strip() if any(places_of(line, forms) for line in own) else ""


def _repeats(line: str, recalled: set[str]) -> bool:
    significant = [word for word in distinct_words(line) if not is_stop_word(word, None)]
    return sum(word in recalled for word in significant) > _REPEATED * len(significant)


def _cut(text: str, forms: set[str], most: int) -> str:
    if len(text) <= most:
        return text
    places = [start for start, _ in places_of(text, forms)]
    window = most - 2
    first = max(places, key=lambda start: sum(start <= other < start + window * 3 // 4 for other in places), default=0)
    start = max(0, min(first - window // 4, len(text) - window))
    return ("…" if start else "") + text[start : start + window] + ("…" if start + window < len(text) else "")
