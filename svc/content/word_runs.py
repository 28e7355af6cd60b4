"""Store the places of each account's words in sorted runs that are merged in short steps (a log-structured merge tree).

A line is a word and a place: "zebra 00000004d2". Each account has its own lines, so a search reads no words of others.
A purge rewrites those of one account. FTS5 would rewrite the words of all accounts (svc/README.md).

add -> `fresh_words`, a row for each place -> beyond 64 places or 6,000 words a run: sorted lines, in compressed blocks
tidy_some -> eight runs of one level become one of the next level, a few blocks at a time
remove -> fresh rows are deleted at once, other lines of a deleted text when the account's runs are rewritten
(`word_purges`)

A step of a merge moves the first lines of its runs to the end of the new run. So each line is always in a run. A block
is deleted when all its lines have moved. Until then some of them are in two runs, which changes no search.
"""

import sqlite3
import time
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from svc.budget import spent
from svc.content.word_blocks import DIGITS, largest, lines_beginning, lines_of, packed, places_in, unpacked, word_of
from svc.content.words import is_unspaced
from svc.tables import run_some

CHUNKS = 128  # places of one message or title
_FRESH_ROWS = 64
_FRESH_LINES = 6_000
_FAN = 8  # so many runs of a level are merged
_BLOCK_LINES = 400
_BLOCK_BYTES = 1_300  # about; three fill a page of the database
_STEP_BLOCKS = 27  # read in one step: it takes about 5 ms
_PURGE_BLOCKS = 9  # the same for a purge, which looks up each place; more than _FAN, or a step may move nothing
_LEVEL_ONE_SECONDS = 2.0
_PURGE_SECONDS = 20.0  # at most between a deletion and the purge of its words
# The level of each run. A run into which others are merged has some of their lines.
_LEVELS = """
    SELECT id, level - (id IN (SELECT into_run FROM word_runs WHERE account_id = ?1 AND into_run IS NOT NULL))
    FROM word_runs WHERE account_id = ?1
"""
_LAST_SIGN = "\U0010ffff"
# SQL that returns a row if the text of a place is stored. A page of the table has few messages, one of the index many.
_TITLE = "SELECT 1 FROM conversations WHERE account_id = ?1 AND number = value / ?2 AND title_version = value % ?2"
_PASSAGE = "SELECT 1 FROM file_passages WHERE account_id = ?1 AND number = value AND ?2"
_CURRENT = "SELECT 1 FROM current_messages WHERE account_id = ?1 AND number = value / ?2"
_MESSAGE = "SELECT 1 FROM messages INDEXED BY messages_by_number WHERE account_id = ?1 AND number = value / ?2"


class Index(NamedTuple):
    """The words of titles, of messages or of a project's files, which the `mark` before each word separates.

    A place is in the index while its text is `stored`, and `found` on the current branch of its conversation.
    """

    mark: str
    stored: str
    found: str

    def add(self, tx: sqlite3.Connection, account_id: str, place: int, words: Collection[str]) -> None:
        """Store the place, below 2**40, of the account's `words`, which are folded and distinct."""
        if not words:
            return
        text = "\n".join(sorted(self.mark + word for word in words))
        row = (account_id, _key(self.mark, place), len(words), f"\n{text}\n")
        tx.execute("INSERT OR REPLACE INTO fresh_words (account_id, place, lines, words) VALUES (?, ?, ?, ?)", row)
        fresh = "SELECT count(*), sum(lines) FROM fresh_words WHERE account_id = ?"
        rows, lines = tx.execute(fresh, (account_id,)).fetchone()
        if rows > _FRESH_ROWS or lines > _FRESH_LINES:
            _make_run(tx, account_id)

    def add_again(self, tx: sqlite3.Connection, account_id: str, place: int, words: Collection[str]) -> None:
        """Store a place of which the runs may have other words, which stay. It goes into a run at once, because
        `remove` takes a text whose first place is fresh for one that no run has.
        """
        self.add(tx, account_id, place, words)
        _make_run(tx, account_id)

    def remove(self, tx: sqlite3.Connection, account_id: str, first: int, end: int, size_bytes: int) -> None:
        """Remove the places from `first` to below `end` of one text of `size_bytes` that the same transaction deletes.

        They are added in order and leave `fresh_words` together: if the first is fresh, all are. Otherwise the
        account's runs must be rewritten, which takes 0.5 s of CPU for each MB of texts. This begins when a quarter of
        them was deleted, else after a time that grows with them, up to 20 s.
        """
        statement = "DELETE FROM fresh_words WHERE account_id = ? AND place >= ? AND place < ? RETURNING place"
        rows = tx.execute(statement, (account_id, _key(self.mark, first), _key(self.mark, end))).fetchall()
        level = tx.execute("SELECT max(level) FROM word_runs WHERE account_id = ?", (account_id,)).fetchone()[0]
        if level is None or any(row[0] == _key(self.mark, first) for row in rows):
            return
        now_seconds = time.time()
        statement = """
            INSERT INTO word_purges (account_id, due_at, deleted_bytes) VALUES (?, ?, ?)
            ON CONFLICT DO UPDATE SET deleted_bytes = deleted_bytes + excluded.deleted_bytes
        """
        delay_seconds = min(_LEVEL_ONE_SECONDS * _FAN ** (level - 1), _PURGE_SECONDS)
        tx.execute(statement, (account_id, now_seconds + delay_seconds, size_bytes))
        statement = """
            UPDATE word_purges SET due_at = min(due_at, ?2) WHERE account_id = ?1 AND last_run IS NULL
                AND 4 * deleted_bytes > (SELECT bytes FROM stored WHERE account_id = ?1)
        """
        tx.execute(statement, (account_id, now_seconds))

    def newest(
        self, conn: sqlite3.Connection, account_id: str, words: Iterable[str], most: int, *, beginning: bool = False
    ) -> list[int]:
        """Return the `most` newest places of any of the folded `words`, or of words that begin so, newest first.

        The result is incomplete if the budget of the read is spent.
        """
        # A single sign of a script without spaces is the beginning of a pair, see `indexed_words`.
        asked = sorted((self.mark + word, beginning or (len(word) == 1 and is_unspaced(word))) for word in words)
        query = """
            SELECT 1 FROM word_purges WHERE account_id = ?1 UNION ALL SELECT 1 FROM branches WHERE account_id = ?1
        """
        all_live = conn.execute(query, (account_id,)).fetchone() is None
        read = most
        while True:
            places = _newest(conn, account_id, asked, read)
            live = set(places) if all_live else _existing(conn, self.found, account_id, places)
            if len(live) >= most or len(places) < read or spent():
                return [place for place in places if place in live][:most]
            read += 2 * (read - len(live))  # deleted or replaced texts displaced others


TITLES, MESSAGES = Index("=", _TITLE, _TITLE), Index("", _MESSAGE, _CURRENT)
_FILES_MARK = "+"


def files_index(project_id: str) -> Index:
    """Return the index of a project's files. A place is the number of a passage. Two projects may share a mark."""
    return Index(f"{_FILES_MARK}{project_id[-6:]}{_FILES_MARK}", _PASSAGE, _PASSAGE)


def _newest(conn: sqlite3.Connection, account_id: str, asked: list[tuple[str, bool]], most: int) -> list[int]:
    found: set[str] = set()
    for key, text in conn.execute("SELECT place, words FROM fresh_words WHERE account_id = ?", (account_id,)):
        if any((f"\n{word}" if begins else f"\n{word}\n") in text for word, begins in asked):
            found.add(key[-DIGITS:])
    for word, begins in asked:
        found.update((_places_beginning if begins else _places_of)(conn, account_id, word, most))
        if spent():
            break
    return [int(digits, 16) for digits in largest(found, most)]


def words_beginning(
    conn: sqlite3.Connection,
    account_id: str,
    beginning: str,
    most: int,
    lengths: range = range(1, 1_000),
    mark: str = "",
) -> list[str]:
    """Return the account's words that begin so and have one of `lengths`, the first `most` in order.

    They are those of messages, or of the index with the `mark`.
    """
    if mark:
        lengths = range(lengths.start + len(mark), lengths.stop + len(mark))
        return [word[len(mark) :] for word in words_beginning(conn, account_id, mark + beginning, most, lengths)]
    found: set[str] = set()
    for (text,) in conn.execute("SELECT words FROM fresh_words WHERE account_id = ?", (account_id,)):
        found.update(word for word in lines_beginning(text, beginning) if len(word) in lengths)
    for run, first, text in _blocks_at(conn, account_id, beginning):
        own: set[str] = set()
        for lines in _lines_from(conn, run, first, text, beginning):
            own.update(word for word in map(word_of, lines) if len(word) in lengths)
            if len(own) >= most:
                break
        found |= own
    return sorted(found)[:most]


def tidy_some(tx: sqlite3.Connection) -> bool:
    """Do one step of a merge or of a purge, the short ones first; return whether there was one. It takes about 5 ms."""
    query = """
        SELECT account_id, into_run, level FROM word_runs WHERE into_run IS NOT NULL ORDER BY level, account_id LIMIT 1
    """
    merge = tx.execute(query).fetchone()
    # A purge of an account whose runs are being merged waits until they are one.
    query = """
        SELECT due.account_id, due.id, (SELECT max(level) FROM word_runs WHERE account_id = due.account_id) AS level
        FROM (SELECT * FROM word_purges WHERE due_at <= ? ORDER BY due_at LIMIT 100) AS due
        WHERE NOT EXISTS (SELECT 1 FROM word_runs WHERE account_id = due.account_id AND into_run IS NOT NULL)
        ORDER BY level, due_at LIMIT 1
    """
    purge = tx.execute(query, (time.time(),)).fetchone()
    if purge and (merge is None or (purge["level"] or 0) < merge["level"]):
        _purge_some(tx, purge["account_id"], purge["id"])
    elif merge:
        _merge_some(tx, merge["account_id"], merge["into_run"])
    return bool(merge or purge)


def delete_some(tx: sqlite3.Connection, account_id: str) -> bool:
    """Delete runs of an account for 5 ms; return whether there are more. The other tables cascade."""
    own = "SELECT word_blocks.rowid FROM word_runs JOIN word_blocks ON run = id WHERE account_id = ?1 LIMIT ?2"
    if run_some(f"DELETE FROM word_blocks WHERE rowid IN ({own})", tx, account_id):  # noqa: S608 - our own words
        return True
    tx.execute("DELETE FROM word_runs WHERE account_id = ?", (account_id,))
    return False


def _key(mark: str, place: int) -> str:
    return f"{mark}{place:0{DIGITS}x}"


# --- reading runs


def _blocks_at(conn: sqlite3.Connection, account_id: str, line: str) -> list[tuple[int, str, str]]:
    """Return each run with the first line ("" before all blocks) and the text of the block where `line` belongs.

    One query for all runs takes a third of the time of a query for each.
    """
    query = """
        SELECT id, ifnull(first, ''), lines FROM word_runs LEFT JOIN word_blocks
            ON run = id AND first = (SELECT max(first) FROM word_blocks WHERE run = id AND first <= ?2)
        WHERE account_id = ?1
    """
    rows = conn.execute(query, (account_id, line))
    return [(run, first, unpacked(block) if block else "\n") for run, first, block in rows]


def _lines_from(conn: sqlite3.Connection, run: int, first: str, text: str, beginning: str) -> Iterator[list[str]]:
    """Yield the lines of a run that begin so, block by block from `text` on, until the budget of the read is spent.

    If all lines of a block have the same word, the blocks between it and the last one with this word are left out.
    """
    query = """
        SELECT first, lines FROM word_blocks WHERE run = ?1 AND first > ?2
            AND first >= ifnull((SELECT max(first) FROM word_blocks WHERE run = ?1 AND first <= ?3), '')
        ORDER BY first LIMIT 1
    """
    while True:
        lines = lines_beginning(text, beginning)
        yield lines
        last = text[text.rfind("\n", 0, -1) + 1 : -1]
        if last > beginning + _LAST_SIGN or spent():
            return
        is_one_word = lines and word_of(lines[0]) == word_of(last)
        row = conn.execute(query, (run, first, word_of(last) + "!" if is_one_word else first)).fetchone()
        if row is None:
            return
        first, text = row[0], unpacked(row[1])


def _places_of(conn: sqlite3.Connection, account_id: str, word: str, most: int) -> list[str]:
    """Return the `most` newest places of a word in the account's runs, in order. It reads only its last blocks."""
    beginning = word + " "
    ends = [(places_in(text, beginning), run, first) for run, first, text in _blocks_at(conn, account_id, word + "!")]
    ends.sort(key=lambda end: end[0][-1:], reverse=True)  # mostly, all places of a run are newer than those of the next
    before = "SELECT first, lines FROM word_blocks WHERE run = ? AND first < ? ORDER BY first DESC LIMIT 1"
    newest: list[str] = []
    for places, run, first in ends:
        oldest = newest[0] if len(newest) == most else ""
        while first > beginning and len(places) < most and places[0] > oldest and not spent():
            row = conn.execute(before, (run, first)).fetchone()
            if row is None:
                break
            first, places = row[0], [*places_in(unpacked(row[1]), beginning), *places]
        newest = sorted({*newest, *places})[-most:]  # a merge may have copied some of them
    return newest


def _places_beginning(conn: sqlite3.Connection, account_id: str, beginning: str, most: int) -> set[str]:
    """Return at least `most` places of words that begin so, if there are as many: all in the runs that are read.

    Mostly, all places of a run are newer than those of the next level. Runs of one level are read together.
    """
    levels = dict(conn.execute(_LEVELS, (account_id,)).fetchall())
    blocks = sorted(_blocks_at(conn, account_id, beginning), key=lambda block: levels[block[0]])
    found: set[str] = set()
    for _, level in groupby(blocks, key=lambda block: levels[block[0]]):
        common: set[str] = set()
        for run, first, text in level:
            for lines in _lines_from(conn, run, first, text, beginning):
                found.update([line[-DIGITS:] for line in lines])
                if lines and word_of(lines[0]) == word_of(lines[-1]):
                    common.add(word_of(lines[0]))
        found.update(*(_places_of(conn, account_id, word, most) for word in common))
        if len(found) >= most or spent():
            break
    return found


def _existing(conn: sqlite3.Connection, text: str, account_id: str, places: Iterable[int]) -> set[int]:
    """Return those of `places` for which the query `text` returns a row."""
    query = f"SELECT value FROM json_each(?3) WHERE EXISTS ({text})"  # noqa: S608 - our own words
    return {row[0] for row in conn.execute(query, (account_id, CHUNKS, str(list(places))))}


# --- writing runs


def _make_run(tx: sqlite3.Connection, account_id: str) -> None:
    rows = tx.execute("DELETE FROM fresh_words WHERE account_id = ? RETURNING place, words", (account_id,)).fetchall()
    if not rows:
        return
    lines: list[str] = []
    for key, text in rows:
        place = " " + key[-DIGITS:]
        lines += [word + place for word in text[1:-1].split("\n")]
    run = _new_run(tx, account_id, 1)
    _write(tx, run, sorted(lines))
    _merge_level(tx, account_id, run)


def _new_run(tx: sqlite3.Connection, account_id: str, level: int) -> int:
    return tx.execute("INSERT INTO word_runs (account_id, level) VALUES (?, ?)", (account_id, level)).lastrowid or 0


def _merge_level(tx: sqlite3.Connection, account_id: str, run: int) -> None:
    """Begin to merge the runs of the level of the new `run`, if there are enough."""
    query = """
        SELECT id, level FROM word_runs
        WHERE account_id = ?1 AND level = (SELECT level FROM word_runs WHERE id = ?2) AND into_run IS NULL
            AND id NOT IN (SELECT into_run FROM word_runs WHERE into_run IS NOT NULL)
    """
    rows = tx.execute(query, (account_id, run)).fetchall()
    if len(rows) >= _FAN:
        _begin_merge(tx, account_id, rows, rows[0]["level"] + 1)


def _begin_merge(tx: sqlite3.Connection, account_id: str, runs: list[sqlite3.Row], level: int) -> None:
    into = _new_run(tx, account_id, level)
    statement = "UPDATE word_runs SET into_run = ? WHERE account_id = ? AND id = ?"
    tx.executemany(statement, ((into, account_id, run["id"]) for run in runs))


def _write(tx: sqlite3.Connection, run: int, lines: list[str]) -> None:
    start, count = 0, _BLOCK_LINES // 2
    while start < len(lines):
        block = lines[start : start + count]
        block_bytes = packed(block)
        tx.execute("INSERT INTO word_blocks (run, first, lines) VALUES (?, ?, ?)", (run, block[0], block_bytes))
        start += count
        count = max(1, min(count * _BLOCK_BYTES // len(block_bytes), _BLOCK_LINES))


def _merge_some(tx: sqlite3.Connection, account_id: str, into: int) -> None:
    """Move the first lines of the runs that become the run `into`."""
    row = tx.execute("SELECT lines FROM word_blocks WHERE run = ? ORDER BY first DESC LIMIT 1", (into,)).fetchone()
    moved_to = "" if row is None else lines_of(row[0])[-1]
    purge = "SELECT 1 FROM word_purges WHERE account_id = ? AND last_run IS NOT NULL"
    is_purge = tx.execute(purge, (account_id,)).fetchone() is not None
    blocks = _PURGE_BLOCKS if is_purge else _STEP_BLOCKS
    query = """
        SELECT word_blocks.rowid, first, lines FROM word_runs JOIN word_blocks ON word_blocks.rowid IN (
            SELECT own.rowid FROM word_blocks AS own WHERE own.run = word_runs.id ORDER BY own.first LIMIT ?3)
        WHERE account_id = ?1 AND into_run = ?2 ORDER BY first LIMIT ?3
    """
    rows = tx.execute(query, (account_id, into, blocks + 1)).fetchall()
    end = rows.pop()["first"] if len(rows) > blocks else _LAST_SIGN  # the first line that was not read
    lines: list[str] = []
    for row in rows:
        block = lines_of(row["lines"])
        lines += block[bisect_right(block, moved_to) : bisect_left(block, end)]
        if block[-1] < end:
            tx.execute("DELETE FROM word_blocks WHERE rowid = ?", (row["rowid"],))
    if is_purge:
        lines = _live_lines(tx, account_id, lines)
    # A text that was indexed again has a line in two runs. In one run a line is once, so each step finishes a block.
    _write(tx, into, list(dict.fromkeys(sorted(lines))))
    if end < _LAST_SIGN:
        return
    tx.execute("DELETE FROM word_runs WHERE account_id = ? AND into_run = ?", (account_id, into))
    if lines or moved_to:
        _merge_level(tx, account_id, into)
    else:
        tx.execute("DELETE FROM word_runs WHERE account_id = ? AND id = ?", (account_id, into))


def _purge_some(tx: sqlite3.Connection, account_id: str, purge_id: int) -> None:
    """Begin to rewrite the next run without the lines of deleted texts."""
    statement = """
        UPDATE word_purges
        SET last_run = ifnull(last_run, (SELECT ifnull(max(id), 0) FROM word_runs WHERE account_id = ?1))
        WHERE account_id = ?1 AND id = ?2 RETURNING last_run
    """
    (last_run,) = tx.execute(statement, (account_id, purge_id)).fetchone()
    query = "SELECT id, level FROM word_runs WHERE account_id = ? AND id <= ? ORDER BY id LIMIT 1"
    if run := tx.execute(query, (account_id, last_run)).fetchone():
        _begin_merge(tx, account_id, [run], run["level"])
    else:
        tx.execute("DELETE FROM word_purges WHERE account_id = ? AND id = ?", (account_id, purge_id))


def _live_lines(tx: sqlite3.Connection, account_id: str, lines: list[str]) -> list[str]:
    by_kind: dict[str, dict[str, int]] = {_MESSAGE: {}, _TITLE: {}, _PASSAGE: {}}
    kinds = {TITLES.mark: _TITLE, _FILES_MARK: _PASSAGE}
    for line in lines:
        by_kind[kinds.get(line[0], _MESSAGE)][line] = int(line[-DIGITS:], 16)
    live: list[str] = []
    for stored, own in by_kind.items():
        places = _existing(tx, stored, account_id, set(own.values()))
        live += [line for line, place in own.items() if place in places]
    return live
