"""Monthly limits of accounts and API keys: by any order of calls, months and clocks, and through HTTP."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from svc.auth import tokens
from svc.billing import invariants, limits, usage, wallet
from svc.errors import ApiError
from svc.ids import day_of
from svc.months import month_of
from tests.billing.test_wallet import add_account, empty_database, findings
from tests.conftest import Service, bearer
from tests.inference.test_model_call import Lab, Person, config, events, lab, spoken, upstream
from tests.support.cases import each

__all__ = ["config", "lab", "upstream"]

# The last hours of September, the first of October, November and the next year.
TIMES = [datetime(2026, 9, 30, 23, tzinfo=UTC), datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 10, 31, tzinfo=UTC)]
TIMES += [datetime(2026, 11, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)]
MICROS = st.integers(1, 1_000) | st.sampled_from([1, 100, 101])
LIMITS = st.none() | st.integers(0, 2_000) | st.sampled_from([0, 100, wallet.MOST_MICROS])
KEYS = st.none() | st.integers(0, 1)


class LimitMachine(RuleBasedStateMachine):
    """An account with two keys, under a clock that goes forward and back, against plain lists of what happened.

    `debits` and `holds` are (key, month, micros); the key of a session is None.
    """

    @initialize()
    def begin(self) -> None:
        self.conn = empty_database()
        self.account_id = add_account(self.conn, micros=wallet.MOST_MICROS)
        self.now = TIMES[0].timestamp()
        self.limits: dict[str | None, int | None] = {None: None}  # None: of the account
        self.ids = [self.new_key(), self.new_key()]
        self.debits: list[tuple[str | None, str, int]] = []
        self.holds: dict[str, tuple[str | None, str, int]] = {}
        self.numbers = 0

    def teardown(self) -> None:
        if hasattr(self, "conn"):
            self.conn.close()

    def new_key(self) -> str:
        key_id: str = tokens.add_key(self.conn, self.account_id, "k", tokens.new_key_token(), self.now)["id"]
        self.limits[key_id] = None
        return key_id

    def id_of(self, key: int | None) -> str | None:
        return None if key is None else self.ids[key]

    def month(self) -> str:
        return max([month_of(self.now), *(month for _, month, _ in self.debits)])

    def spent(self, key_id: str | None, month: str) -> int:
        """What a key, or None for the account, has spent."""
        return sum(micros for key, at, micros in self.debits if at == month and key_id in (None, key))

    def held(self, key_id: str | None, month: str) -> int:
        return sum(micros for key, at, micros in self.holds.values() if at == month and key_id in (None, key))

    def left_of(self, owner: str | None) -> int | None:
        """What a limit leaves for another hold, or None without a limit."""
        limit, month = self.limits[owner], self.month()
        return None if limit is None else limit - self.spent(owner, month) - self.held(owner, month)

    def left(self, key_id: str | None) -> int:
        balance = wallet.MOST_MICROS - sum(micros for _, _, micros in [*self.debits, *self.holds.values()])
        return min([balance, *(left for owner in (None, key_id) if (left := self.left_of(owner)) is not None)])

    @rule(at=st.sampled_from(TIMES))
    def set_clock(self, at: datetime) -> None:
        self.now = at.timestamp()

    @rule(key=KEYS, micros=LIMITS)
    def set_limit(self, key: int | None, micros: int | None) -> None:
        self.limits[key_id := self.id_of(key)] = micros
        if key_id is None:
            wallet.set_limit(self.conn, self.account_id, micros)
        else:
            changes = {"monthly_limit_micros": micros}
            shown = tokens.change_key(self.conn, self.account_id, key_id, changes, self.now)
            assert shown["monthly_limit_micros"] == micros

    @rule(key=st.integers(0, 1))
    def make_a_key_anew(self, key: int) -> None:
        tokens.TABLE.delete(self.conn, self.account_id, self.ids[key])
        self.ids[key] = self.new_key()

    @rule(key=KEYS, micros=MICROS)
    def hold(self, key: int | None, micros: int) -> None:
        self.numbers += 1
        key_id, hold_id = self.id_of(key), f"hold_{self.numbers}"
        fits = micros <= self.left(key_id)
        assert wallet.spendable_micros(self.conn, self.account_id, key_id, self.now) == self.left(key_id)
        try:
            wallet.hold(self.conn, self.account_id, hold_id, micros, self.now, key_id)
        except ApiError as error:
            assert (error.status, error.code) == (402, "spending_limit_reached") and not fits
            assert error.error["resets_at"][:7] > self.month()
        else:
            assert fits
            self.holds[hold_id] = (key_id, self.month(), micros)

    @precondition(lambda self: self.holds)
    @rule(data=st.data(), cost=st.integers(0, 2_000))
    def settle(self, data: st.DataObject, cost: int) -> None:
        hold_id = data.draw(st.sampled_from(sorted(self.holds)))
        key_id, month, held = self.holds.pop(hold_id)
        tokens_of = {"model": "m", "input_tokens": 1, "output_tokens": 1, "request_id": "r"}
        charged = wallet.settle(
            self.conn, self.account_id, hold_id, cost, **tokens_of, key_id=key_id, now_seconds=self.now
        )
        assert charged == min(cost, held)
        usage.add_call(self.conn, (self.account_id, key_id, "m", day_of(self.now), ""), 1, 1, charged)
        if charged:
            self.debits.append((key_id, month, charged))

    @rule()
    def restart(self) -> None:
        assert wallet.release_all(self.conn) == len(self.holds)
        self.holds.clear()

    @invariant()
    def every_view_agrees(self) -> None:
        if not hasattr(self, "conn"):
            return
        # A debit may settle in another month than that of its hold, so the sums of usage by month are not compared.
        broken = [line for line in invariants.broken_usage(self.conn) if not line.startswith("month ")]
        assert [*findings(self.conn), *broken] == []
        month = self.month()
        shown = wallet.limit_of_account(self.conn, self.account_id, self.now)
        assert shown == {
            "monthly_limit_micros": self.limits[None],
            "spent_this_month_micros": self.spent(None, month),
        }
        for key in tokens.keys_after(self.conn, self.account_id, None, 10, self.now):
            newest = max([month_of(self.now), *(at for owner, at, _ in self.debits if owner == key["id"])])
            assert key["spent_this_month_micros"] == self.spent(key["id"], newest)


LimitMachine.TestCase.settings = settings(stateful_step_count=40)
TestAnyOrderOfCallsMonthsAndLimitsAddsUp = LimitMachine.TestCase


# --- through HTTP. A token of `lab/ok+out` costs 2 micros of output, and its input nothing.

MODEL = "lab/ok+out"
OWNERS = ["key", "account"]


async def set_limit(lab: Lab, person: Person, owner: str, micros: int | None) -> None:
    path = "/user/settings" if owner == "account" else f"/user/api-keys/{person.key_id}"
    answer = await lab.service.client.patch(path, json={"monthly_limit_micros": micros}, headers=person.headers)
    assert answer.status_code == 200 and answer.json()["monthly_limit_micros"] == micros


async def spent(lab: Lab, person: Person, owner: str) -> int:
    (key,) = await lab.get(person, "/user/api-keys")
    shown = key if owner == "key" else await lab.get(person, "/user/settings")
    micros: int = shown["spent_this_month_micros"]
    return micros


def charge_all_that_is_held(lab: Lab) -> None:
    lab.script.completion, lab.script.chunks = spoken({"completion_tokens": 10**9})


@each("owner", OWNERS)
@each("served", [0, 1, 5])
async def test_limit_for_k_calls_passes_exactly_k_of_100_concurrent_ones(lab: Lab, owner: str, served: int) -> None:
    charge_all_that_is_held(lab)
    lab.upstream.requests.clear()
    person = await lab.person(10**9)
    await set_limit(lab, person, owner, served * 200 + 31)  # 31 micros are too few for 16 tokens
    answers = await asyncio.gather(*(lab.chat(person, MODEL, number % 2 == 0, max_tokens=100) for number in range(100)))
    assert sorted(answer.status_code for answer in answers) == [200] * served + [402] * (100 - served)
    assert len(lab.upstream.requests) == len(await lab.debits(person)) == served
    assert await spent(lab, person, owner) == served * 200


@each("owner", OWNERS)
async def test_reached_limit_is_402_with_its_numbers_until_it_is_raised(lab: Lab, owner: str) -> None:
    charge_all_that_is_held(lab)
    person = await lab.person(10**9)
    await set_limit(lab, person, owner, 231)
    assert (await lab.chat(person, MODEL, max_tokens=100)).status_code == 200
    refused = await lab.chat(person, MODEL, max_tokens=100)
    error = refused.json()["error"]
    assert (refused.status_code, error["type"], error["code"]) == (
        402,
        "insufficient_funds_error",
        "spending_limit_reached",
    )
    assert (error["limit_micros"], error["spent_micros"]) == (231, 200)
    assert error["resets_at"] == "2026-10-01T00:00:00.000Z" and refused.headers["x-should-retry"] == "false"
    assert "until 2026-10-01" in error["message"] and ("API key" if owner == "key" else "account") in error["message"]
    await set_limit(lab, person, owner, None)
    assert (await lab.chat(person, MODEL, max_tokens=100)).status_code == 200
    await set_limit(lab, person, owner, 0)
    assert (await lab.chat(person, MODEL, max_tokens=1)).status_code == 402
    assert (await lab.chat(person, "lab/ok+free")).status_code == 200, "free models need no money"


@each("path", ["/v1/messages", "/v1/responses"])
async def test_reached_limit_in_other_formats(lab: Lab, path: str) -> None:
    person = await lab.person(10**9)
    await set_limit(lab, person, "key", 31)
    body = {"model": MODEL, "max_tokens": 100, "input": "hello", "messages": [{"role": "user", "content": "hello"}]}
    answer = await lab.service.client.post(path, json=body, headers=person.headers)
    error = answer.json()["error"]
    assert (error["limit_micros"], error["spent_micros"]) == (31, 0) and "monthly limit" in error["message"]
    if path == "/v1/messages":
        assert (answer.status_code, error["type"]) == (402, "billing_error")
    else:  # as for an empty wallet: Codex repeats a request after 402
        assert (answer.status_code, error["code"]) == (400, "insufficient_quota")


async def test_keys_and_sessions_have_separate_limits_within_that_of_the_account(lab: Lab) -> None:
    charge_all_that_is_held(lab)
    person = await lab.person(10**9)
    await set_limit(lab, person, "key", 200)
    assert (await lab.chat(person, MODEL, max_tokens=100)).status_code == 200
    assert (await lab.chat(person, MODEL, max_tokens=100)).status_code == 402
    made = await lab.service.client.post("/user/api-keys", json={"name": "new"}, headers=person.session)
    other = Person(person.account_id, person.session, bearer(made.json()["key"]), made.json()["id"])
    assert (await lab.chat(other, MODEL, max_tokens=100)).status_code == 200
    await set_limit(lab, person, "account", 400)
    for key_id in (person.key_id, other.key_id):
        await lab.service.client.delete(f"/user/api-keys/{key_id}", headers=person.session)
    new = await lab.service.make_key(person.session)
    for headers in (person.session, bearer(new["key"])):
        refused = await lab.chat(Person(person.account_id, headers, headers, new["id"]), MODEL, max_tokens=100)
        assert refused.status_code == 402, "a new key does not widen the limit of the account"
        assert refused.json()["error"]["spent_micros"] == 400


@each("owner", OWNERS)
async def test_output_is_lowered_to_what_the_limit_pays(lab: Lab, owner: str) -> None:
    person = await lab.person(10**9)
    await set_limit(lab, person, owner, 41)
    answer = await lab.chat(person, MODEL, max_tokens=100)
    assert answer.status_code == 200 and lab.upstream.requests[-1].body["max_tokens"] == 20
    assert lab.holds(person) == [40]


async def test_empty_wallet_is_named_before_a_reached_limit(lab: Lab) -> None:
    person = await lab.person()
    await set_limit(lab, person, "key", 0)
    assert (await lab.chat(person, MODEL)).json()["error"]["code"] == "insufficient_funds"


async def test_limit_renews_with_the_month_and_running_calls_are_not_shown(lab: Lab) -> None:
    charge_all_that_is_held(lab)
    person = await lab.person(10**9)
    await set_limit(lab, person, "key", 200)
    assert (await lab.chat(person, MODEL, max_tokens=100)).status_code == 200
    assert (await lab.chat(person, MODEL, max_tokens=100)).status_code == 402
    lab.service.clocks.now = datetime(2026, 10, 1, tzinfo=UTC).timestamp()
    assert [await spent(lab, person, owner) for owner in OWNERS] == [0, 0]
    hold = (person.account_id, "hold_0", 150, lab.service.clocks.now, person.key_id)
    await lab.service.state["db"].write(wallet.hold, *hold)
    assert [await spent(lab, person, owner) for owner in OWNERS] == [0, 0]
    assert (await lab.chat(person, MODEL, max_tokens=26)).status_code == 200
    assert lab.holds(person)[-1] == 50, "the running call counts"
    await lab.service.state["db"].write(wallet.release_all)


CALLS_A_TOOL: list[Any] = [
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"name": "x", "arguments": "{}"}}]}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 10**6}},
]


@each("owner", OWNERS)
async def test_run_that_reaches_a_limit_ends_with_that_error(lab: Lab, owner: str) -> None:
    lab.script.chunks = CALLS_A_TOOL
    person = await lab.person(10**9)
    await set_limit(lab, person, owner, 20_000)
    last = events(await lab.run(person, MODEL, max_steps=20))[-1]
    assert (last["type"], last["error"]["code"]) == ("error", "spending_limit_reached")
    assert (last["error"]["limit_micros"], last["error"]["spent_micros"]) == (20_000, 20_000)
    assert last["cost_micros"] == await spent(lab, person, owner) == 20_000
    (record,) = (await lab.get(person, "/v1/agents/runs"))["data"]
    assert (record["status"], record["error"]) == ("error", last["error"])
    refused = await lab.run(person, MODEL)
    assert (refused.status_code, refused.json()["error"]["code"]) == (402, "spending_limit_reached")


@each("owner", OWNERS)
async def test_images_and_speech_respect_limits(service: Service, owner: str) -> None:
    session = await service.sign_up()
    headers, account_id = bearer(session["access_token"]), session["user"]["id"]
    await service.state["db"].write(wallet.book, account_id, 10**6, description="", now_seconds=service.clocks.now)
    key = await service.make_key(headers)
    path = "/user/settings" if owner == "account" else f"/user/api-keys/{key['id']}"
    await service.client.patch(path, json={"monthly_limit_micros": 39_999}, headers=headers)

    async def post(path: str, **body: Any) -> httpx.Response:
        return await service.client.post(path, json=body, headers=bearer(key["key"]))

    picture = {"prompt": "a pine", "model": "builtin/paint", "size": "64x64"}
    assert (await post("/v1/images/generations", **picture)).status_code == 200
    speech = {"input": "hello", "model": "builtin/voice", "tts_max_tokens": 4096}
    for refused in (await post("/v1/images/generations", **picture), await post("/v1/audio/generate", **speech)):
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (402, "spending_limit_reached")
        assert (error["limit_micros"], error["spent_micros"]) == (39_999, 20_000)


def test_call_belongs_to_the_month_of_its_hold_with_any_clock() -> None:
    conn = empty_database()
    account_id = add_account(conn, micros=10_000)
    september, october = TIMES[0].timestamp(), TIMES[1].timestamp()
    key_id = tokens.add_key(conn, account_id, "k", tokens.new_key_token(), september)["id"]
    call = {"model": "m", "input_tokens": 1, "output_tokens": 1, "request_id": "r", "key_id": key_id}

    def spent(now_seconds: float) -> list[int | None]:
        (key,) = tokens.keys_after(conn, account_id, None, 1, now_seconds)
        of_account = wallet.limit_of_account(conn, account_id, now_seconds)
        return [key["spent_this_month_micros"], of_account["spent_this_month_micros"]]

    for hold_id in ("first", "second", "third"):
        wallet.hold(conn, account_id, hold_id, 100, september, key_id)
    assert wallet.settle(conn, account_id, "first", 40, **call, now_seconds=october) == 40
    assert (spent(september), spent(october)) == ([40, 40], [0, 0])
    wallet.hold(conn, account_id, "of october", 100, october, key_id)
    assert wallet.settle(conn, account_id, "of october", 7, **call, now_seconds=october) == 7
    assert wallet.settle(conn, account_id, "second", 500, **call, now_seconds=october) == 100
    assert spent(october) == [7, 7], "a call of the month before changes no sum"
    tokens.change_key(conn, account_id, key_id, {"monthly_limit_micros": 10}, october)
    with pytest.raises(ApiError, match="monthly limit") as refused:
        wallet.hold(conn, account_id, "x", 4, september, key_id)
    assert refused.value.error["resets_at"] == "2026-11-01T00:00:00.000Z", "the clock has gone back, the month has not"
    wallet.hold(conn, account_id, "y", 3, september, key_id)
    assert wallet.settle(conn, account_id, "y", 3, **call, now_seconds=september) == 3
    assert (spent(september), spent(october)) == ([10, 10], [10, 10])
    conn.close()


def test_holds_count_for_their_account_and_key_and_month_only() -> None:
    conn = empty_database()
    account_id = add_account(conn, micros=10_000)
    september, october = TIMES[0].timestamp(), TIMES[1].timestamp()
    keys = [tokens.add_key(conn, account_id, "k", tokens.new_key_token(), september)["id"] for _ in range(2)]
    for key_id in keys:
        tokens.change_key(conn, account_id, key_id, {"monthly_limit_micros": 100}, september)
    wallet.set_limit(conn, account_id, 1_200)
    wallet.hold(conn, account_id, "of a session", 1_000, september)
    wallet.hold(conn, account_id, "of a key", 100, september, keys[0])
    for hold_id, micros, key_id in (("x", 1, keys[0]), ("y", 101, None)):
        with pytest.raises(ApiError, match="monthly limit"):
            wallet.hold(conn, account_id, hold_id, micros, september, key_id)
    wallet.hold(conn, account_id, "of another key", 100, september, keys[1])
    wallet.hold(conn, account_id, "of the next month", 100, october, keys[0])
    wallet.hold(conn, account_id, "of a session in the next month", 1_100, october)
    with pytest.raises(ApiError, match="monthly limit"):
        wallet.hold(conn, account_id, "z", 1, october)
    for month, held in (("2026-09", [1_200, 100]), ("2026-10", [1_200, 100])):
        assert [limit.held_micros for limit in limits.of_call(conn, account_id, keys[0], month)] == held
    other = add_account(conn, "bob@example.com", 10_000)
    wallet.set_limit(conn, other, 100)
    wallet.hold(conn, other, "of another account", 100, september, keys[0])
    conn.close()


def test_error_names_the_limit_with_the_least_left() -> None:
    of_both = [limits.Limit("account", 9_000_000, 1, 2), limits.Limit("API key", 5_000_000, 4_000_000, 999_999)]
    error = limits.reached(of_both, 2, "2026-12")
    assert error.error["limit_micros"] == 5_000_000 and error.error["resets_at"] == "2027-01-01T00:00:00.000Z"
    assert str(error) == (
        "This needs $0.000002 (2 micros). The monthly limit of this API key is $5.00, of which $4.00 is spent and "
        "$0.999999 is reserved for running requests. Raise it on the page 'API keys', or wait until 2027-01-01."
    )


@pytest.mark.parametrize(
    ("finding", "change"),
    [
        ("wallet", "UPDATE wallets SET month_spent_micros = month_spent_micros + 1"),
        ("wallet", "UPDATE wallets SET month = '2026-10'"),
        ("wallet", "UPDATE wallets SET month = NULL, month_spent_micros = 0"),
        ("key", "UPDATE api_keys SET month_spent_micros = 0"),
        ("key", "UPDATE api_keys SET month = '2026-10'"),
    ],
)
def test_check_finds_spending_that_the_ledger_does_not_have(finding: str, change: str) -> None:
    conn = empty_database()
    account_id = add_account(conn, micros=1_000)
    now_seconds = TIMES[0].timestamp()
    key_id = tokens.add_key(conn, account_id, "k", tokens.new_key_token(), now_seconds)["id"]
    wallet.hold(conn, account_id, "hold_1", 100, now_seconds, key_id)
    call = {"model": "m", "input_tokens": 1, "output_tokens": 1, "request_id": "r", "key_id": key_id}
    assert wallet.settle(conn, account_id, "hold_1", 40, **call, now_seconds=now_seconds) == 40
    usage.add_call(conn, (account_id, key_id, "m", day_of(now_seconds), ""), 1, 1, 40)
    assert invariants.broken_usage(conn) == []
    conn.execute(change)
    (line,) = invariants.broken_usage(conn)
    assert line.startswith(finding) and "of spending in" in line
    conn.close()
