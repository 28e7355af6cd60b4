"""svc/budget.py: the CPU time that one piece of work may use."""

import sqlite3
import time
from collections.abc import Iterator

import pytest

from svc.budget import best_effort, limited, spent

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


@pytest.fixture
def conn() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.set_progress_handler(spent, 1_000)
    yield connection
    connection.close()


def work(cpu_seconds: float) -> None:
    ends = time.thread_time() + cpu_seconds
    while time.thread_time() < ends:
        pass


def test_no_cpu_time_is_counted_without_a_limit() -> None:
    assert not spent()


def test_limit_counts_cpu_time_without_waiting() -> None:
    with limited(0.02):
        time.sleep(0.05)
        assert not spent()
        work(0.03)
        assert spent()
    assert not spent()


def test_the_smaller_of_two_limits_applies() -> None:
    with limited(0.01):
        work(0.02)
        with limited(10):
            assert spent()
    with limited(10):
        with limited(0.01):
            work(0.02)
            assert spent()
        assert not spent()


def test_query_is_interrupted_at_its_cpu_limit(conn: sqlite3.Connection) -> None:
    began = time.thread_time()
    with pytest.raises(sqlite3.OperationalError, match="interrupted"), limited(0.02):
        conn.execute(ENDLESS).fetchall()
    assert time.thread_time() - began < 1
    assert conn.execute("SELECT 1").fetchone() == (1,)


def test_best_effort_keeps_partial_results_and_continues(conn: sqlite3.Connection) -> None:
    found = []
    with limited(10):
        with best_effort(0.02):
            for row in conn.execute(ENDLESS):
                found.append(row)
            raise AssertionError("it never ends by itself")
        assert found and not spent()
        assert conn.execute("SELECT 1").fetchone() == (1,)


def test_best_effort_raises_other_errors_and_the_outer_limit(conn: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"), best_effort(10):
        conn.execute("SELECT * FROM none_such")
    with pytest.raises(sqlite3.OperationalError, match="interrupted"), limited(0.02), best_effort(10):
        conn.execute(ENDLESS).fetchall()
