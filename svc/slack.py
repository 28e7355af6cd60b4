"""Overwrite the remains of moved rows in unused parts of the database's pages, which `secure_delete` leaves there.

When SQLite splits a page, or moves rows between pages, it writes a page again from its end. Earlier bytes of moved rows
stay between the page's list of cells and its first cell. They outlive the rows. (`rebuildPage` in SQLite's btree.c)

note() before each checkpoint -> note_copied() when the log is empty: the pages are in the file -> examine_written()
reads them, on the thread of the checkpoints -> overwrite() on the writer's thread, with an empty log: zeros over the
unused bytes

No other process writes to the file at that time: this one has the write lock, and a checkpoint of an empty log copies
nothing. Readers do not read unused bytes.
"""

import contextlib
import os
import sqlite3
import struct
import sys
import threading
import time
from array import array
from pathlib import Path

_PAGE_BYTES = 4096
_FILE_HEAD_BYTES = 100
_LOG_HEAD = struct.Struct("=16xII8x")  # the salts, which change whenever the log restarts
# A frame begins with the number of its page, whether a transaction ends, and the salts, in words of 4 bytes.
FRAME_BYTES = 24 + _PAGE_BYTES
_FRAME_WORDS = FRAME_BYTES // 4
_FRAMES_AT_ONCE = 256
_INTERIOR_INDEX, _INTERIOR_TABLE, _LEAF_INDEX, _LEAF_TABLE = 2, 5, 10, 13
_KINDS = {_INTERIOR_INDEX: 12, _INTERIOR_TABLE: 12, _LEAF_INDEX: 8, _LEAF_TABLE: 8}  # bytes of the page's head
# In a file of fewer pages, other pages do not begin with one of _KINDS: they begin with the number of a page.
_LAST_PAGE = _INTERIOR_INDEX << 24
_ZEROS = bytes(_PAGE_BYTES)
_EXAMINE_SECONDS, _OVERWRITE_SECONDS = 0.003, 0.005


class Slack:
    """The pages of one database file that may hold remains. `overwrite` never runs beside `examine_...`."""

    def __init__(self, path: Path) -> None:
        self._log = path.with_name(f"{path.name}-wal")
        # Closing a file ends SQLite's locks on it in this process, so `close` comes after its last connection.
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._lock = threading.Lock()
        self._salts, self._frames = (0, 0), 0  # of the log, as far as it was noted
        self._in_log: set[int] = set()  # pages that were written, and may not be in the file yet
        self._written: set[int] = set()  # pages to examine
        self._walk: list[int] = []  # pages of b-trees that are not yet examined
        self._begin_walk = True
        self._remains: set[int] = set()  # pages to overwrite

    def close(self) -> None:
        os.close(self._file)

    @property
    def has_remains(self) -> bool:
        return bool(self._remains)

    def note(self) -> int:
        """Note the pages of all frames in the log; return how many were committed since the last call."""
        with self._lock, self._log.open("rb", buffering=0) as log:
            head = log.read(_LOG_HEAD.size)
            salts: tuple[int, int] = _LOG_HEAD.unpack(head) if len(head) == _LOG_HEAD.size else (0, 0)
            if salts != self._salts:
                self._salts, self._frames = salts, 0
            before = noted = self._frames
            log.seek(_LOG_HEAD.size + noted * FRAME_BYTES)
            while count := len(frames := log.read(_FRAMES_AT_ONCE * FRAME_BYTES)) // FRAME_BYTES:
                heads = memoryview(frames[: count * FRAME_BYTES]).cast("I")
                # One word of all frames at a time: frame by frame it took 3 % of a paid chat.
                pages, ends, *found = (heads[word::_FRAME_WORDS].tolist() for word in range(4))
                both = list(zip(*found, strict=True))
                whole = count if {*both} == {salts} else next(n for n, those in enumerate(both) if those != salts)
                self._in_log.update(_numbers(pages[:whole]))
                last = next((n for n in range(whole - 1, -1, -1) if ends[n]), None)
                if last is not None:  # what follows the last commit may be written again, with other pages
                    self._frames = noted + last + 1
                noted += whole
                if whole < count:
                    break
            return self._frames - before

    def note_copied(self) -> None:
        """Let `examine_written` read all noted pages. On the writer's thread, after it has emptied the log."""
        with self._lock:
            self._written |= self._in_log
            self._in_log = set()

    def examine_all(self) -> None:
        """Let `examine_tree` walk through all pages: some were written without note."""
        self._begin_walk = True

    def examine_written(self) -> bool:
        """Look for remains in noted pages for 3 ms; return whether some are left to examine."""
        ends = time.monotonic() + _EXAMINE_SECONDS
        with contextlib.suppress(KeyError):
            while time.monotonic() < ends:
                self._examine(self._written.pop())
        return bool(self._written)

    def examine_tree(self, conn: sqlite3.Connection) -> bool:
        """Walk through the b-trees for 3 ms; return whether pages are left."""
        if self._begin_walk:
            self._begin_walk = False
            self._walk = [row[0] for row in conn.execute("SELECT rootpage FROM sqlite_schema WHERE rootpage > 1")]
        ends = time.monotonic() + _EXAMINE_SECONDS
        while self._walk and time.monotonic() < ends:
            self._walk += _children(self._examine(self._walk.pop()))
        return bool(self._walk)

    def _examine(self, number: int) -> bytes:
        page = self._read(number)
        if _unused(number, page) is not None:
            self._remains.add(number)
        return page

    def overwrite(self, conn: sqlite3.Connection) -> None:
        """Overwrite remains for 5 ms, if the log is empty. `conn` is the connection that writes."""
        if not (self._remains and self._is_known()):
            return
        ends = time.monotonic() + _OVERWRITE_SECONDS
        conn.execute("BEGIN IMMEDIATE")
        try:
            while self._remains and time.monotonic() < ends and not self._log.stat().st_size:
                number = self._remains.pop()
                if unused := _unused(number, self._read(number)):
                    os.pwrite(self._file, _ZEROS[unused], (number - 1) * _PAGE_BYTES + unused.start)
        finally:
            conn.execute("COMMIT")
            conn.execute("PRAGMA shrink_memory")  # the cache of SQLite still has the deleted bytes

    def sync(self) -> None:
        os.fdatasync(self._file)

    def _is_known(self) -> bool:
        """Return whether pages have the expected size without reserved bytes, and can be known by their first byte."""
        head = os.pread(self._file, _FILE_HEAD_BYTES, 0)
        size, has_pointer_maps = int.from_bytes(head[16:18], "big"), any(head[52:56])
        pages = os.fstat(self._file).st_size // _PAGE_BYTES
        known = len(head) == _FILE_HEAD_BYTES and size == _PAGE_BYTES and head[20] == 0 and not has_pointer_maps
        return known and pages < _LAST_PAGE

    def _read(self, number: int) -> bytes:
        return os.pread(self._file, _PAGE_BYTES, (number - 1) * _PAGE_BYTES)


def _numbers(words: list[int]) -> "array[int]":
    """Return numbers in the byte order of the machine that the file has in big-endian order."""
    numbers = array("I", words)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def _unused(number: int, page: bytes) -> slice | None:
    """Return the unused part of a page of a b-tree if it has other bytes than zeros. The first page has no rows."""
    if len(page) < _PAGE_BYTES or page[0] not in _KINDS or number <= 1:
        return None
    cells, begin = struct.unpack_from(">HH", page, 3)
    unused = slice(_KINDS[page[0]] + 2 * cells, begin)
    if unused.start >= unused.stop or unused.stop > _PAGE_BYTES or page[unused] == _ZEROS[unused]:
        return None
    return unused


def _children(page: bytes) -> list[int]:
    """Return the pages below an interior page of a b-tree."""
    if len(page) < _PAGE_BYTES or page[0] not in (_INTERIOR_INDEX, _INTERIOR_TABLE):
        return []
    (cells,) = struct.unpack_from(">H", page, 3)
    places = struct.unpack_from(f">{min(cells, 2_000)}H", page, 12)
    children = [struct.unpack_from(">I", page, place)[0] for place in places if place <= _PAGE_BYTES - 4]
    return [*children, *struct.unpack_from(">I", page, 8)]
