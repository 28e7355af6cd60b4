"""A month's report equals the ledger, also for accounts that were deleted later."""

import contextlib
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from svc.audit import OPERATOR
from svc.auth import accounts
from svc.billing import payments, report, usage, wallet
from svc.billing.stripe import read_event, session_event
from svc.deletion.slices import begin_deletion, continue_deletion
from svc.errors import StartError
from svc.ids import day_of
from svc.schema import connect, newest_schema
from tests.support.cases import each
from tests.support.databases import prepare

OCTOBER = report.month_bounds("2026-10")
IN_OCTOBER = datetime(2026, 10, 15, tzinfo=UTC).timestamp()


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    prepare(tmp_path / "service.db", *newest_schema())
    with contextlib.closing(connect(tmp_path / "service.db")) as conn:
        yield conn


def spend(conn: sqlite3.Connection, account_id: str, model: str, micros: int, at: float) -> None:
    hold_id = f"hold_{conn.execute('SELECT count(*) FROM ledger').fetchone()[0]}"
    wallet.hold(conn, account_id, hold_id, micros, at)
    tokens = {"input_tokens": 10, "output_tokens": 20}
    wallet.settle(conn, account_id, hold_id, micros, model=model, **tokens, request_id="r", key_id=None, now_seconds=at)
    usage.add_call(conn, (account_id, None, model, day_of(at), ""), 10, 20, micros)


def pay(conn: sqlite3.Connection, account_id: str, checkout_id: str, session_id: str, micros: int, at: float) -> None:
    payments.add_checkout(conn, account_id, checkout_id, micros, at)
    payments.set_session(conn, account_id, checkout_id, session_id)
    payments.receive(conn, read_event(session_event(session_id, checkout_id, micros // 10_000, at)), at)


def figures(conn: sqlite3.Connection, bounds: tuple[float, float] = OCTOBER) -> dict[tuple[str, str], tuple[int, int]]:
    return {(line.part, line.name): (line.count, line.micros) for line in report.lines(conn, *bounds)}


def test_income_spending_and_balances_add_up_per_month(conn: sqlite3.Connection) -> None:
    ada = accounts.add_account(conn, "ada@example.com", None, None, 1.0).id
    bob = accounts.add_account(conn, "bob@example.com", None, None, 1.0).id
    pay(conn, ada, "chk_0", "cs_0", 5_000_000, OCTOBER[0] - 1)
    pay(conn, ada, "chk_1", "cs_1", 10_000_000, OCTOBER[0])
    pay(conn, bob, "chk_2", "sandbox_2", 7_000_000, IN_OCTOBER)
    wallet.book(conn, bob, 3, description="gift", now_seconds=IN_OCTOBER)
    wallet.book(conn, bob, -2, description="mistake", now_seconds=IN_OCTOBER)
    spend(conn, ada, "m/one", 700, IN_OCTOBER)
    spend(conn, ada, "m/two", 30, IN_OCTOBER)
    spend(conn, bob, "m/one", 5, OCTOBER[1] - 1)
    spend(conn, bob, "m/one", 1_000, OCTOBER[1])
    usage.add_overrun(conn, "2026-10-31", "m/one", 11)
    usage.add_overrun(conn, "2026-10-31", "m/one", 10**40)
    usage.add_overrun(conn, "2026-11-01", "m/one", 13)
    assert figures(conn) == {
        ("income", "checkouts"): (1, 10_000_000),
        ("income", "checkouts (test money)"): (1, 7_000_000),
        ("income", "booked by hand"): (1, 3),
        ("income", "taken back by hand"): (1, -2),
        ("spent, by model", "m/one"): (2, 705),
        ("spent, by model", "m/two"): (1, 30),
        ("spent, by account", "ada@example.com"): (2, 730),
        ("spent, by account", "bob@example.com"): (1, 5),
        ("overruns, by model", "m/one"): (2, 10**15 + 11),
        ("owed at its end", "in wallets"): (2, 22_000_001 - 735),
    }
    november = figures(conn, report.month_bounds("2026-11"))
    assert november["owed at its end", "in wallets"] == (2, 22_000_001 - 1_735)
    sums = wallet.sums(conn)
    assert (sums["wallets"], sums["balance_micros"]) == (2, 22_000_001 - 1_735)


def test_money_of_a_deleted_account_stays_in_the_report_without_a_name(conn: sqlite3.Connection) -> None:
    ada = accounts.add_account(conn, "ada@example.com", None, None, 1.0).id
    pay(conn, ada, "chk_1", "cs_1", 5_000_000, IN_OCTOBER)
    spend(conn, ada, "m/one", 700, IN_OCTOBER)
    begin_deletion(conn, ada, IN_OCTOBER, OPERATOR)
    spent = {("spent, by model", "m/one"): (1, 700), ("spent, by account", f"(deleted {ada})"): (1, 700)}
    assert spent.items() <= figures(conn).items()
    while continue_deletion(conn, ada):
        assert spent.items() <= figures(conn).items(), "while the deletion runs"
    assert figures(conn) == {
        ("income", "checkouts"): (1, 5_000_000),
        **spent,
        ("owed at its end", "in wallets"): (0, 0),
        ("without an account", "left by deleted accounts"): (2, 4_999_300),
    }


@each(("month", "days"), [("2026-02", 28), ("2028-02", 29), ("2026-12", 31), ("2026-01", 31)])
def test_a_month_ends_where_the_next_one_begins(month: str, days: int) -> None:
    begins, ends = report.month_bounds(month)
    assert ends - begins == days * 86400


@each("text", ["2026-13", "2026-00", "2026-1", "26-01", "2026-01-01", "", "last"])
def test_wrong_month_is_refused(text: str) -> None:
    with pytest.raises(StartError, match="2026-09"):
        report.month_bounds(text)
