"""CHANGELOG.md has the form of keepachangelog.com and names every change of the interface since the last release."""

import re
from datetime import date
from fnmatch import fnmatch
from pathlib import Path

from svc.version import VERSION
from tests.support.cases import each
from tests.support.interface_digest import interface

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CHANGELOG.md").read_text()
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def versions() -> list[str]:
    return re.findall(r"^## \[(\d+\.\d+\.\d+)\]", TEXT, re.MULTILINE)


def test_newest_version_comes_first_and_each_has_a_date() -> None:
    first, *released = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    assert first == "[Unreleased]"
    found = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)", title) for title in released]
    assert all(found), released
    dated = [(numbers(each[1]), date.fromisoformat(each[2])) for each in found if each]
    assert dated == sorted(dated, reverse=True)
    assert numbers(VERSION) >= max((version for version, _ in dated), default=(0, 0, 0))


def test_changes_are_grouped_by_kind_in_one_order() -> None:
    for version in re.split(r"^## .*$", TEXT, flags=re.MULTILINE)[1:]:
        before, *parts = re.split(r"^### (.*)$", version, flags=re.MULTILINE)
        assert before.strip() == "", "every change belongs to a kind"
        kinds, lists = parts[::2], parts[1::2]
        assert kinds == [kind for kind in KINDS if kind in kinds]
        for changes in lists:
            entries = changes.strip().splitlines()
            assert entries and entries[0].startswith("- ")
            assert all(re.match(r"- \S|  \S", line) for line in entries)


def test_every_release_has_its_interface_and_its_schema() -> None:
    assert {path.stem for path in (ROOT / "tests" / "releases").glob("*.txt")} == set(versions())
    assert {path.stem for path in (ROOT / "tests" / "schemas").glob("*.sql")}, "a release keeps its schema"


def named_in(unreleased: str, name: str) -> bool:
    """Return whether an entry has the name: a setting, a command, a tool, or the method and the path of an operation."""
    kind, _, named = name.partition(" ")
    exact = re.compile(rf"`[^`]*(?<![\w/}}]){re.escape(named)}(?![\w/{{])[^`]*`")
    method = re.compile(rf"\b{kind}\b" if kind.isupper() else "")
    entries = re.split(r"^- ", unreleased, flags=re.MULTILINE)
    return any(exact.search(entry) and method.search(entry) for entry in entries)


def test_each_change_of_the_interface_is_named_in_the_changelog() -> None:
    """Fail if no entry under [Unreleased] names a new operation, setting, command or tool, or the path of a changed
    operation. `/v1/*` names several that have changed, and none that is new.
    """
    lines = (ROOT / "tests" / "releases" / f"{versions()[0]}.txt").read_text().splitlines()
    released = {name: digest for digest, _, name in (line.partition(" ") for line in lines)}
    today = interface()
    unreleased = TEXT.partition("## [Unreleased]")[2].partition("\n## ")[0]
    new = {name for name in released.keys() ^ today.keys() if not named_in(unreleased, name)}
    patterns = re.findall(r"`(/[^`]*\*)`", unreleased)
    changed = {name.partition(" ")[2] for name in released.keys() & today.keys() if released[name] != today[name]}
    changed = {path for path in changed if path not in unreleased and not any(fnmatch(path, one) for one in patterns)}
    assert sorted(new | changed) == [], "name these in an entry under [Unreleased] of CHANGELOG.md"


@each(
    ("text", "is_named"),
    [
        ("- `GET /user/api-keys/{key_id}` shows one.\n", True),
        ("- `GET` and `DELETE /user/api-keys/{key_id}`.\n", True),
        ("- `/user/*` has more.\n", False),
        ("- `POST /user/api-keys/{key_id}`.\n", False),
        ("- `GET /user/api-keys`.\n", False),
        ("- `GET /user/api-keys/{key_id}/uses`.\n", False),
        ("- `POST /user/api-keys/{key_id}`.\n- `GET /x`.\n", False),
    ],
)
def test_a_new_operation_must_be_named_with_method_and_path(text: str, is_named: bool) -> None:
    assert named_in(text, "GET /user/api-keys/{key_id}") is is_named
