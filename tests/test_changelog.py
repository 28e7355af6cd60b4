"""CHANGELOG.md keeps the form of keepachangelog.com, and the version of the project is one that it knows."""

import re
from datetime import date
from pathlib import Path

from svc.version import VERSION

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CHANGELOG.md").read_text()
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_versions_are_newest_first_with_their_dates() -> None:
    first, *released = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    assert first == "[Unreleased]"
    found = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)", title) for title in released]
    assert all(found), released
    versions = [(numbers(each[1]), date.fromisoformat(each[2])) for each in found if each]
    assert versions == sorted(versions, reverse=True)
    project = numbers(VERSION)
    assert project >= max((version for version, _ in versions), default=(0, 0, 0))


def test_changes_are_grouped_by_kind_in_one_order() -> None:
    for version in re.split(r"^## .*$", TEXT, flags=re.MULTILINE)[1:]:
        before, *parts = re.split(r"^### (.*)$", version, flags=re.MULTILINE)
        assert before.strip() == "", "every change stands under its kind"
        kinds, lists = parts[::2], parts[1::2]
        assert kinds == [kind for kind in KINDS if kind in kinds]
        for changes in lists:
            entries = changes.strip().splitlines()
            assert entries and entries[0].startswith("- ")
            assert all(re.match(r"- \S|  \S", line) for line in entries)
