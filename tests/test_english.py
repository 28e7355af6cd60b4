"""Pages, docstrings, the interface document and the web application's texts are short sentences in standard words.
Commit subjects are short.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.openapi import DOCUMENT

ROOT = Path(__file__).parent.parent
MOST_WORDS = 25  # in a sentence
AVERAGE_WORDS = 16  # of a page or module with at least 8 sentences, or the average says little
MOST_SUBJECT = 72  # characters
SINCE = "4ae2dff"  # the rules hold for commits after this one
NOT_OURS = ("vendor/", "tests/schemas/", "tests/migrations/")
SENTENCE = re.compile(r"(?<=[.!?])[\"')*]*\s+(?=\S)")
DIALECT = [
    (re.compile(rf"\b(?:{phrase})(?!\w)", re.IGNORECASE), better)
    for phrase, _, better in (
        line.partition(" -> ")
        for line in (ROOT / "tests" / "dialect.txt").read_text().splitlines()
        if not line.startswith("#")
    )
]


def files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    found = listed.stdout.splitlines() or [
        path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file()
    ]
    return [name for name in found if not any(part in name for part in NOT_OURS) and (ROOT / name).is_file()]


def page_texts(page: str) -> Iterator[str]:
    """Yield the paragraphs, list items and table cells of a Markdown page, without its code."""
    page = re.sub(r"^ *```.*?^ *```$", "", page, flags=re.MULTILINE | re.DOTALL)
    for block in re.split(r"\n\s*\n", page):
        if block.lstrip().startswith("|"):
            yield from (cell for row in block.splitlines() for cell in re.split(r"\||; ", row))
        else:
            yield from re.split(r"\n\s*(?:[-*]|\d+\.)\s|^\s*(?:[-*]|\d+\.|#+)\s", block, flags=re.MULTILINE)


def docstrings(node: ast.AST) -> Iterator[str]:
    """Yield the paragraphs of all docstrings in a syntax tree. Expressions, most of the tree, have none."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        # A drawing in a docstring is indented or has an arrow, and is no sentence.
        yield from (
            paragraph
            for paragraph in re.split(r"\n\s*\n", ast.get_docstring(node) or "")
            if "->" not in paragraph and "\n  " not in paragraph
        )
    for part in ("body", "orelse", "handlers", "finalbody", "cases"):
        for child in getattr(node, part, ()):
            yield from docstrings(child)


def sentences(text: str) -> list[str]:
    text = re.sub(r"`+[^`]*`+", "Code", " ".join(text.split()))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return [sentence for sentence in SENTENCE.split(text) if re.search(r"[A-Za-z]", sentence)]


def script_texts(code: str) -> list[str]:
    """Return the strings of a file of texts, with a word for each inserted value."""
    found = re.findall(r'"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`', re.sub(r"^\s*//.*$", "", code, flags=re.MULTILINE))
    return [re.sub(r"\$\{[^}]*\}", "7", one or other) for one, other in found]


def texts(name: str) -> list[str]:
    content = (ROOT / name).read_text()
    if name.endswith(".md"):
        return [*page_texts(content)]
    return [*docstrings(ast.parse(content))] if name.endswith(".py") else script_texts(content)


def described(value: Any) -> Iterator[str]:
    """Yield the summaries and descriptions of the interface document, or of a part of it."""
    for name, part in value.items() if isinstance(value, dict) else enumerate(value):
        if name in ("summary", "description") and isinstance(part, str):
            yield from page_texts(part)
        elif isinstance(part, dict | list):
            yield from described(part)


def checked() -> Iterator[tuple[str, list[str]]]:
    """Yield the files with prose, and the interface document, each with its sentences."""
    yield "/openapi.json", [*dict.fromkeys(sentence for text in described(DOCUMENT) for sentence in sentences(text))]
    for name in files():
        if name.endswith((".md", ".py")) or "/texts/en/" in name:
            yield name, [sentence for text in texts(name) for sentence in sentences(text)]


def test_sentences_are_short_and_words_are_standard() -> None:
    wrong: list[tuple[str, object]] = []
    for name, found in checked():
        lengths = [len(sentence.split()) for sentence in found]
        wrong += [(name, sentence) for sentence, words in zip(found, lengths, strict=True) if words > MOST_WORDS]
        if len(lengths) >= 8 and sum(lengths) / len(lengths) > AVERAGE_WORDS:
            wrong.append((name, f"{sum(lengths) / len(lengths):.1f} words a sentence"))
        prose = " ".join(found)
        wrong += [(name, (hit[0], better)) for phrase, better in DIALECT for hit in phrase.finditer(prose)]
    assert wrong == [], (
        f"split sentences of more than {MOST_WORDS} words, and use the words after `->` in tests/dialect.txt"
    )


def test_commit_subjects_are_short() -> None:
    if subprocess.run(["git", "cat-file", "-e", SINCE], cwd=ROOT, capture_output=True).returncode:
        pytest.skip("this is no clone with history")
    log = subprocess.run(
        ["git", "log", "--format=%s", f"{SINCE}.."], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert [subject for subject in log.stdout.splitlines() if len(subject) > MOST_SUBJECT] == []


def test_the_rules_find_what_they_are_for() -> None:
    assert sentences("Return `a. b`. It is 1.5 MB! See [this page](x.md).") == [
        "Return Code.",
        "It is 1.5 MB!",
        "See this page.",
    ]
    assert [*page_texts("| a | b; c |\n|---|---|\n\nOne.\n- two\n- three")][1:4] == [" a ", " b", "c "]
    assert any(phrase.search("What came is told anew") for phrase, _ in DIALECT)
