"""Find the passages of a project's files that answer a question, and check quotations of them.

words of the question -> their forms in the project's files -> the passages with these words -> the best, by rarity
"""

import math
import re
import sqlite3
from collections import defaultdict
from heapq import nlargest
from typing import Any, NamedTuple

from svc.budget import best_effort, spent
from svc.content.fulltext import distinct_words
from svc.content.language import forms_of, is_stop_word, language_of, language_of_script, similar_words, stemmer
from svc.content.word_runs import files_index
from svc.content.words import is_unspaced

MOST_PASSAGES = 8
_LOOKUP_SECONDS = 0.06
_WORDS = 24
_HITS = 2_000  # newest passages that are read for a word
_CANDIDATES = 100
_QUERY_CHARACTERS = 1_000
_FORM_SHARE = 0.8  # the weight of another form of the word


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
    scores: defaultdict[int, float] = defaultdict(float)
    with best_effort(_LOOKUP_SECONDS):
        _score(conn, account_id, project_id, query[:_QUERY_CHARACTERS], scores)
    best = nlargest(_CANDIDATES, scores, key=lambda number: (scores[number], -number))
    found: list[FoundPassage] = []
    for number in best:
        if len(found) == MOST_PASSAGES:
            break
        found += _passage(conn, account_id, project_id, number)
    return found


def _score(
    conn: sqlite3.Connection, account_id: str, project_id: str, query: str, scores: defaultdict[int, float]
) -> None:
    index = files_index(project_id)
    words = distinct_words(query)
    language = language_of(words)
    stem = stemmer(language or language_of(words, 1) or language_of_script(words))
    significant = [word for word in words if not is_stop_word(word, language)] or words
    pairs = {sign for word in significant if is_unspaced(word) and len(word) == 2 for sign in word}
    counted = _count(conn, account_id)
    for word in [word for word in significant if word not in pairs][:_WORDS]:
        if spent():
            return
        places = index.newest(conn, account_id, [word], _HITS)
        own = set(places)
        forms = [
            form for form in forms_of(conn, account_id, word, stem, index.mark) if not is_stop_word(form, language)
        ]
        if not own and not forms:
            forms = similar_words(conn, account_id, word, index.mark)
        others = set(index.newest(conn, account_id, forms, _HITS)) - own if forms else set()
        weight = math.log(1 + counted / (len(own) + len(others) + 0.5))
        for number in own:
            scores[number] += weight
        for number in others:
            scores[number] += weight * _FORM_SHARE


def _count(conn: sqlite3.Connection, account_id: str) -> int:
    query = "SELECT count(*) FROM (SELECT 1 FROM file_passages WHERE account_id = ? LIMIT 50000)"
    return int(conn.execute(query, (account_id,)).fetchone()[0])


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
_BLOCK = re.compile(r"(?:^>[^\n]*\n?)+\s*\Z", re.MULTILINE)
_SAME = str.maketrans("\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019\u201a\u2013\u2014\u2011", '"""""\'\'\'---')
_LEAST_WORDS, _LEAST_SIGNS = 8, 16


def citations_of(text: str, sources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return an entry for each citation of a file: the quotation of its sentence, and whether the passage has it.

    `verified` is None if the sentence quotes less than eight words, or 16 signs of a script without spaces.
    """
    passages = {one["number"]: _literal(one.get("text") or "") for one in sources if one["kind"] == "file"}
    found: list[dict[str, Any]] = []
    for match in _CITED.finditer(text) if passages else ():
        number = int(match[1])
        if number in passages:
            quotation = _quotation(text, match.start())
            verified = None if quotation is None else _literal(quotation) in passages[number]
            found.append({"number": number, "quotation": quotation, "verified": verified})
    return found


def _quotation(text: str, place: int) -> str | None:
    """Return the last long quotation of the sentence that a citation at `place` supports, or the block before it."""
    before = text[:place].rstrip(" ")
    before = re.sub(r"(?:\s*\[\d{1,4}\])+$", "", before)
    # The sentence may end before its citation, and a quotation may have sentences.
    ends = [match.end() for match in _END.finditer(before) if match.end() < len(before)]
    spans = [quoted.span() for quoted in _QUOTED.finditer(before)]
    outside = [end for end in ends if not any(start < end < stop for start, stop in spans)]
    sentence = before[outside[-1] if outside else 0 :]
    quotations: list[str] = [next(filter(None, match.groups())) for match in _QUOTED.finditer(sentence)]
    for quotation in reversed(quotations):
        if _is_long(quotation):
            return quotation
    if sentence.lstrip().startswith(">"):
        sentence = ""
    block = None if quotations else _BLOCK.search(before[: len(before) - len(sentence)])
    if block is not None:
        quotation = re.sub(r"(?m)^>[ \t]?", "", block[0]).strip()
        return quotation if _is_long(quotation) else None
    return None


def _is_long(quotation: str) -> bool:
    return len(quotation.split()) >= _LEAST_WORDS or sum(map(is_unspaced, quotation)) >= _LEAST_SIGNS


def _literal(text: str) -> str:
    """Return a text for comparison: without case, spaces and the kind of quotes."""
    return "".join(text.translate(_SAME).casefold().split())
