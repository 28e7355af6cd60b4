"""Follows every citation in comments, docstrings, the schema and the pages of the repository: what is named can be
read.
"""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from app import ROUTES
from tests.support.cases import each

ROOT = Path(__file__).parent.parent
# The texts of others, and released schemas, which must not change.
NOT_OURS = ("vendor/", "tests/schemas/", "tests/pages/", "LICENSE")
SUFFIXES = (".py", ".md", ".sql", ".toml", ".js", ".mjs", ".css", ".html")
LINE_COMMENTS = {".sql": "--", ".toml": "#", ".js": "//", ".mjs": "//"}
# The standard library's tokenizer and parser tell the same and take ten seconds for all files.
STRING_OR_COMMENT = re.compile(
    r"""("{3}|'{3})(?:\\.|(?!\1).)*\1|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?P<comment>\#[^\n]*)""", re.DOTALL
)
PATH = re.compile(r"(?<![\w/.~$*{-])(?:[\w.*-]+/)*[\w*-]+\.(?:py|md|sql)\b(?!\()")
FOLDER = re.compile(r"(?<![\w/.~-])(?:svc|tests|\.github|\.ci)/[\w./-]*(?![\w/*<-])")
PLACEHOLDER = re.compile(r"(^|/)(x/|(test_)?y\.py$)")
LINK = re.compile(r"https?://[^\s`\"'<>)\]]+")
MARKDOWN_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# An issue is cited with its owner: `encode/starlette#2753`, not `starlette#2753`.
ISSUE = re.compile(r"(?<![\w/.#-])[A-Za-z][\w.-]*#[0-9]+\b")
# Numbered chapters of some page that only its author has.
CHAPTER = re.compile(r"\b(?:contract|specification|spec|design|plan|issue) \d+(?:\.\d+)*\b", re.IGNORECASE)
EXAMPLES = ("127.0.0.1", "localhost", "example.com")
RFC = re.compile(r"\bRFC\W?(\d+)")
ENDPOINT = re.compile(r"`(?:([A-Z]+) )?(/[\w./{}-]+)(?=[`?])")
NO_ENDPOINTS = ("/v1/responses/{id}",)  # named because there is none


@cache
def names() -> frozenset[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    found = listed.stdout.splitlines() or [
        path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file()
    ]
    return frozenset(name for name in found if (ROOT / name).is_file())


FILES = sorted(
    name
    for name in names()
    if name.endswith(SUFFIXES) and not any(part in f"/{name}" or part in name for part in NOT_OURS)
)


def comments_and_docstrings(code: str) -> Iterator[tuple[int, str]]:
    """(line, text) of a Python module's. A docstring is a string on separate lines after a colon, or at the very
    beginning.
    """
    line, end, opens = 1, 0, True
    for found in STRING_OR_COMMENT.finditer(code):
        between = code[end : found.start()].rstrip("rR")  # what a string begins with
        own_line = end == 0 or "\n" in between[len(between.rstrip()) :]
        if before := between.strip():
            opens = before.endswith(":")
        line += between.count("\n")
        if found["comment"]:
            yield line, found["comment"]
        else:
            if opens and own_line:
                yield from enumerate(found[0].strip("\"'").splitlines(), line)
            opens = False
        line, end = line + found[0].count("\n"), found.end()


def words(name: str) -> Iterator[tuple[int, str]]:
    """Return (line, text) of all prose of a file: comments and docstrings of code, the whole of a page."""
    text = (ROOT / name).read_text()
    suffix = Path(name).suffix
    if suffix == ".py":
        yield from comments_and_docstrings(text)
    elif suffix in LINE_COMMENTS:
        mark = LINE_COMMENTS[suffix]
        for number, line in enumerate(text.splitlines(), 1):
            comment = re.search(rf"(?<![:\w\"'`]){re.escape(mark)}(.*)", line) or re.match(r"\s*/?\*(.*)", line)
            if comment:
                yield number, comment[1]
    else:
        fenced = re.sub(
            r"^ *```.*?^ *```$", lambda code: "\n" * code[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL
        )
        yield from enumerate(fenced.splitlines(), 1)


@cache
def all_words() -> tuple[tuple[str, int, str], ...]:
    """Return (file, line, text) of all prose in the repository."""
    return tuple((name, line, text) for name in FILES for line, text in words(name))


def exists(path: str, name: str) -> bool:
    """Whether `path`, as it is written in the file `name`, is a file or folder. It is sought from the root, from svc/,
    beside `name`, and by its name alone."""
    path = path.removeprefix("./").rstrip("/.")
    if PLACEHOLDER.search(path):
        return True
    if "*" in path:
        return any(Path(known).match(path) for known in names())
    places = (path, f"svc/{path}", f"tests/{path}", f"{Path(name).parent.as_posix()}/{path}")
    if any((ROOT / place).exists() for place in places):
        return True
    return "/" not in path and any(known.rpartition("/")[2] == path for known in names())


def test_cited_chapters_are_in_the_repository() -> None:
    assert [(name, line, found[0]) for name, line, text in all_words() for found in CHAPTER.finditer(text)] == []


def test_cited_paths_exist() -> None:
    missing = [
        (name, line, found[0])
        for name, line, text in all_words()
        for pattern in (PATH, FOLDER)
        for found in pattern.finditer(LINK.sub("", text))
        if not exists(found[0], name)
    ]
    assert missing == []


def is_endpoint(method: str, path: str) -> bool:
    """Whether the route table has `path`, or paths that begin with it. Its ids may have any name or value."""
    if not any(path.split("/")[1] == known.split("/")[1] for _, known, _ in ROUTES):
        return True  # a file, or a path of another server
    for methods, known, _ in ROUTES:
        steps = re.sub(r"\\{\w+(:path)?\\}", lambda step: ".+" if step[1] else "[^/]+", re.escape(known))
        if method in methods and (re.fullmatch(steps, path) or known.startswith(f"{path}/")):
            return True
    return False


def test_cited_endpoints_exist() -> None:
    wrong = [
        (name, line, found[0])
        for name, line, text in all_words()
        for found in ENDPOINT.finditer(text)
        if name.endswith(".md") and found[2] not in NO_ENDPOINTS and not is_endpoint(found[1] or "", found[2])
    ]
    assert wrong == [], "ROUTES of app.py has no such endpoint"


def test_links_have_a_known_form() -> None:
    wrong = []
    for name, line, text in all_words():
        prose = re.sub(r"`[^`]*`", "", text)  # an address in backticks is an example
        for found in LINK.finditer(prose):
            host = urlsplit(found[0]).hostname or ""
            if host in EXAMPLES:
                continue
            if urlsplit(found[0]).scheme != "https" or not re.fullmatch(r"(?:[a-z0-9-]+\.)+[a-z]{2,}", host):
                wrong.append((name, line, found[0]))
        wrong += [(name, line, found[0]) for found in ISSUE.finditer(LINK.sub("", prose))]
        wrong += [(name, line, found[0]) for found in RFC.finditer(text) if not 1 <= int(found[1]) <= 9999]
    assert wrong == []


@each("name", [name for name in FILES if name.endswith(".md")])
def test_links_resolve_to_a_file_or_heading(name: str) -> None:
    for target in MARKDOWN_LINK.findall((ROOT / name).read_text()):
        if LINK.match(target):
            continue
        path, _, heading = target.partition("#")
        page = (ROOT / name).parent / path if path else ROOT / name
        assert page.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}, target


def test_commands_of_the_tests_page_choose_a_test() -> None:
    found = re.findall(r"`pytest [^`]*?(tests/[\w/]+\.py) -k (\w+)", (ROOT / "tests" / "README.md").read_text())
    assert found and all(re.search(rf"def test_\w*{word}", (ROOT / path).read_text()) for path, word in found), found


def test_rules_find_their_examples() -> None:
    assert CHAPTER.search("as contract 6 says") and CHAPTER.search("(specification 3.3)")
    assert not CHAPTER.search("a contract of 6 pages")
    named = ["svc/db.py", "wire.md", "tests/test_*.py"]
    assert [found[0] for found in PATH.finditer("see svc/db.py, wire.md and tests/test_*.py")] == named
    assert [exists(path, "README.md") for path in named] == [True, False, True]
    assert is_endpoint("PATCH", "/user/api-keys/{id}") and is_endpoint("", "/v1/models/builtin/echo")
    assert not is_endpoint("", "/user/api-key/{key_id}") and not is_endpoint("PUT", "/user/settings")
    assert ISSUE.search("starlette#2753") and not ISSUE.search("encode/starlette#2753")
