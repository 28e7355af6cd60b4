"""The spending of all accounts: the time depends on the period alone, and a cut list says so."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from svc.auth import accounts
from svc.billing import spending
from svc.billing.usage import COUNTS, add_call
from svc.db import Database
from svc.errors import ApiError
from svc.schema import connect, newest_schema
from tests.bench_usage import MONTHS, fill
from tests.bench_usage import main as bench
from tests.billing.test_wallet import empty_database
from tests.support.cases import each
from tests.support.databases import prepare

ALL_KINDS = [*([kind] for kind in spending.KINDS), ["user", "model"], ["day", "model"], ["key", "group"]]
NOW = 1_790_000_000.0


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database of 1,200 accounts, which are three slices, and 6,000 rows, whose first account is deleted."""
    path = tmp_path_factory.mktemp("spending") / "service.db"
    prepare(path, *newest_schema())
    with closing(connect(path)) as conn:
        fill(conn, 1_200, 6_000)
        (first,) = conn.execute("SELECT min(id) FROM accounts").fetchone()
        accounts.mark_deleting(conn, first, NOW)
    return path


def slices(conn: sqlite3.Connection, period: spending.Period, kinds: list[str]) -> list[spending.SpendingRow]:
    found, place = list[spending.SpendingRow](), None
    while True:
        rows, place = spending.rows_after(conn, period, kinds, place)
        found += rows
        if place is None:
            return found


@each("kinds", ALL_KINDS)
def test_slices_have_the_same_rows_as_one_query(filled: Path, monkeypatch: Any, kinds: list[str]) -> None:
    monkeypatch.setattr(spending, "SLICE_ROWS", 5)
    with closing(connect(filled, query_only=True)) as conn:
        for period in (spending.month_period(MONTHS[-1]), spending.Period("2026-03-10", "2026-04-02")):
            rows, total, has_more = spending.dearest(conn, period, kinds, most=10_000)
            found = slices(conn, period, kinds)
            names = spending.columns_of(kinds)[: -len(COUNTS)]
            by_name = [sorted(some, key=lambda row: [row[name] for name in names]) for some in (rows, found)]
            assert by_name[0] == by_name[1] and rows and not has_more
            assert len({tuple(row[name] for name in names) for row in rows}) == len(rows), "each has one row"
            query = f"SELECT {', '.join(f'sum({name})' for name in COUNTS)} FROM usage_days WHERE day BETWEEN ? AND ?"
            assert tuple(total[name] for name in COUNTS) == tuple(conn.execute(query, period).fetchone())
            assert {name: sum(row[name] for row in rows) for name in COUNTS} == {name: total[name] for name in COUNTS}


def test_slice_has_at_most_500_accounts(filled: Path) -> None:
    with closing(connect(filled, query_only=True)) as conn:
        ids = [row[0] for row in conn.execute("SELECT id FROM accounts ORDER BY id")]
        place, places = spending.rows_after(conn, spending.month_period(MONTHS[-1]), ["user"], ("",))[1], []
        while place is not None:
            places.append(place)
            place = spending.rows_after(conn, spending.month_period(MONTHS[-1]), ["user"], place)[1]
    assert places == [(ids[499],), (ids[999],), (ids[-1],)]


@each(("count", "sizes"), [(10_000, [10_000, 0]), (10_001, [10_000, 1])])
def test_slice_of_names_has_at_most_10_000_rows(count: int, sizes: list[int]) -> None:
    conn = empty_database()
    account_id = accounts.add_account(conn, "ada@example.com", None, None, NOW).id
    for number in range(count):
        add_call(conn, (account_id, None, f"m/{number:05}", "2026-09-01", ""), 1, 1, 1)
    found, place = [], None
    while True:
        rows, place = spending.rows_after(conn, spending.month_period("2026-09"), ["model"], place)
        found.append(len(rows))
        if place is None:
            break
    assert found == sizes


def test_cut_list_says_so_and_its_total_does_not_shrink(filled: Path) -> None:
    with closing(connect(filled, query_only=True)) as conn:
        period = spending.month_period(MONTHS[-1])
        whole, total, more = spending.dearest(conn, period, ["user", "model"])
        cut, same_total, cut_more = spending.dearest(conn, period, ["user", "model"], most=3)
    assert (cut, same_total, cut_more, more) == (whole[:3], total, True, False) and len(whole) > 3
    assert [row["cost_micros"] for row in whole] == sorted((row["cost_micros"] for row in whole), reverse=True)


@each("kinds", ALL_KINDS)
def test_history_outside_of_the_period_is_not_read(filled: Path, kinds: list[str]) -> None:
    """SQLite counts its instructions: 59 other months add none to those of one month."""

    def instructions(conn: sqlite3.Connection) -> int:
        calls = []
        conn.set_progress_handler(lambda: calls.append(None), 100)
        spending.dearest(conn, spending.month_period(MONTHS[-1]), kinds)
        for place in (None, ("",), ("user_00000000000000000000000100",)):
            if place is None or "user" in kinds:
                spending.rows_after(conn, spending.month_period(MONTHS[-1]), kinds, place)
        return len(calls)

    with closing(connect(filled)) as conn:
        conn.execute("BEGIN")
        long = instructions(conn)
        conn.execute("DELETE FROM usage_days WHERE day < ?", (MONTHS[-1],))
        short = instructions(conn)
        conn.execute("ROLLBACK")
    assert abs(long - short) < 0.05 * short + 2


def test_query_of_a_month_reads_a_range_of_the_primary_key(filled: Path) -> None:
    with closing(connect(filled, query_only=True)) as conn:
        plan = [row[3] for row in conn.execute(f"EXPLAIN QUERY PLAN {spending._OF_ALL}", ("a", "b"))]
    assert "SEARCH usage_days USING PRIMARY KEY (day>? AND day<?)" in plan
    assert not [step for step in plan if step.startswith("SCAN")]


@each(
    "first, last, period",
    [
        (None, None, ("2026-09-01", "2026-09-21")),
        ("2026-08-30", None, ("2026-08-30", "2026-09-21")),
        (None, "2026-02-10", ("2026-02-01", "2026-02-10")),
        ("2024-01-01", "2024-12-31", ("2024-01-01", "2024-12-31")),
    ],
)
def test_range_of_days_has_defaults(first: str | None, last: str | None, period: tuple[str, str]) -> None:
    assert spending.period_of(first, last, "2026-09-21") == period


@each(
    "first, last",
    [
        ("2026-02-30", None),
        (None, "2025-02-29"),
        ("2026-09-22", None),
        ("2025-09-20", None),
        ("2025-01-01", "2026-01-02"),
    ],
)
def test_wrong_range_is_refused(first: str | None, last: str | None) -> None:
    with pytest.raises(ApiError) as caught:
        spending.period_of(first, last, "2026-09-21")
    assert caught.value.code == "invalid_value"


def test_user_and_model_together_are_exact_per_day() -> None:
    conn = empty_database()
    ids = [accounts.add_account(conn, f"{name}@example.com", None, None, NOW).id for name in ("ada", "bob")]
    for day, account_id, model, micros in (
        ("2026-09-01", ids[0], "m/one", 5),
        ("2026-09-02", ids[0], "m/one", 6),
        ("2026-09-02", ids[0], "m/two", 3),
        ("2026-09-02", ids[1], "m/one", 2),
        ("2026-09-03", ids[1], "m/one", 1),
    ):
        add_call(conn, (account_id, None, model, day, ""), 1, 1, micros)
    rows, total, _ = spending.dearest(conn, spending.Period("2026-09-02", "2026-09-02"), ["user", "model"])
    assert [(row["user"], row["model"], row["cost_micros"]) for row in rows] == [
        ("ada@example.com", "m/one", 6),
        ("ada@example.com", "m/two", 3),
        ("bob@example.com", "m/one", 2),
    ]
    assert total["cost_micros"] == 11


async def test_other_reads_do_not_wait_for_a_whole_list(service: Any) -> None:
    """A slice ends, and its snapshot with it, before the next one begins: the log can be emptied in between."""
    db: Database = service.state["db"]
    place = None
    period = spending.month_period("2026-09")
    for _ in range(2):
        _, place = await db.heavy_read(spending.rows_after, period, ["user"], place)
        assert await db.empty_log()


@pytest.mark.soak
def test_a_month_of_50_000_accounts_takes_100_ms(capsys: pytest.CaptureFixture[str]) -> None:
    bench(50_000, 1_000_000)
    lines = capsys.readouterr().out.splitlines()[1:]
    assert len(lines) == 6 and all(float(line.split()[-4]) < 100 for line in lines), lines
