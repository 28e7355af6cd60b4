"""Find the passages of a project's files that answer a question, and check quotations of them.

languages of the project's files -> words of the question -> their forms in the files -> the passages with these words
-> the best, by rarity
"""

import math
import re
import sqlite3
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from heapq import nlargest
from itertools import pairwise
from typing import Any, NamedTuple

from svc.budget import best_effort, spent
from svc.content.fulltext import distinct_words
from svc.content.language import (
    forms_of,
    is_stop_word,
    kana_nouns,
    language_of,
    language_of_script,
    languages_of,
    related_words,
    similar_words,
    stemmer,
)
from svc.content.word_runs import Index, files_index
from svc.content.words import is_unspaced

MOST_PASSAGES = 8
_LOOKUP_SECONDS = 0.06
_WORDS = 24
_HITS = 2_000  # newest passages that are read for a word
_CANDIDATES = 100
_QUERY_CHARACTERS = 1_000
# The weight of another form of a word, and of a word that is only alike.
_FORM_SHARE, _ALIKE_SHARE = 0.8, 0.5
_PASSAGE_BYTES = 500  # about; the number of passages counts only by its logarithm
_SAMPLED, _SAMPLED_CHARACTERS = 24, 500  # texts whose language is guessed, and as much of each
_LANGUAGES = 6  # each has its stems


class FoundPassage(NamedTuple):
    """A passage with its file: `file` is the artifact's id."""

    file: str
    name: str
    page: int | None
    from_line: int
    to_line: int
    text: str


def matching_passages(conn: sqlite3.Connection, account_id: str, project_id: str, query: str) -> list[FoundPassage]:
    """Return up to 8 passages of the project's files that share words with `query`, the best first."""
    places: dict[str, dict[int, float]] = {}
    counted = 1 + sum(text_bytes for _, text_bytes in _texts(conn, account_id, project_id)) / _PASSAGE_BYTES
    with best_effort(_LOOKUP_SECONDS):
        _look_up(conn, account_id, project_id, query[:_QUERY_CHARACTERS], places)
    scores: defaultdict[int, float] = defaultdict(float)
    for of_word in places.values():
        weight = math.log(1 + counted / (len(of_word) + 0.5))
        for number, share in of_word.items():
            scores[number] += weight * share
    best = nlargest(_CANDIDATES, scores, key=lambda number: (scores[number], -number))
    found: list[FoundPassage] = []
    for number in best:
        if len(found) == MOST_PASSAGES:
            break
        found += _passage(conn, account_id, project_id, number)
    return found


def _look_up(
    conn: sqlite3.Connection, account_id: str, project_id: str, query: str, places: dict[str, dict[int, float]]
) -> None:
    """Add the passages with each word of a query, then those with its forms, while there is time, rare words first."""
    texts = [text_id for text_id, _ in _texts(conn, account_id, project_id)]
    terms = _terms(query, _languages(conn, account_id, texts))
    index = files_index(project_id)
    for word in terms.words:
        if spent():
            return
        places[word] = dict.fromkeys(index.newest(conn, account_id, [word], _HITS), 1.0)
    for word in sorted(places, key=lambda word: len(places[word])):
        if spent():
            return
        places[word] = {**_of_forms(conn, account_id, index, word, terms, found=bool(places[word])), **places[word]}


class _Terms(NamedTuple):
    """The significant words of a query, and the languages that it may be in."""

    words: list[str]
    languages: list[str]
    stems: list[Callable[[str], str]]

    def without_stop_words(self, words: Iterable[str]) -> list[str]:
        languages: list[str | None] = [*self.languages] or [None]
        return [word for word in words if not any(is_stop_word(word, language) for language in languages)]


def _terms(query: str, likely: list[str]) -> _Terms:
    """Return what to look up. `likely` are the languages of the files."""
    words = distinct_words(query)
    nouns = {"".join(pair) for noun in kana_nouns(query, alone=True) for pair in pairwise(noun)}
    languages = languages_of(words, likely)
    if not languages and (of_script := language_of_script(words)) is not None:
        languages = [of_script]
    stems = list(map(stemmer, languages)) or [str]
    terms = _Terms(words, languages, stems)
    significant = {*nouns, *terms.without_stop_words(words)} or set(words)
    pairs = {sign for word in significant if is_unspaced(word) and len(word) == 2 for sign in word}
    return terms._replace(words=[word for word in words if word in significant and word not in pairs][:_WORDS])


def _of_forms(
    conn: sqlite3.Connection, account_id: str, index: Index, word: str, terms: _Terms, *, found: bool
) -> dict[int, float]:
    """Return the passages with forms of a word, each with its share of the word's weight.

    If there are none, and the word itself was not `found`, those with words that are alike.
    """
    of_stems = [form for stem in terms.stems for form in forms_of(conn, account_id, word, stem, index.mark)]
    forms = terms.without_stop_words(dict.fromkeys(of_stems))
    share = _FORM_SHARE
    if not found and not forms:
        alike = [*related_words(conn, account_id, word, index.mark), *similar_words(conn, account_id, word, index.mark)]
        forms, share = terms.without_stop_words(dict.fromkeys(alike)), _ALIKE_SHARE
    return dict.fromkeys(index.newest(conn, account_id, forms, _HITS) if forms else [], share)


def _texts(conn: sqlite3.Connection, account_id: str, project_id: str) -> list[tuple[str, int]]:
    """Return the texts of the project with their sizes in bytes."""
    query = """
        SELECT text_id, text_bytes FROM project_files
        WHERE account_id = ? AND project_id = ? AND text_id IS NOT NULL ORDER BY number
    """
    return [(row["text_id"], row["text_bytes"]) for row in conn.execute(query, (account_id, project_id))]


def _languages(conn: sqlite3.Connection, account_id: str, texts: list[str]) -> list[str]:
    """Return the languages of the texts, the most common first, as far as their second passages show them.

    The first ones often have titles, names and contents only.
    """
    query = """
        SELECT text FROM file_passages WHERE account_id = ? AND text_id = ? ORDER BY number LIMIT 1
        OFFSET (SELECT count(*) > 1 FROM (
            SELECT 1 FROM file_passages WHERE account_id = ?1 AND text_id = ?2 LIMIT 2))
    """
    found: Counter[str] = Counter()
    for text_id in texts[:: -(-len(texts) // _SAMPLED)] if texts else ():
        for (text,) in conn.execute(query, (account_id, text_id)):
            if (language := language_of(distinct_words(text[:_SAMPLED_CHARACTERS]))) is not None:
                found[language] += 1
    return [language for language, _ in found.most_common(_LANGUAGES)]


def _passage(conn: sqlite3.Connection, account_id: str, project_id: str, number: int) -> list[FoundPassage]:
    """Return the passage if it is in a file of the project. Others may be in deleted texts."""
    query = """
        SELECT artifact_id AS file, name, page, from_line, to_line, text
        FROM file_passages JOIN project_files USING (account_id, text_id)
            JOIN artifacts ON artifacts.account_id = file_passages.account_id AND artifacts.id = artifact_id
        WHERE file_passages.account_id = ? AND file_passages.number = ? AND project_files.project_id = ?
    """
    return [FoundPassage(**row) for row in conn.execute(query, (account_id, number, project_id))]


# --- citations

_CITED = re.compile(r"\[(\d{1,4})\]")
_END = re.compile(r"[.!?](?=[\s\[\"'\u201d\u00bb)]|$)|[\u3002\uff01\uff1f]|\n")
_QUOTED = re.compile(
    '"([^"\n]+)"|\u201c([^\u201d\n]+)\u201d|\u201e([^\u201c\u201d\n]+)[\u201c\u201d]|\u00ab([^\u00bb\n]+)\u00bb'
    "|\u300c([^\u300d\n]+)\u300d|\u300e([^\u300f\n]+)\u300f"
)
_QUOTE_SIGN = re.compile(r"\s*>")  # of a block
_BLOCK_CHARACTERS, _MOST_QUOTES, _MOST_BLANKS = 4_000, 20, 100  # before a citation
_SAME = str.maketrans("\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019\u201a\u2013\u2014\u2011", '"""""\'\'\'---')
_LEAST_WORDS, _LEAST_SIGNS = 8, 16


def citations_of(text: str, sources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return an entry for each citation of a file: the quotation of its sentence, and whether the passage has it.

    `verified` is None if the sentence quotes less than eight words, or 16 signs of a script without spaces. The time is
    proportional to the text.
    """
    passages = {one["number"]: _literal(one.get("text") or "") for one in sources if one["kind"] == "file"}
    found: list[dict[str, Any]] = []
    quoting = _Quoting(text) if passages else None
    for match in _CITED.finditer(text) if quoting else ():
        number = int(match[1])
        quotation = quoting.before(match) if quoting else None
        if number in passages:
            verified = None if quotation is None else _literal(quotation) in passages[number]
            found.append({"number": number, "quotation": quotation, "verified": verified})
    return found


class _Quoting:
    """The sentences and quotations of a text, for its citations in their order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._quotes = [(*quoted.span(), next(filter(None, quoted.groups()))) for quoted in _QUOTED.finditer(text)]
        self._starts = [start for start, _, _ in self._quotes]
        # The sentence may end before its citation, and a quotation may have sentences.
        self._ends = [match.end() for match in _END.finditer(text) if not self._is_quoted(match.end())]
        self._supported = self._cited = 0  # where the text ends that the last citation supports, and where that ends
        self._blocks: dict[int, str | None] = {}

    def _is_quoted(self, place: int) -> bool:
        at = bisect_left(self._starts, place) - 1
        return at >= 0 and place < self._quotes[at][1]

    def before(self, match: re.Match[str]) -> str | None:
        """Return the last long quotation of the sentence that a citation supports, or the block before it."""
        text, stop = self._text, match.start()
        if not self._cited or text[self._cited : stop].strip():
            self._supported = len(text[max(0, stop - _MOST_BLANKS) : stop].rstrip(" ")) + max(0, stop - _MOST_BLANKS)
        stop, self._cited = self._supported, match.end()
        at = bisect_left(self._ends, stop) - 1
        begin = self._ends[at] if at >= 0 else 0
        quotes = self._quotes[bisect_left(self._starts, begin) : bisect_left(self._starts, stop)][-_MOST_QUOTES:]
        quotations = [quotation for _, end, quotation in quotes if end <= stop]
        if quotations:
            return next(filter(_is_long, reversed(quotations)), None)
        end = stop if _QUOTE_SIGN.match(text, begin, stop) else begin
        if end not in self._blocks:
            self._blocks[end] = self._block(end)
        return self._blocks[end]

    def _block(self, end: int) -> str | None:
        """Return the quoted block that ends at `end`."""
        lines: list[str] = []
        for line in reversed(self._text[max(0, end - _BLOCK_CHARACTERS) : end].rstrip().split("\n")):
            if not line.startswith(">"):
                break
            lines.insert(0, re.sub(r"^>[ \t]?", "", line))
        quotation = "\n".join(lines).strip()
        return quotation if _is_long(quotation) else None


def _is_long(quotation: str) -> bool:
    return len(quotation.split()) >= _LEAST_WORDS or sum(map(is_unspaced, quotation)) >= _LEAST_SIGNS


def _literal(text: str) -> str:
    """Return a text for comparison: without case, spaces and the kind of quotes."""
    return "".join(text.translate(_SAME).casefold().split())
