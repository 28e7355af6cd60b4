"""Monthly allowances: one credit for each account and month, whatever happens between the hold and the next month."""

import asyncio
import dataclasses
import sqlite3
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from svc import groups
from svc.auth import accounts
from svc.billing import invariants, spending, wallet
from svc.config import Config
from svc.errors import ApiError
from tests.billing.test_wallet import add_account, empty_database, findings
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.support.cases import each
from tests.support.model_server import ModelServer
from tests.support.waiting import until

CHAT = "/v1/chat/completions"
SEPTEMBER = spending.month_period("2026-09")
ASK = {"model": "builtin/assistant-paid", "messages": [{"role": "user", "content": "2+2"}], "max_tokens": 100}
MONTH_SECONDS = 31 * 86_400


def catalog(allowance_micros: int, more: str = "") -> str:
    return f"[[groups]]\nname = 'team'\nallowance_micros = {allowance_micros}\nchats_per_minute = 100_000\n{more}"


@pytest.fixture
async def service(config: Config, clocks: Clocks) -> AsyncIterator[Service]:
    path = config.data_dir.parent / "catalog.toml"
    path.write_text(catalog(3_000_000))
    async with serving(dataclasses.replace(config, catalog=path), clocks) as service:
        yield service
        assert await service.state["db"].read(findings) == []
        await service.state["engines"].usage.flush()
        assert await service.state["db"].read(invariants.broken_usage) == []


def set_allowance(service: Service, micros: int) -> None:
    table = {"name": "team", "allowance_micros": micros, "chats_per_minute": 100_000}
    service.state["models"].catalog.groups = groups.parse({"groups": [table]})


@dataclasses.dataclass
class Member:
    service: Service
    account_id: str
    headers: dict[str, str]

    async def chat(self, **fields: Any) -> httpx.Response:
        return await self.service.client.post(CHAT, json={**ASK, **fields}, headers=self.headers)

    async def credits(self) -> list[tuple[str, str, int]]:
        """Description, reference without the account, and micros of each credit, the oldest first."""
        listed = (await self.service.client.get("/billing/ledger?limit=100", headers=self.headers)).json()["data"]
        return [
            (row["description"], (row["reference"] or "").replace(self.account_id, "me"), row["amount_micros"])
            for row in reversed(listed)
            if row["kind"] == "credit"
        ]

    async def wallet(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.service.client.get("/billing/account", headers=self.headers)).json()
        return found


async def member(service: Service, micros: int = 0) -> Member:
    session = await service.sign_up()
    account_id, db = session["user"]["id"], service.state["db"]
    await db.write(accounts.set_group, account_id, "team", service.state["models"].catalog.groups)
    if micros:
        await db.write(wallet.book, account_id, micros, description="by hand", now_seconds=service.clocks.now)
    return Member(service, account_id, bearer((await service.make_key(bearer(session["access_token"])))["key"]))


async def test_first_paid_call_of_a_month_fills_the_wallet_up_to_the_allowance(service: Service) -> None:
    who = await member(service)
    before = await who.wallet()
    assert [before[f"allowance_{name}"] for name in ("micros", "due_micros", "renews_at")] == [
        3_000_000,
        3_000_000,
        "2026-10-01T00:00:00.000Z",
    ]
    assert (before["wallet_balance_micros"], before["tier"]) == (0, "free")
    for _ in range(2):
        assert (await who.chat()).status_code == 200
    first = ("Allowance 2026-09", "allowance:me:2026-09", 3_000_000)
    assert await who.credits() == [first]
    left = await who.wallet()
    spent = 3_000_000 - left["wallet_balance_micros"]
    assert spent > 0 and left["allowance_due_micros"] == 0
    service.clocks.advance(MONTH_SECONDS)
    assert (await who.wallet())["allowance_due_micros"] == spent, "what is left over stays"
    assert (await who.chat()).status_code == 200
    assert await who.credits() == [first, ("Allowance 2026-10", "allowance:me:2026-10", spent)]


async def test_allowance_of_5_dollars_makes_the_account_pro(service: Service) -> None:
    set_allowance(service, 5_000_000)
    who = await member(service)
    assert (await who.chat()).status_code == 200
    assert (await who.wallet())["tier"] == "pro"


async def test_account_without_allowance_gets_none(service: Service) -> None:
    session = await service.sign_up()
    who = Member(service, session["user"]["id"], bearer(session["access_token"]))
    assert (await who.chat()).status_code == 402 and await who.credits() == []
    found = await who.wallet()
    assert [found[f"allowance_{name}"] for name in ("micros", "due_micros", "renews_at")] == [0, 0, None]


async def test_free_and_refused_calls_take_no_allowance(service: Service) -> None:
    set_allowance(service, 10)
    who = await member(service)
    assert (await who.chat(model="builtin/assistant")).status_code == 200
    refused = await who.chat()
    assert refused.status_code == 402 and "The wallet has $0.00001 (10 micros)" in refused.text
    assert await who.credits() == [] and (await who.wallet())["allowance_due_micros"] == 10


async def test_output_is_limited_to_what_the_allowance_affords(service: Service) -> None:
    set_allowance(service, 300)
    who = await member(service)
    answer = await who.chat(max_tokens=100_000)
    assert answer.status_code == 200 and len(await who.credits()) == 1


async def test_raise_adds_the_difference_and_a_cut_takes_nothing(service: Service) -> None:
    who = await member(service)
    expected = []
    for allowance, added in (
        (3_000_000, 3_000_000),
        (4_000_000, 1_000_000),
        (1, 0),
        (4_000_000, 0),
        (4_500_000, 500_000),
    ):
        set_allowance(service, allowance)
        assert (await who.wallet())["allowance_due_micros"] == added
        assert (await who.chat()).status_code == 200
        if added:
            number = "" if not expected else f":{len(expected) + 1}"
            expected.append(("Allowance 2026-09", f"allowance:me:2026-09{number}", added))
        assert await who.credits() == expected


async def test_wallet_above_the_allowance_gets_nothing_later_in_the_month(service: Service) -> None:
    who = await member(service, micros=3_000_100)
    assert (await who.chat()).status_code == 200
    balance = (await who.wallet())["wallet_balance_micros"]
    await service.state["db"].write(
        wallet.book, who.account_id, 1_000 - balance, description="", now_seconds=service.clocks.now
    )
    assert (await who.chat()).status_code == 200
    assert await who.credits() == [("by hand", "", 3_000_100)]
    set_allowance(service, 3_000_005)
    assert (await who.chat()).status_code == 200
    assert (await who.credits())[1:] == [("Allowance 2026-09", "allowance:me:2026-09", 5)]


async def test_clock_that_goes_back_gives_no_allowance_twice(service: Service) -> None:
    who = await member(service)
    for seconds in (0, MONTH_SECONDS, -MONTH_SECONDS, -MONTH_SECONDS, 2 * MONTH_SECONDS):
        service.clocks.now += seconds
        assert (await who.chat()).status_code == 200
    assert [reference for _, reference, _ in await who.credits()] == ["allowance:me:2026-09", "allowance:me:2026-10"]


@each(
    ("path", "body"),
    [
        ("/v1/agents/run", {"model": "builtin/assistant-paid", "goal": "2+2", "tools": []}),
        ("/v1/images/generations", {"model": "builtin/paint", "prompt": "a red circle", "size": "64x64"}),
        ("/v1/responses", {"model": "builtin/assistant-paid", "input": "2+2"}),
        (
            "/v1/messages",
            {"model": "builtin/assistant-paid", "max_tokens": 9, "messages": [{"role": "user", "content": "2+2"}]},
        ),
    ],
)
async def test_every_paid_call_can_be_the_first_of_the_month(path: str, body: dict[str, Any], service: Service) -> None:
    who = await member(service)
    assert (await service.client.post(path, json=body, headers=who.headers)).status_code == 200
    assert len(await who.credits()) == 1


async def test_concurrent_first_holds_give_each_account_one_allowance(service: Service) -> None:
    members = [await member(service) for _ in range(10)]
    query = "SELECT count(*) FROM ledger WHERE reference GLOB 'allowance:*' GROUP BY account_id"
    for month in (1, 2):
        answers = await asyncio.gather(*(who.chat() for who in members * 20))
        assert [answer.status_code for answer in answers] == [200] * 200
        counted = await service.state["db"].read(lambda conn: conn.execute(query).fetchall())
        assert [tuple(row) for row in counted] == [(month,)] * 10
        service.clocks.advance(MONTH_SECONDS)


async def test_credit_of_an_allowance_is_synced_and_a_plain_hold_is_not(config: Config, clocks: Clocks) -> None:
    path, db = config.data_dir.parent / "catalog.toml", None
    async with ModelServer() as models:
        provider = f"[[providers]]\nname = 'lab'\nbase_url = '{models.base_url}'\n[[providers.models]]\nid = 'silent'\n"
        path.write_text(catalog(3_000_000, provider + "output_micros_per_million_tokens = 1_000_000\n"))
        async with serving(dataclasses.replace(config, catalog=path), clocks) as service:
            who, db = await member(service), service.state["db"]
            modes: list[str] = []
            await db.write(lambda tx: tx.set_trace_callback(modes.append))
            found = []
            for held in (1, 2):
                modes.clear()
                asking = asyncio.create_task(who.chat(model="lab/silent"))
                await until(lambda held=held: len(models.requests) == held)  # type: ignore[misc]
                found.append([mode for mode in modes if "synchronous" in mode])
                asking.add_done_callback(lambda task: task.cancelled() or task.exception())
            assert found == [["PRAGMA synchronous = FULL"], ["PRAGMA synchronous = NORMAL"]]
            service.state["drain"].begin()


async def test_usage_counts_the_group_at_the_time_of_the_call_also_of_a_deleted_account(service: Service) -> None:
    session, db = await service.sign_up(), service.state["db"]
    account_id, headers = session["user"]["id"], bearer(session["access_token"])
    await db.write(wallet.book, account_id, 1_000_000, description="by hand", now_seconds=service.clocks.now)
    for group in (None, "team"):
        await db.write(accounts.set_group, account_id, group, service.state["models"].catalog.groups)
        for model in ("builtin/assistant-paid", "builtin/assistant"):
            assert (await service.client.post(CHAT, json={**ASK, "model": model}, headers=headers)).status_code == 200
    await service.state["engines"].usage.flush()
    before, total, _ = await db.read(spending.dearest, SEPTEMBER, ["group"])
    assert {row["key"]: row["requests"] for row in before} == {"(no group)": 2, "team": 2}
    assert len({row["cost_micros"] for row in before}) == 1 and total["cost_micros"] > 0
    assert (
        await service.client.request("DELETE", "/user/me", json={"password": PASSWORD}, headers=headers)
    ).status_code == 204
    after, kept, _ = await db.read(spending.dearest, SEPTEMBER, ["group"])
    assert {row["key"]: row["requests"] for row in after} == {"(no group)": 1, "team": 1}, "paid calls stay"
    assert kept["cost_micros"] == total["cost_micros"]
    (person,) = (await db.read(spending.dearest, SEPTEMBER, ["user"]))[0]
    assert person["key"] == f"(deleted {account_id})"


# --- the schema


@each(
    ("reference", "micros"),
    [
        ("allowance:{id}:2026-09", 1),  # again
        ("allowance:{id}:2026-09:2", 1),  # over what is given
        ("allowance:{id}:2026-10", 1),  # not the month of the account
        ("allowance:{id}:2026-08", 1),
        ("allowance:{other}:2026-09", 1),
        ("allowance:{id}", 1),
        ("allowance:", -1),
    ],
)
def test_schema_refuses_a_second_credit_for_a_month(reference: str, micros: int) -> None:
    conn = empty_database()
    account_id, other = add_account(conn), add_account(conn, "bob@example.com")
    now = datetime(2026, 9, 20, tzinfo=UTC).timestamp()
    wallet.top_up(conn, account_id, 100, now)
    with pytest.raises(sqlite3.IntegrityError, match=r"allowance_not_due|never replaced"):
        wallet.book(
            conn,
            account_id,
            micros,
            description="",
            reference=reference.format(id=account_id, other=other),
            now_seconds=now,
        )
    assert findings(conn) == []


def test_raise_of_an_allowance_gives_a_full_wallet_what_fits() -> None:
    conn = empty_database()
    account_id = add_account(conn)
    now = datetime(2026, 9, 20, tzinfo=UTC).timestamp()
    wallet.top_up(conn, account_id, 100, now)
    wallet.book(conn, account_id, wallet.MOST_MICROS - 103, description="", now_seconds=now)
    assert wallet.allowance_due(conn, account_id, 110, now) == ("2026-09", 3)
    wallet.top_up(conn, account_id, 110, now)
    assert wallet.balances(conn, account_id)["wallet_balance_micros"] == wallet.MOST_MICROS
    assert findings(conn) == []


def test_check_finds_allowances_that_the_triggers_would_refuse() -> None:
    conn = empty_database()
    account_id = add_account(conn)
    now = datetime(2026, 9, 20, tzinfo=UTC).timestamp()
    wallet.top_up(conn, account_id, 100, now)
    for name in ("ledger_credits_an_allowance_once", "accounts_get_an_allowance_once"):
        conn.execute(f"DROP TRIGGER {name}")
    assert findings(conn) == []
    for reference, told in (
        (f"allowance:{account_id}:2026-09:2", "are 101 micros, over 100"),
        (f"allowance:{account_id}:2026-09:9", "is not the next allowance"),
        (f"allowance:{account_id}:2026-10", "is not the next allowance"),
        ("allowance:user_other:2026-08", "is not the next allowance"),
    ):
        conn.execute("SAVEPOINT wrong")
        wallet.book(conn, account_id, 1, description="", reference=reference, now_seconds=now)
        assert any(told in finding for finding in findings(conn)), reference
        conn.execute("ROLLBACK TO wrong")


# --- against a simple model


class Allowances(RuleBasedStateMachine):
    """Months, raises, cuts, spending and credits in any order; the model has no database."""

    def __init__(self) -> None:
        super().__init__()
        self.conn = empty_database()
        self.account_id = add_account(self.conn)
        self.allowance, self.clock_month = 0, 24_320  # months since the year 0
        self.balance, self.month, self.given = 0, 0, 0
        self.highest: dict[int, int] = {}  # the largest allowance at a hold of each month

    def now(self) -> float:
        return datetime(self.clock_month // 12, self.clock_month % 12 + 1, 28, tzinfo=UTC).timestamp()

    @rule(allowance=st.integers(0, 1_000))
    def change_allowance(self, allowance: int) -> None:
        self.allowance = allowance

    @rule(months=st.integers(-3, 3))
    def move_clock(self, months: int) -> None:
        self.clock_month += months

    @rule(micros=st.integers(1, 1_500))
    def credit(self, micros: int) -> None:
        wallet.book(self.conn, self.account_id, micros, description="by hand", now_seconds=self.now())
        self.balance += micros

    @rule(share=st.integers(0, 100))
    def spend(self, share: int) -> None:
        before = self.balance
        if self.clock_month > self.month:
            self.month, self.given, self.balance = self.clock_month, self.allowance, max(before, self.allowance)
        elif self.allowance > self.given:
            self.balance, self.given = before + self.allowance - self.given, self.allowance
        self.highest[self.month] = max(self.highest.get(self.month, 0), self.allowance)
        due = wallet.allowance_due(self.conn, self.account_id, self.allowance, self.now())
        assert (due[1] if due else 0) == self.balance - before
        wallet.top_up(self.conn, self.account_id, self.allowance, self.now())
        if micros := self.balance * share // 100:
            wallet.book(self.conn, self.account_id, -micros, description="spent", now_seconds=self.now())
            self.balance -= micros

    @precondition(lambda self: self.month)
    @rule()
    def refused_hold_changes_nothing(self) -> None:
        self.conn.execute("BEGIN")
        wallet.top_up(self.conn, self.account_id, self.allowance, self.now())
        with pytest.raises(ApiError):
            wallet.hold(self.conn, self.account_id, "hold", 10**9, self.now())
        self.conn.execute("ROLLBACK")

    @invariant()
    def books_are_right(self) -> None:
        assert wallet.balances(self.conn, self.account_id)["wallet_balance_micros"] == self.balance
        assert invariants.broken(self.conn) == [] or self.balance >= 5_000_000
        credited: dict[str, int] = {}
        for reference, micros in self.conn.execute(
            "SELECT substr(reference, -7), amount_micros FROM ledger WHERE reference GLOB 'allowance:*-[0-9][0-9]'"
        ):
            assert reference not in credited
            credited[reference] = micros
        query = "SELECT ifnull(sum(amount_micros), 0) FROM ledger WHERE reference GLOB 'allowance:*'"
        assert self.conn.execute(query).fetchone()[0] <= sum(self.highest.values())


TestAllowances = Allowances.TestCase
