"""The sorted runs of words: whatever is added, removed, merged and purged, searches find exactly what is stored."""

import sqlite3

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svc.content import word_runs
from svc.content.word_runs import CHUNKS, MESSAGES, tidy_some, words_beginning
from svc.deletion.slices import begin_deletion, continue_deletion
from svc.ids import new_id
from tests.content.test_history import NOW, account, indexed, new_database, tidy

WORDS = ["zebra", "zebras", "lion", "lions", "a", "ab", "狗 ", "狗猫", "狗鳥", "猫狗", "x" * 64, "ß", "𠀀狗"]


@pytest.fixture(autouse=True)
def _small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a few lines, so that few words make several levels."""
    sizes = {"_FRESH_ROWS": 2, "_FAN": 2, "_BLOCK_LINES": 3, "_STEP_BLOCKS": 3, "_PURGE_BLOCKS": 2}
    for name, value in sizes.items():
        monkeypatch.setattr(word_runs, name, value)


class Texts:
    """Texts of one account in a database, and the words of each as a model."""

    def __init__(self, conn: sqlite3.Connection | None = None, email: str = "ada@example.com") -> None:
        self.conn = conn or new_database()
        self.account_id = account(self.conn, email)
        self.words: dict[int, set[str]] = {}
        self.has_old_words = False

    def add(self, words: set[str]) -> None:
        statement = (
            "INSERT INTO messages (id, account_id, run_id, role, content, created_at) VALUES (?, ?, 'r', 'user', '', 1)"
        )
        number = self.conn.execute(statement, (new_id("msg", NOW), self.account_id)).lastrowid or 0
        self.words[number] = words
        MESSAGES.add(self.conn, self.account_id, number * CHUNKS, words)

    def add_again(self, number: int, words: set[str]) -> None:
        """Index a message once more, as after an upgrade: its old words stay."""
        self.words[number] |= words
        self.has_old_words = True
        MESSAGES.add_again(self.conn, self.account_id, number * CHUNKS, self.words[number])

    def remove(self, number: int, size_bytes: int = 1) -> None:
        del self.words[number]
        MESSAGES.remove(self.conn, self.account_id, number * CHUNKS, (number + 1) * CHUNKS, size_bytes)
        self.conn.execute("DELETE FROM messages WHERE number = ?", (number,))

    def check_searches(self, most: int = 3) -> None:
        for word in WORDS:
            for beginning in (False, True):
                asked = word[:1] if beginning else word
                wanted = [
                    number * CHUNKS
                    for number, words in self.words.items()
                    if (any(one.startswith(asked) for one in words) if beginning else asked in words)
                ]
                # Beginnings are searched run by run, and the newest runs may have old places that were added again.
                count = 100 if beginning and self.has_old_words else most
                found = MESSAGES.newest(self.conn, self.account_id, [asked], count, beginning=beginning)
                assert found == sorted(wanted, reverse=True)[:count], (asked, beginning)

    def check_words(self) -> None:
        used = sorted(set().union(*self.words.values()))
        for beginning in ("z", "li", "a", "狗", "q"):
            wanted = [word for word in used if word.startswith(beginning)]
            assert words_beginning(self.conn, self.account_id, beginning, 100) == wanted
            assert words_beginning(self.conn, self.account_id, beginning, 1) == wanted[:1]
            assert words_beginning(self.conn, self.account_id, beginning, 100, range(5, 7)) == [
                word for word in wanted if len(word) in range(5, 7)
            ]


OPERATIONS = st.lists(
    st.one_of(
        st.sets(st.sampled_from(WORDS), min_size=1, max_size=6),
        st.tuples(st.integers(0, 30), st.sets(st.sampled_from(WORDS), max_size=3)),
        st.integers(0, 30),
        st.just("tidy"),
        st.just("all"),
    ),
    max_size=60,
)


@given(OPERATIONS)
@example([{"zebra"}, {"a", "zebra"}, {"a"}, {"zebra"}, {"zebra"}, {"a"}, "tidy"])  # a merge copies the middle of "a"
@example([{"zebra"}] * 6 + [(0, set()), 0])  # indexed again and deleted
@example([{"zebra"}] * 5 + [(0, set())] * 3)  # several runs have the same line
def test_searches_match_the_stored_messages_after_each_step(
    operations: list[set[str] | tuple[int, set[str]] | int | str],
) -> None:
    texts = Texts()
    for operation in operations:
        if isinstance(operation, set):
            texts.add(operation)
        elif isinstance(operation, int):
            if texts.words:
                texts.remove(sorted(texts.words)[operation % len(texts.words)])
        elif isinstance(operation, tuple):
            if texts.words:
                texts.add_again(sorted(texts.words)[operation[0] % len(texts.words)], operation[1])
        elif operation == "tidy":
            texts.conn.execute("UPDATE word_purges SET due_at = 0")
            tidy_some(texts.conn)
        else:
            tidy(texts.conn)
        texts.check_searches()
    tidy(texts.conn)
    texts.check_searches(most=100)
    texts.check_words()
    stored = {(texts.account_id, word, number * CHUNKS) for number, words in texts.words.items() for word in words}
    assert indexed(texts.conn) == stored, "and nothing of what was removed"
    texts.conn.close()


def test_common_word_reads_only_its_newest_places() -> None:
    texts = Texts()
    for _ in range(300):
        texts.add({"the", "zebra"})
    tidy(texts.conn)
    read: list[int] = []
    unpacked = word_runs.unpacked

    def counted(packed: bytes) -> str:
        read.append(1)
        return unpacked(packed)

    word_runs.unpacked, before = counted, word_runs.unpacked
    try:
        assert len(MESSAGES.newest(texts.conn, texts.account_id, ["the"], 5)) == 5
        assert words_beginning(texts.conn, texts.account_id, "the", 5) == ["the"]
    finally:
        word_runs.unpacked = before
    assert len(read) < 40, "of 200 blocks"


def test_words_are_deleted_with_their_account() -> None:
    texts = Texts()
    bob = account(texts.conn, "bob@example.com")
    for place in range(50):
        texts.add({"zebra", f"w{place}"})
        MESSAGES.add(texts.conn, bob, place * CHUNKS, {"lion"})
    begin_deletion(texts.conn, texts.account_id, NOW, None)
    while continue_deletion(texts.conn, texts.account_id):
        pass
    assert {account_id for account_id, _, _ in indexed(texts.conn)} == {bob}
    tables = ("fresh_words", "word_runs", "word_purges")
    left = [
        texts.conn.execute(f"SELECT 1 FROM {table} WHERE account_id = ?", (texts.account_id,)).fetchone()
        for table in tables
    ]
    assert left == [None] * 3
    assert MESSAGES.newest(texts.conn, bob, ["lion"], 1) == [49 * CHUNKS]


def test_purge_interval_grows_with_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = Texts()
    monkeypatch.setattr(word_runs.time, "time", lambda: 1000.0)
    due = "SELECT due_at - 1000 FROM word_purges"
    waits = []
    for count in (4, 12, 600):
        for _ in range(count):
            texts.add({"zebra"})
        while tidy_some(texts.conn):
            pass
        texts.remove(min(texts.words))
        waits.append(texts.conn.execute(due).fetchone()[0])
        texts.conn.execute("DELETE FROM word_purges")
    assert 0 < waits[0] < waits[1] <= waits[2] == 20
    assert not tidy_some(texts.conn)
    tenth = texts.conn.execute("SELECT bytes FROM stored").fetchone()[0] // 10
    for deleted, due_at in ((1, waits[2]), (2, waits[2]), (3, 0)):
        texts.remove(min(texts.words), tenth)
        assert texts.conn.execute(due).fetchone()[0] == due_at, deleted
    tidy(texts.conn)
    texts.check_searches()


def test_purge_of_a_small_account_does_not_wait_for_a_large_one() -> None:
    texts = Texts()
    for number in range(300):
        texts.add({"lion", f"w{number}"})
    tidy(texts.conn)
    small = Texts(texts.conn, "bob@example.com")
    for number in range(6):
        small.add({"zebra", f"v{number}"})
    tidy(texts.conn)
    due = "UPDATE word_purges SET due_at = 0"
    texts.remove(min(texts.words))
    texts.conn.execute(due)
    merging = "SELECT max(into_run), level FROM word_runs WHERE account_id = ? AND into_run IS NOT NULL"
    while (texts.conn.execute(merging, (texts.account_id,)).fetchone()["level"] or 0) < 4:
        assert tidy_some(texts.conn)
    begun = tuple(texts.conn.execute(merging, (texts.account_id,)).fetchone())
    small.remove(min(small.words))
    texts.conn.execute(due)
    left = "SELECT count(*) FROM word_purges WHERE account_id = ?"
    while texts.conn.execute(left, (small.account_id,)).fetchone()[0]:
        assert tidy_some(texts.conn)
    assert tuple(texts.conn.execute(merging, (texts.account_id,)).fetchone()) == begun
    tidy(texts.conn)
    for each in (texts, small):
        each.check_searches()


def test_a_step_of_a_purge_looks_up_few_places_and_reads_no_texts() -> None:
    texts = Texts()
    for _ in range(300):
        texts.add({"lion"})
    tidy(texts.conn)
    texts.remove(min(texts.words))
    statements: list[str] = []
    texts.conn.set_trace_callback(statements.append)
    tidy(texts.conn)
    texts.conn.set_trace_callback(None)
    lookups = [one for one in statements if "json_each(" in one and "FROM messages" in one]
    assert len(lookups) > 30 and max(one.count(", ") for one in lookups) < 2 * 3, "two blocks of three lines"
    plan = [row["detail"] for row in texts.conn.execute(f"EXPLAIN QUERY PLAN {lookups[0]}")]
    assert any("messages USING COVERING INDEX" in step for step in plan), plan
    texts.check_searches()


def test_merge_continues_in_another_process(tmp_path_factory: pytest.TempPathFactory) -> None:
    texts = Texts()
    for number in range(100):
        texts.add({"zebra", f"w{number}"})
    tidy_some(texts.conn)
    copy = sqlite3.connect(":memory:", isolation_level=None)
    texts.conn.backup(copy)
    copy.row_factory = sqlite3.Row
    texts.conn.close()
    texts.conn = copy
    texts.check_searches()
    tidy(copy)
    texts.check_searches(most=200)
