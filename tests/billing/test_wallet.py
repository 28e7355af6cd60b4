"""Money in the database: holds, settlements, credits and debits, and the rules of the schema."""

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from svc.auth import accounts
from svc.billing import invariants, payments, usage, wallet
from svc.db import Database, open_database
from svc.errors import ApiError
from svc.ids import new_id
from svc.money import dollars, micros_of
from svc.schema import SCHEMA
from tests.support.cases import each

NOW = 1_790_000_000.0


@cache
def _empty() -> bytes:
    """An empty database; a copy is four times as fast as the schema."""
    conn = sqlite3.connect(":memory:", isolation_level=None)
    conn.executescript(SCHEMA.read_text())
    return conn.serialize()


def empty_database() -> sqlite3.Connection:
    conn = sqlite3.connect(":memory:", isolation_level=None)
    conn.deserialize(_empty())
    conn.row_factory = sqlite3.Row
    conn.execute("PRAGMA foreign_keys = ON")
    conn.execute("PRAGMA trusted_schema = OFF")
    return conn


def add_account(conn: sqlite3.Connection, email: str = "ada@example.com", micros: int = 0) -> str:
    account_id: str = accounts.add_account(conn, email, None, None, NOW).id
    if micros:
        wallet.book(conn, account_id, micros, description="for the test", now_seconds=NOW)
    return account_id


def settle(conn: sqlite3.Connection, account_id: str, hold_id: str, cost_micros: int) -> int:
    charged_micros = wallet.settle(
        conn,
        account_id,
        hold_id,
        cost_micros,
        model="builtin/assistant-paid",
        input_tokens=12,
        output_tokens=34,
        request_id="req_1",
        key_id="key_1",
        now_seconds=NOW,
    )
    return charged_micros or 0


def shown(conn: sqlite3.Connection, account_id: str) -> tuple[int, int]:
    row = wallet.balances(conn, account_id)
    return row["wallet_balance_micros"], row["held_micros"]


def findings(conn: sqlite3.Connection) -> list[str]:
    return invariants.broken(conn)


@pytest.fixture
def conn() -> Iterator[sqlite3.Connection]:
    conn = empty_database()
    yield conn
    conn.close()


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    db = await open_database(tmp_path / "service.db")
    yield db
    await db.close()


# --- any order of anything


class Model:
    def __init__(self) -> None:
        self.balance, self.holds, self.booked = 0, dict[str, int](), 0

    def held(self) -> int:
        return sum(self.holds.values())

    def book(self, amount: int) -> None:
        self.balance += amount
        self.booked += 1 if amount else 0

    def can_take(self, amount: int) -> bool:
        return amount <= self.balance - self.held()

    def end(self, hold_id: str, cost: int) -> int:
        charged = min(max(cost, 0), self.holds.pop(hold_id, 0))
        self.book(-charged)
        return charged


MICROS = st.integers(1, 12_000_000) | st.sampled_from([1, 4_999_999, 5_000_000, wallet.MOST_MICROS])
COSTS = st.integers(-5, 12_000_000) | st.sampled_from([0, 2**63, -(2**63)])


class WalletMachine(RuleBasedStateMachine):
    """Two accounts, to find leaks between them."""

    @initialize()
    def begin(self) -> None:
        self.conn = empty_database()
        self.ids = [add_account(self.conn, email) for email in ("ada@example.com", "bob@example.com")]
        self.models = [Model(), Model()]
        self.numbers = 0

    def teardown(self) -> None:
        if hasattr(self, "conn"):
            self.conn.close()

    @rule(who=st.integers(0, 1), micros=MICROS)
    def credit(self, who: int, micros: int) -> None:
        fits = self.models[who].balance + micros <= wallet.MOST_MICROS
        try:
            wallet.book(self.conn, self.ids[who], micros, description="", now_seconds=NOW)
        except ApiError:
            assert not fits
        else:
            assert fits
            self.models[who].book(micros)

    @rule(who=st.integers(0, 1), micros=MICROS)
    def debit(self, who: int, micros: int) -> None:
        fits = self.models[who].can_take(micros)
        try:
            wallet.book(self.conn, self.ids[who], -micros, description="", now_seconds=NOW)
        except ApiError as error:
            assert error.status == 402 and not fits
        else:
            assert fits
            self.models[who].book(-micros)

    @rule(who=st.integers(0, 1), micros=MICROS)
    def hold(self, who: int, micros: int) -> None:
        self.numbers += 1
        fits = self.models[who].can_take(micros)
        try:
            wallet.hold(self.conn, self.ids[who], f"hold_{self.numbers}", micros, NOW)
        except ApiError as error:
            assert error.status == 402 and not fits
        else:
            assert fits
            self.models[who].holds[f"hold_{self.numbers}"] = micros

    @rule(who=st.integers(0, 1), number=st.integers(1, 20), cost=COSTS)
    def settle(self, who: int, number: int, cost: int) -> None:
        charged = settle(self.conn, self.ids[who], f"hold_{number}", cost)
        assert charged == self.models[who].end(f"hold_{number}", cost)

    @precondition(lambda self: any(model.holds for model in self.models))
    @rule(cost=COSTS)
    def crash_in_a_settlement(self, cost: int) -> None:
        who = 0 if self.models[0].holds else 1
        self.conn.execute("BEGIN IMMEDIATE")
        settle(self.conn, self.ids[who], next(iter(self.models[who].holds)), cost)
        self.conn.execute("ROLLBACK")
        assert wallet.release_all(self.conn) == sum(len(model.holds) for model in self.models)
        for model in self.models:
            model.holds.clear()

    @invariant()
    def every_rule_holds(self) -> None:
        if not hasattr(self, "conn"):
            return
        assert findings(self.conn) == []
        for account_id, model in zip(self.ids, self.models, strict=True):
            assert shown(self.conn, account_id) == (model.balance, model.held())
            assert wallet.balances(self.conn, account_id)["available_micros"] == model.balance - model.held() >= 0
            total, rows = self.conn.execute(
                "SELECT ifnull(sum(amount_micros), 0), count(*) FROM ledger WHERE account_id = ?", (account_id,)
            ).fetchone()
            assert (total, rows) == (model.balance, model.booked)


WalletMachine.TestCase.settings = settings(stateful_step_count=40)
TestAnyOrderOfHoldsSettlementsCreditsAndCrashesAddsUp = WalletMachine.TestCase


# --- no statement breaks a rule

RAW = [
    "UPDATE wallets SET balance_micros = 10000000",
    "UPDATE wallets SET balance_micros = balance_micros + 1",
    "UPDATE wallets SET balance_micros = 3999999",
    "UPDATE wallets SET account_id = 'other'",
    "UPDATE OR REPLACE wallets SET account_id = 'other'",
    "UPDATE wallets SET account_id = 'other' WHERE account_id = 'bob'",
    "DELETE FROM wallets",
    "INSERT OR REPLACE INTO wallets (account_id) VALUES ('ada')",
    "INSERT OR REPLACE INTO wallets (account_id, balance_micros) VALUES ('ada', 99000000)",
    "INSERT INTO wallets (account_id, balance_micros) VALUES ('other', 5)",
    "DELETE FROM ledger",
    "UPDATE ledger SET amount_micros = 9000000",
    "UPDATE ledger SET balance_after_micros = 9000000",
    "UPDATE ledger SET description = 'x'",
    "UPDATE ledger SET reference = NULL",
    "UPDATE ledger SET account_id = NULL",
    "UPDATE ledger SET account_id = NULL, description = '', request_id = NULL, key_id = NULL",
    "UPDATE ledger SET account_id = 'bob'",
    "INSERT OR REPLACE INTO ledger SELECT * FROM ledger",
    "INSERT INTO ledger SELECT * FROM ledger WHERE true ON CONFLICT (seq) DO UPDATE SET amount_micros = 1",
    # an amount without its sign, a wrong balance after it, no account, one out of order, a reference twice, below zero
    # and held
    "INSERT INTO ledger VALUES (NULL, 'l', 'ada', 'debit', 5, 10000005, '', 'r', NULL, NULL, NULL, NULL, NULL, 1, NULL)",
    "INSERT INTO ledger VALUES (NULL, 'l', 'ada', 'credit', -5, 9999995, '', 'r', NULL, NULL, NULL, NULL, NULL, 1, NULL)",
    "INSERT INTO ledger VALUES (NULL, 'l', 'ada', 'debit', 0, 10000000, '', 'r', NULL, NULL, NULL, NULL, NULL, 1, NULL)",
    "INSERT INTO ledger VALUES (NULL, 'l', 'ada', 'credit', 5, 10000006, '', 'r', NULL, NULL, NULL, NULL, NULL, 1, NULL)",
    "INSERT INTO ledger VALUES (NULL, 'l', 'ada', 'credit', 5, 5, '', 'r', NULL, NULL, NULL, NULL, NULL, 1, NULL)",
    "INSERT INTO ledger VALUES (NULL, 'l', NULL, 'credit', 5, 5, '', 'r', NULL, NULL, NULL, NULL, NULL, 1, NULL)",
    "INSERT INTO ledger VALUES (NULL, 'l', 'nobody', 'credit', 5, 5, '', 'r', NULL, NULL, NULL, NULL, NULL, 1, NULL)",
    "INSERT INTO ledger VALUES (7, 'l', 'ada', 'credit', 5, 10000005, '', 'r', NULL, NULL, NULL, NULL, NULL, 1, NULL)",
    "INSERT INTO ledger VALUES (3, 'l', 'ada', 'credit', 5, 10000005, '', 'r', NULL, NULL, NULL, NULL, NULL, 1, NULL)",
    "INSERT INTO ledger VALUES (0, 'l', 'bob', 'credit', 5, 5, '', 'r', NULL, NULL, NULL, NULL, NULL, 1, NULL)",
    "INSERT INTO ledger VALUES (-1, 'l', 'ada', 'credit', 5, 10000005, '', 'r', NULL, NULL, NULL, NULL, NULL, 1, NULL)",
    "INSERT OR REPLACE INTO ledger VALUES (NULL, 'l', 'ada', 'credit', 5, 10000005, '', 'chk_a', NULL, 1, 1, NULL, "
    "NULL, 1, NULL)",
    "INSERT OR REPLACE INTO ledger VALUES (1, 'l', 'ada', 'credit', 5, 10000005, '', 'r', NULL, NULL, NULL, NULL, "
    "NULL, 1, NULL)",
    "INSERT INTO ledger VALUES (NULL, 'l', 'ada', 'debit', -10000001, -1, '', 'r', NULL, NULL, NULL, NULL, NULL, 1, NULL)",
    "INSERT INTO ledger VALUES (NULL, 'l', 'ada', 'debit', -7000000, 3000000, '', 'r', NULL, NULL, NULL, NULL, NULL, "
    "1, NULL)",
    "INSERT OR IGNORE INTO ledger VALUES (NULL, 'l', 'ada', 'debit', -7000000, 3000000, '', 'r', 'm', 1, 1, 'q', 'k', "
    "1, 0)",
    "INSERT OR REPLACE INTO ledger VALUES (NULL, 'l', 'ada', 'debit', -7000000, 3000000, '', 'r', 'm', 1, 1, 'q', "
    "'k', 1, 0)",
    "INSERT INTO ledger VALUES (NULL, 'l', 'ada', 'credit', 1.5, 10000001.5, '', 'r', NULL, NULL, NULL, NULL, NULL, 1, NULL)",
    "INSERT INTO ledger VALUES (NULL, 'l', 'ada', 'credit', 5, 10000005, '', 'r', 'm', -1, 0, NULL, NULL, 1, NULL)",
    "INSERT INTO ledger VALUES (NULL, 'l', 'ada', 'credit', 5, 10000005, '', 'r', 'm', 1, 0, NULL, NULL, 1, 2)",
    "INSERT INTO ledger VALUES (NULL, 'l', 'ada', 'credit', 5, 10000005, '', 'r', 'm', 1, 0, NULL, NULL, 1, -1)",
    "INSERT INTO ledger VALUES (NULL, 'l', 'ada', 'credit', 5, 10000005, '', 'r', 'm', NULL, 0, NULL, NULL, 1, 0)",
    "INSERT INTO holds (id, account_id, amount_micros, created_at, month) VALUES ('h2', 'ada', 6000001, 1, '2026-09')",
    "INSERT OR IGNORE INTO holds (id, account_id, amount_micros, created_at, month) VALUES ('h2', 'ada', 6000001, 1, '2026-09')",
    "INSERT OR REPLACE INTO holds (id, account_id, amount_micros, created_at, month) VALUES ('h2', 'ada', 6000001, 1, '2026-09')",
    "INSERT INTO holds (id, account_id, amount_micros, created_at, month) VALUES ('h2', 'ada', 6000000, 1, '2026-09'), ('h3', 'ada', 1, 1, '2026-09')",
    "INSERT INTO holds (id, account_id, amount_micros, created_at, month) VALUES ('h2', 'ada', 9223372036854775807, 1, '2026-09')",
    "INSERT INTO holds (id, account_id, amount_micros, created_at, month) VALUES ('h2', 'bob', 1, 1, '2026-09')",
    "INSERT INTO holds (id, account_id, amount_micros, created_at, month) VALUES ('h2', 'ada', 0, 1, '2026-09')",
    "INSERT INTO holds (id, account_id, amount_micros, created_at, month) VALUES ('h2', 'ada', -5, 1, '2026-09')",
    "INSERT INTO holds (id, account_id, amount_micros, created_at, month) VALUES ('h', 'ada', 5, 1, '2026-09')",
    "INSERT OR REPLACE INTO holds (id, account_id, amount_micros, created_at, month) VALUES ('h', 'ada', 5, 1, '2026-09')",
    "INSERT OR REPLACE INTO holds (id, account_id, amount_micros, created_at, month) VALUES ('h', 'ada', 10000001, 1, '2026-09')",
    "INSERT OR REPLACE INTO holds (id, account_id, amount_micros, created_at, month) VALUES ('h', 'bob', 5, 1, '2026-09')",
    "INSERT INTO holds (id, account_id, amount_micros, created_at, month) VALUES ('h', 'ada', 5, 1, '2026-09') ON CONFLICT DO UPDATE SET amount_micros = 10000001",
    "UPDATE holds SET amount_micros = 1",
    "UPDATE holds SET account_id = 'bob'",
    "UPDATE OR REPLACE holds SET amount_micros = 10000001",
    "UPDATE accounts SET tier = 'free'",
    "INSERT OR REPLACE INTO accounts (id, email, email_key, created_at) VALUES ('ada', 'x@y.z', 'ada', 1)",
    "UPDATE checkouts SET amount_micros = 6000000",
    "UPDATE checkouts SET account_id = 'bob'",
    "UPDATE checkouts SET account_id = NULL",
    "UPDATE checkouts SET session_id = 'cs_other'",
    "UPDATE checkouts SET state = 'open', paid_at = NULL WHERE id = 'chk_a'",
    "UPDATE checkouts SET state = 'paid', paid_at = 1 WHERE id = 'chk_b'",
    "UPDATE checkouts SET state = 'paid' WHERE id = 'chk_b'",
    "DELETE FROM checkouts",
    "INSERT OR REPLACE INTO checkouts (id, account_id, amount_micros, created_at) VALUES ('chk_a', 'ada', 5000000, 1)",
    "INSERT INTO checkouts VALUES ('chk_c', 'ada', 5000000, 'paid', 'cs_c', 1, 1, NULL)",
    "INSERT INTO checkouts (id, account_id, amount_micros, created_at) VALUES ('chk_c', 'ada', 4990000, 1)",
    "INSERT INTO checkouts (id, account_id, amount_micros, created_at) VALUES ('chk_c', 'ada', 5001000, 1)",
    "INSERT INTO checkouts (id, account_id, amount_micros, created_at) VALUES ('chk_c', 'ada', 10000010000, 1)",
    "INSERT OR REPLACE INTO payment_events VALUES ('evt', 'x', 'cs_a', 'chk_a', 0, 'again', 1, NULL, NULL, NULL)",
    "INSERT INTO payment_events VALUES ('evt2', 'x', 'cs_a', 'chk_a', 1, NULL, 1, NULL, NULL, NULL)",
    "INSERT INTO payment_events VALUES ('evt2', 'x', 'cs_b', 'chk_b', 1, NULL, 1, NULL, NULL, NULL)",
    "INSERT INTO payment_events VALUES ('evt2', 'x', NULL, NULL, 1, NULL, 1, NULL, NULL, NULL)",
    "UPDATE payment_events SET credited = 0, reason = 'x'",
    "DELETE FROM payment_events",
]
# The columns of a ledger row without those of later versions, whose NULL is allowed.
_BOOKED = (
    "seq, id, account_id, kind, amount_micros, balance_after_micros, description, reference, model, input_tokens, "
    "output_tokens, request_id, key_id, created_at, cached_input_tokens"
)
RAW = [statement.replace("INTO ledger VALUES", f"INTO ledger ({_BOOKED}) VALUES") for statement in RAW]
# These two are refused by a foreign key, all others by the tables of money themselves.
REFERRING = [
    "INSERT INTO holds (id, account_id, amount_micros, created_at, month) VALUES ('h2', 'nobody', 5, 1, '2026-09')",
    "UPDATE accounts SET id = 'other' WHERE id = 'ada'",
]


@pytest.fixture
def money(conn: sqlite3.Connection) -> sqlite3.Connection:
    """Ada has 10 dollars from a checkout, 4 of them held, and an open checkout; Bob has nothing."""
    for name in ("ada", "bob"):
        conn.execute(
            "INSERT INTO accounts (id, email, email_key, created_at) VALUES (?, ?, ?, 1)", (name, name + "@x", name)
        )
    for checkout, session in (("chk_a", "cs_a"), ("chk_b", "cs_b")):
        payments.add_checkout(conn, "ada", checkout, 10_000_000, NOW)
        payments.set_session(conn, "ada", checkout, session)
    event = payments.PaymentEvent("evt", "checkout.session.completed", "cs_a", "chk_a", 1000, "usd", True)
    assert payments.receive(conn, event, NOW).reason is None
    wallet.hold(conn, "ada", "h", 4_000_000, NOW)
    return conn


def everything(conn: sqlite3.Connection) -> list[Any]:
    tables = ("accounts", "wallets", "ledger", "holds", "checkouts", "payment_events")
    return [tuple(row) for table in tables for row in conn.execute(f"SELECT * FROM {table}")]


def refuses(money: sqlite3.Connection, statement: str) -> bool:
    """Return whether the database refuses a statement."""
    before = everything(money)
    with pytest.raises(sqlite3.IntegrityError):
        money.execute(statement)
    return everything(money) == before and findings(money) == []


@each("statement", RAW + REFERRING)
def test_sql_cannot_break_a_money_rule(money: sqlite3.Connection, statement: str) -> None:
    assert refuses(money, statement)


@each("statement", RAW)
def test_sql_on_a_plain_connection_cannot_break_a_rule(money: sqlite3.Connection, statement: str) -> None:
    money.execute("PRAGMA foreign_keys = OFF")
    assert refuses(money, statement)


@each("again", ["1, 'l', 'r'", "NULL, (SELECT id FROM ledger WHERE seq = 1), 'r'", "NULL, 'l', 'chk_a'"])
def test_no_ledger_row_can_be_replaced(money: sqlite3.Connection, again: str) -> None:
    for _ in range(2):
        wallet.book(money, "bob", 5, description="", now_seconds=NOW)
    columns = "seq, id, reference, account_id, kind, amount_micros, balance_after_micros, description, created_at"
    assert refuses(money, f"INSERT OR REPLACE INTO ledger ({columns}) VALUES ({again}, 'bob', 'credit', 5, 15, '', 1)")


def test_debit_takes_at_most_the_available_money(money: sqlite3.Connection) -> None:
    with pytest.raises(ApiError):
        wallet.book(money, "ada", -6_000_001, description="", now_seconds=NOW)
    wallet.book(money, "ada", -6_000_000, description="", now_seconds=NOW)
    assert shown(money, "ada") == (4_000_000, 4_000_000) and findings(money) == []


def test_new_wallet_has_no_holds(money: sqlite3.Connection) -> None:
    money.execute("PRAGMA foreign_keys = OFF")
    money.execute(
        "INSERT INTO holds (id, account_id, amount_micros, created_at, month) VALUES ('h2', 'cleo', 5, 1, '2026-09')"
    )
    assert refuses(
        money, "INSERT INTO accounts (id, email, email_key, created_at) VALUES ('cleo', 'cleo@x', 'cleo', 1)"
    )


# --- holds


@pytest.mark.parametrize("served", range(6))
async def test_200_concurrent_holds_with_funds_for_k_give_exactly_k(db: Database, served: int) -> None:
    account_id = await db.write(add_account, micros=served * 700 + 699)
    outcomes = await asyncio.gather(
        *(db.write(wallet.hold, account_id, f"hold_{number}", 700, NOW) for number in range(200)),
        return_exceptions=True,
    )
    refused = [
        outcome for outcome in outcomes if isinstance(outcome, ApiError) and outcome.code == "insufficient_funds"
    ]
    assert (outcomes.count(None), len(refused)) == (served, 200 - served)
    assert await db.read(shown, account_id) == (served * 700 + 699, served * 700)
    assert await db.read(findings) == []


def test_refused_hold_names_the_balance_and_the_needed_amount(conn: sqlite3.Connection) -> None:
    account_id = add_account(conn, micros=2_500_000)
    wallet.hold(conn, account_id, "hold_1", 2_000_000, NOW)
    for needed, text in ((500_001, "$0.500001 (500001 micros)"), (10**30, "(1" + "0" * 30 + " micros)")):
        with pytest.raises(ApiError) as refusal:
            wallet.hold(conn, account_id, "hold_2", needed, NOW)
        assert (refusal.value.status, refusal.value.code) == (402, "insufficient_funds")
        for part in (text, "$2.50 (2500000 micros)", "$2.00 (2000000 micros)"):
            assert part in str(refusal.value)


def test_a_settlement_charges_the_cost_at_most_the_hold_and_only_once(conn: sqlite3.Connection) -> None:
    account_id = add_account(conn, micros=1_000)
    for number, (cost, charged) in enumerate([(40, 40), (100, 100), (101, 100), (10**40, 100), (0, 0), (-5, 0)]):
        wallet.hold(conn, account_id, f"hold_{number}", 100, NOW)
        assert settle(conn, account_id, f"hold_{number}", cost) == charged
        assert settle(conn, account_id, f"hold_{number}", cost) == 0
    assert shown(conn, account_id) == (1_000 - 340, 0)
    assert len(wallet.LEDGER.page(conn, account_id, 100, None).items) == 5  # what cost nothing is no row


def test_free_call_needs_no_hold(conn: sqlite3.Connection) -> None:
    account_id = add_account(conn)
    wallet.hold(conn, account_id, "hold_1", 0, NOW)
    assert settle(conn, account_id, "hold_1", 5) == 0 and shown(conn, account_id) == (0, 0)


def test_deletion_of_an_account_changes_no_other_column_of_its_ledger(conn: sqlite3.Connection) -> None:
    account_id = add_account(conn, micros=1_000)
    wallet.hold(conn, account_id, "hold_1", 100, NOW)
    assert settle(conn, account_id, "hold_1", 40) == 40
    accounts.mark_deleting(conn, account_id, NOW)
    dropped = {"account_id": "NULL", "description": "''", "request_id": "NULL", "key_id": "NULL"}
    statement = ", ".join(f"{column} = {value}" for column, value in dropped.items())
    columns = {row["name"]: row["type"] for row in conn.execute("PRAGMA table_info(ledger)")}
    for column in columns.keys() - dropped.keys() - {"kind"}:
        for value in ("NULL", f"{column} || 'x'" if columns[column] == "TEXT" else f"{column} + 1"):
            with pytest.raises(sqlite3.IntegrityError):
                conn.execute(f"UPDATE ledger SET {statement}, {column} = {value} WHERE reference = 'hold_1'")
    conn.execute(f"UPDATE ledger SET {statement} WHERE reference = 'hold_1'")


def test_ledger_ids_sort_by_row_order(conn: sqlite3.Connection) -> None:
    account_id = add_account(conn, micros=1_000)
    holds = [new_id("hold", NOW) for _ in range(3)]
    for hold_id in holds:
        wallet.hold(conn, account_id, hold_id, 100, NOW)
    for hold_id in reversed(holds):
        settle(conn, account_id, hold_id, 50)
    ids = [row["id"] for row in conn.execute("SELECT id FROM ledger ORDER BY seq")]
    assert len(ids) == 4 and ids == sorted(ids)


def test_hold_belongs_to_its_account(conn: sqlite3.Connection) -> None:
    ada, bob = add_account(conn, micros=1_000), add_account(conn, "bob@example.com", 1_000)
    wallet.hold(conn, ada, "hold_1", 100, NOW)
    assert settle(conn, bob, "hold_1", 100) == 0
    assert (shown(conn, ada), shown(conn, bob)) == ((1_000, 100), (1_000, 0))


def test_deleted_account_has_no_holds_and_no_settlements(conn: sqlite3.Connection) -> None:
    account_id = add_account(conn, micros=1_000)
    wallet.hold(conn, account_id, "hold_1", 100, NOW)
    accounts.delete_account(conn, account_id)
    assert settle(conn, account_id, "hold_1", 50) == 0
    usage.add_call(conn, (account_id, None, "m", "2026-09-21", ""), 1, 1, 1)
    with pytest.raises(ApiError) as refusal:
        wallet.hold(conn, account_id, "hold_2", 100, NOW)
    assert refusal.value.status == 401
    assert wallet.balances(conn, account_id)["available_micros"] == 0 and findings(conn) == []


def test_after_a_crash_every_hold_is_released(conn: sqlite3.Connection) -> None:
    ids = [add_account(conn, f"person{number}@example.com", 1_000) for number in range(3)]
    for number in range(30):
        wallet.hold(conn, ids[number % 3], f"hold_{number}", 10, NOW)
    assert wallet.release_all(conn) == 30 and wallet.release_all(conn) == 0
    assert [shown(conn, account_id) for account_id in ids] == [(1_000, 0)] * 3


# --- tier, ledger, usage


@pytest.mark.parametrize(("micros", "tier"), [(4_999_999, "free"), (5_000_000, "pro")])
def test_credit_of_5_dollars_makes_an_account_pro_permanently(conn: sqlite3.Connection, micros: int, tier: str) -> None:
    account_id = add_account(conn, micros=micros)
    wallet.book(conn, account_id, -micros, description="all of it", now_seconds=NOW)
    account = accounts.account_by_id(conn, account_id)
    assert account is not None and account.tier == tier and shown(conn, account_id) == (0, 0)


def test_many_small_credits_do_not_make_pro(conn: sqlite3.Connection) -> None:
    account_id = add_account(conn)
    for _ in range(6):
        wallet.book(conn, account_id, 1_000_000, description="", now_seconds=NOW)
    account = accounts.account_by_id(conn, account_id)
    assert account is not None and account.tier == "free"


def test_a_debit_names_model_tokens_request_and_key(conn: sqlite3.Connection) -> None:
    account_id, hold_id = add_account(conn, micros=1_000), new_id("hold", NOW)
    wallet.hold(conn, account_id, hold_id, 100, NOW)
    settle(conn, account_id, hold_id, 40)
    newest = wallet.LEDGER.page(conn, account_id, 1, None).items[0]
    assert re.fullmatch("led_[0-9a-z]{26}", newest.pop("id"))
    assert newest == {
        "kind": "debit",
        "amount_micros": -40,
        "balance_after_micros": 960,
        "description": "builtin/assistant-paid: 12 input and 34 output tokens",
        "reference": hold_id,
        "model": "builtin/assistant-paid",
        "input_tokens": 12,
        "cached_input_tokens": 0,
        "output_tokens": 34,
        "request_id": "req_1",
        "key_id": "key_1",
        "created_at": "2026-09-21T14:13:20.000Z",
    }


def test_ledger_rows_stay_without_the_person(conn: sqlite3.Connection) -> None:
    account_id = add_account(conn)
    wallet.book(conn, account_id, 5_000_000, description="for Ada Lovelace", reference="chk_1", now_seconds=NOW)
    wallet.hold(conn, account_id, "hold_1", 100, NOW)
    settle(conn, account_id, "hold_1", 40)
    accounts.delete_account(conn, account_id)
    rows = [dict(row) for row in conn.execute("SELECT * FROM ledger ORDER BY seq")]
    assert [(row["amount_micros"], row["reference"]) for row in rows] == [(5_000_000, "chk_1"), (-40, "hold_1")]
    for row in rows:
        assert (row["account_id"], row["description"], row["request_id"], row["key_id"]) == (None, "", None, None)
    for table in ("wallets", "holds", "usage_days"):
        assert conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 0
    assert findings(conn) == [] and conn.execute("PRAGMA foreign_key_check").fetchall() == []


def test_usage_is_summed_per_day_and_model(conn: sqlite3.Connection) -> None:
    account_id = add_account(conn)
    for day, model, tokens in (
        ("2026-09-20", "a", 5),
        ("2026-09-21", "b", 1),
        ("2026-09-21", "a", 2),
        ("2026-09-21", "a", 3),
    ):
        usage.add_call(conn, (account_id, None, model, day, ""), tokens, 2 * tokens, 7)
    rows = [tuple(row.values()) for row in usage.usage_page(conn, account_id, "2026-09-20").items]
    assert rows == [
        ("2026-09-21:a", "2026-09-21", "a", 2, 5, 10, 14, 0),
        ("2026-09-21:b", "2026-09-21", "b", 1, 1, 2, 7, 0),
        ("2026-09-20:a", "2026-09-20", "a", 1, 5, 10, 7, 0),
    ]


# --- dollars


@given(st.integers(0, 10**15 - 1))
def test_dollars_round_trip_exactly(micros: int) -> None:
    assert micros_of(dollars(micros).removeprefix("$").replace(",", "")) == micros


@each(
    "text",
    [
        "",
        " 5",
        "5 ",
        "-5",
        "+5",
        "1e3",
        "1,5",
        "1_000",
        ".5",
        "5.",
        "NaN",
        "inf",
        "0x5",
        "\u0665",
        "5.0000001",
        "1" * 10,
        "5\n",
    ],
)
def test_only_plain_decimals_are_dollars(text: str) -> None:
    assert micros_of(text) is None


@each(
    ("micros", "text"),
    [(0, "$0.00"), (1, "$0.000001"), (12_500_000, "$12.50"), (-1_234_567_890, "-$1,234.56789"), (10, "$0.00001")],
)
def test_dollars_are_shown_with_the_decimals_they_need(micros: int, text: str) -> None:
    assert dollars(micros) == text
