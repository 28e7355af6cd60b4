"""The texts of an account, deleted in parts between which the indexes of words are merged, so that no merge takes long.

FTS5 merges until it has written so many pages, and where a deletion meets what it deletes nothing is written: all the words of an
account stand side by side, and when those of 300,000 messages were deleted, it read through all of them in one go of 0.7 s. So of
much text three quarters go first, at random; the quarter that is left makes each merge write; then three quarters of that go.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from svc.content import fulltext

_MOST_CHARACTERS = 1_000_000  # which may go without a merge: it takes some milliseconds to read through their words
_RANDOM_CHARACTERS = 12  # at the end of an id


@dataclass
class Part:
    """Three of four rows, by the character of their id that is at `place` from its end, or at 0 all; and of these the ones before
    a number, which moves down as they go."""

    WHERE: ClassVar = "number < :before AND (:place = 0 OR substr(id, -:place, 1) >= '8')"

    place: int = 0
    before: int = 2**63 - 1
    characters: int = 0

    def note(self, number: int, text: str) -> None:
        """To be called with each row that is gone."""
        self.before = number
        self.characters += min(len(text), fulltext.INDEXED_CHARACTERS)


class Forgetting:
    """`forget_some(tx, account_id, part)` deletes rows of a part for some milliseconds, and tells whether there are more."""

    def __init__(self, forget_some: Callable[[sqlite3.Connection, str, Part], bool], account_id: str) -> None:
        self._forget_some = forget_some
        self._account_id = account_id
        self._part = Part(place=1)
        self._unmerged = 0  # characters that are gone since the last merge
        self._merging = False
        self._over = False

    def go_on(self, tx: sqlite3.Connection) -> bool:
        """Goes on for some milliseconds; whether there is more to do."""
        if self._over:
            return False
        if self._merging:
            self._merging = fulltext.merge_some(tx)
        elif not self._forget_some(tx, self._account_id, self._part):
            self._next_part(tx)
        return not self._over

    def _next_part(self, tx: sqlite3.Connection) -> None:
        place, left = self._part.place, self._part.characters // 3  # about: a quarter of all
        self._unmerged += self._part.characters
        if place == 0:
            self._over = True
            return
        if self._unmerged + left > _MOST_CHARACTERS:
            fulltext.begin_merge(tx)
            self._merging, self._unmerged = True, 0
        self._part = Part(place=0 if left <= _MOST_CHARACTERS or place == _RANDOM_CHARACTERS else place + 1)
