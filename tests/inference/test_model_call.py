"""Paid chats and runs through HTTP, in front of a model server of any honesty: what is held, charged and shown."""

import asyncio
import base64
import dataclasses
import json
import math
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc.agents import loop
from svc.billing import wallet
from svc.config import Config
from svc.errors import ClientGone
from svc.inference import chat_call
from svc.inference.effort_needs import NEEDS, NO_EFFORT
from svc.inference.model_call import Payer
from svc.server import limits
from svc.server.http.head import Context
from svc.server.sse import Drain, Interrupt
from tests.conftest import Service, bearer
from tests.support.cases import each
from tests.support.full_disk import full_disk
from tests.support.loop_clock import advance_loop, hastened
from tests.support.model_answers import Wanted
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, most_tokens, rows, watch
from tests.support.waiting import logged, run_ready, until

COMPLETIONS, RUN = "/v1/chat/completions", "/v1/agents/run"
# Micros per token in and out, times a million, by what follows the `+` in a model's name.
PRICES = {
    "": (1_000_000, 2_000_000),
    "in": (1_000_000, 0),
    "out": (0, 2_000_000),
    "odd": (333_333, 1_499_999),
    "tiny": (1, 1),
    "dear": (10**12, 10**12),
    "free": (0, 0),
    "cheap": (100_000, 200_000),
}
BEHAVIOURS = (
    *(
        "echo",
        "no-usage",
        "tools",
        "status-400",
        "status-500",
        "refuse-429",
        "silent",
        "cut-head",
        "html-200",
        "error-200",
    ),
    *("error-mid-stream", "broken-json", "cut-after-1-chunks", "cut-after-2-chunks", "reset-after-3-chunks"),
    "silent-after-7-chunks",
    *(
        "silent-after-3-chunks",
        "fail-once",
        "endless",
        "usage-always+cut-after-3-chunks",
        "waits",
        "no-done+until-close",
    ),
)
FALLBACKS = {
    "status-503+to-cheap": "lab/ok+cheap",
    "status-503+to-free": "lab/ok+free",
    "status-503+to-dear": "lab/ok+dear",
}


def catalog(base_url: str) -> str:
    entries = [("ok" + (f"+{name}" if name else ""), prices, None) for name, prices in PRICES.items()]
    entries += [(name, PRICES[""], None) for name in BEHAVIOURS]
    entries.append(("bills-bytes+in", PRICES["in"], None))
    entries += [(name, PRICES[""], fallback) for name, fallback in FALLBACKS.items()]
    models = "".join(
        f'[[providers.models]]\nid = "{name}"\n'
        f"input_micros_per_million_tokens = {price_in}\noutput_micros_per_million_tokens = {price_out}\n"
        + (f'fallback = "{fallback}"\n' if fallback else "")
        for name, (price_in, price_out), fallback in entries
    )
    return f'[[providers]]\nname = "lab"\nbase_url = "{base_url}"\ntimeout_seconds = 0.5\n{models}'


@dataclass
class Person:
    account_id: str
    session: dict[str, str]
    headers: dict[str, str]
    key_id: str


class Lab:
    """The service in front of `upstream`, which says what `script` has."""

    def __init__(self, service: Service, upstream: "ScriptedServer") -> None:
        self.service = service
        self.upstream = upstream
        self.script = upstream.script
        self.database = service.config.data_dir / "service.db"

    async def person(self, micros: int = 0) -> Person:
        signed_up = await self.service.sign_up()
        session = bearer(signed_up["access_token"])
        key = await self.service.make_key(session)
        person = Person(signed_up["user"]["id"], session, bearer(key["key"]), key["id"])
        if micros:
            await self.book(person, micros)
        return person

    async def book(self, person: Person, micros: int) -> None:
        now_seconds = self.service.clocks.now
        await self.service.state["db"].write(
            wallet.book, person.account_id, micros, description="", now_seconds=now_seconds
        )

    async def chat(self, person: Person, model: str, stream: bool | None = False, **fields: Any) -> httpx.Response:
        body = {"model": model, "messages": [{"role": "user", "content": "hello"}], "stream": stream, **fields}
        return await self.service.client.post(COMPLETIONS, json=body, headers=person.headers)

    async def run(self, person: Person, model: str, goal: str = "hello", **fields: Any) -> httpx.Response:
        body = {"model": model, "goal": goal, "tools": [], **fields}
        return await self.service.client.post(RUN, json=body, headers=person.headers)

    async def ask(self, kind: str, person: Person, model: str) -> httpx.Response:
        return await (self.run(person, model) if kind == "run" else self.chat(person, model, kind == "stream"))

    async def get(self, person: Person, path: str) -> Any:
        answer = await self.service.client.get(path, headers=person.headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def balance(self, person: Person) -> int:
        """The balance, when nothing is held."""
        account = await self.get(person, "/billing/account")
        assert account["held_micros"] == 0
        micros: int = account["wallet_balance_micros"]
        return micros

    async def settled(self, person: Person) -> None:
        """Wait until this person has no hold."""
        await until(lambda: not rows(self.database, "SELECT 1 FROM holds WHERE account_id = ?", person.account_id))

    async def debits(self, person: Person) -> list[dict[str, Any]]:
        listed = (await self.get(person, "/billing/ledger?limit=100"))["data"]
        return [row for row in reversed(listed) if row["kind"] == "debit"]

    def holds(self, person: Person) -> list[int]:
        """Every amount that was ever held."""
        query = "SELECT amount_micros FROM witness_holds WHERE account_id = ? ORDER BY id"
        return [micros for (micros,) in rows(self.database, query, person.account_id)]


class Script:
    """What the model server says in place of its usual answer: to a JSON request, and to a stream."""

    def __init__(self) -> None:
        self.completion: dict[str, Any] | None = None
        self.chunks: list[Any] | None = None

    def answers(self) -> type[Wanted]:
        script = self

        class Scripted(Wanted):
            def completion(self) -> dict[str, Any]:
                return script.completion or super().completion()

            def events(self) -> Iterator[bytes]:
                if script.chunks is None:
                    yield from super().events()
                    return
                for chunk in script.chunks:
                    yield json.dumps(chunk).encode()
                yield b"[DONE]"

        return Scripted


class ScriptedServer(ModelServer):
    def __init__(self) -> None:
        self.script = Script()
        super().__init__(answers=self.script.answers())


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as upstream:
        yield upstream


@pytest.fixture
def config(config: Config, upstream: ModelServer, tmp_path: Path) -> Config:
    (tmp_path / "catalog.toml").write_text(catalog(upstream.base_url))
    return dataclasses.replace(config, catalog=tmp_path / "catalog.toml")


@pytest.fixture
async def lab(service: Service, upstream: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Lab]:
    lab = Lab(service, upstream)
    watch(lab.database)
    for tier in limits.CHAT_PER_MINUTE:
        monkeypatch.setitem(limits.CHAT_PER_MINUTE, tier, 1_000_000)
    yield lab
    assert_exact(lab.database)


def events(answer: httpx.Response) -> list[Any]:
    assert answer.status_code == 200, answer.text
    blocks = answer.text.split("\n\n")[:-1]
    return [
        block[6:] if block == "data: [DONE]" else orjson.loads(block[6:])
        for block in blocks
        if not block.startswith(":")
    ]


KINDS = ("json", "stream", "run")
SYSTEM = {"role": "system", "content": loop.INSTRUCTIONS}
USER = {"role": "user", "content": "hello"}
RUN_BYTES = len(loop.INSTRUCTIONS) + len("hello")


def sent(model: str, stream: bool | None = False, **fields: Any) -> dict[str, Any]:
    """The body that the model gets for `lab.chat`."""
    body = {"model": model.partition("/")[2], "messages": [USER], "stream": stream, "max_tokens": 4096, **fields}
    usage = {"stream_options": {"include_usage": True}} if stream and model.startswith("lab/") else {}
    return {**body, **usage}


def hello_hold(stream: bool) -> int:
    """The hold of `lab/ok` for `max_tokens=100`, in micros."""
    return most_tokens(sent("lab/ok", stream, max_tokens=100)) + 2 * 100


# --- before anything is sent


@each("empty", [True, False])
@each("model", ["lab/ok", "builtin/assistant-paid"])
@each("kind", KINDS)
async def test_wallet_one_micro_short_is_402_with_balance_and_missing_amount(
    lab: Lab, kind: str, model: str, empty: bool
) -> None:
    lab.upstream.requests.clear()
    messages = [SYSTEM, USER] if kind == "run" else [USER]
    size = most_tokens(sent(model, kind != "json", messages=messages))
    needed = size + 2 * 16 if model == "lab/ok" else math.ceil(Fraction(size + 3 * 16, 2))
    balance = 0 if empty else needed - 1
    person = await lab.person(balance)
    answer = await lab.ask(kind, person, model)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["code"]) == (402, "insufficient_funds_error", "insufficient_funds")
    assert f"({needed} micros)" in error["message"] and f"({balance} micros)" in error["message"]
    assert answer.headers["x-should-retry"] == "false" and "x-service-cost-micros" not in answer.headers
    assert lab.upstream.requests == [] and lab.holds(person) == [] and await lab.debits(person) == []
    assert (await lab.get(person, "/billing/usage"))["data"] == [] and (await lab.get(person, "/v1/agents/runs"))[
        "data"
    ] == []
    await lab.book(person, needed - balance)
    assert (await lab.ask(kind, person, model)).status_code == 200 and lab.holds(person) == [needed]


# wallet in micros (2 of them for a token), what the caller asks for -> what the model server is asked for, or None for
# 402
LIMITS: list[tuple[int, dict[str, Any], dict[str, Any] | None]] = [
    (10**9, {}, {"max_tokens": 4096}),
    (10**9, {"max_tokens": None, "max_completion_tokens": None}, {"max_tokens": 4096, "max_completion_tokens": None}),
    (10**9, {"max_tokens": 100}, {"max_tokens": 100}),
    (10**9, {"max_tokens": 100_000}, {"max_tokens": 100_000}),
    (10**9, {"max_completion_tokens": 100}, {"max_completion_tokens": 100}),
    (10**9, {"max_tokens": 50, "max_completion_tokens": 100}, {"max_tokens": 50, "max_completion_tokens": 50}),
    (10**9, {"n": 3}, {"n": 3, "max_tokens": 4096}),
    (8192, {}, {"max_tokens": 4096}),
    (8191, {}, {"max_tokens": 4095}),
    (41, {}, {"max_tokens": 20}),
    (41, {"max_tokens": 2**31 - 1}, {"max_tokens": 20}),
    (41, {"max_completion_tokens": 100}, {"max_completion_tokens": 20}),
    (41, {"max_completion_tokens": 100, "max_tokens": 50}, {"max_completion_tokens": 20, "max_tokens": 20}),
    (41, {"max_tokens": 20}, {"max_tokens": 20}),
    (131, {"n": 3}, {"n": 3, "max_tokens": 21}),
    (32, {}, {"max_tokens": 16}),
    (31, {}, None),
    (31, {"max_tokens": 16}, None),
    (31, {"max_tokens": 15}, {"max_tokens": 15}),
    (29, {"max_tokens": 15}, None),
    (2, {"max_tokens": 1}, {"max_tokens": 1}),
    (96, {"n": 3}, {"n": 3, "max_tokens": 16}),
    (95, {"n": 3}, None),
    (4095, {"n": 128}, None),
]


@each(("micros", "asked", "sent"), LIMITS)
async def test_output_limit_is_lowered_to_the_affordable_output(
    lab: Lab, micros: int, asked: dict[str, Any], sent: dict[str, Any] | None
) -> None:
    person = await lab.person(micros)
    for stream in (False, True):
        lab.upstream.requests.clear()
        answer = await lab.chat(person, "lab/ok+out", stream, **asked)
        assert answer.status_code == (200 if sent else 402), answer.text
        if sent is None:
            assert lab.upstream.requests == []
            continue
        body = lab.upstream.requests[-1].body
        assert {name: body[name] for name in ("max_tokens", "max_completion_tokens", "n") if name in body} == sent
        limit = sent.get("max_tokens") or sent["max_completion_tokens"]
        assert lab.holds(person)[-1] == 2 * limit * sent.get("n", 1) <= micros
        await lab.book(person, micros - await lab.balance(person))  # as at first


async def test_free_model_is_neither_limited_nor_charged(lab: Lab) -> None:
    person = await lab.person()
    answer = await lab.chat(person, "lab/ok+free", n=2)
    assert answer.status_code == 200 and "x-service-cost-micros" not in answer.headers
    assert "max_tokens" not in lab.upstream.requests[-1].body
    assert lab.holds(person) == [] and (await lab.get(person, "/billing/ledger"))["data"] == []


IMAGE: dict[str, Any] = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5000}}
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}


@each(
    "fields",
    [
        {},
        {"messages": [{"role": "user", "content": "héllo 🙂\n"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "what?"}]}]},
        {"messages": [{"role": "user", "content": ""}], "seed": 2**70, "temperature": 0.5},
        {"tools": [TOOL]},
        {"tools": [TOOL], "tool_choice": "auto", "response_format": {"type": "json_object", "x": [1, {"y": None}]}},
    ],
)
@each("stream", [False, True])
async def test_hold_is_a_token_for_each_byte_that_is_sent(lab: Lab, stream: bool, fields: dict[str, Any]) -> None:
    person = await lab.person(1_000_000)
    answer = await lab.chat(person, "lab/bills-bytes+in", stream, **fields)
    assert answer.status_code == 200
    received = lab.upstream.requests[-1]
    tokens = int(received.headers["content-length"])
    frames = len(received.body["messages"]) + len(fields.get("tools", ())) + ("text" in str(fields.get("messages")))
    second = NEEDS[NO_EFFORT].most_bytes if "tools" in fields else 0  # of a second try without reasoning
    assert lab.holds(person) == [tokens + 16 * frames + second] and 1_000_000 - await lab.balance(person) == tokens
    poor = await lab.person(tokens + 16 * frames - 1)
    assert (await lab.chat(poor, "lab/bills-bytes+in", stream, **fields)).status_code == 402


LONG = 900_000  # characters
TEXT_FILE = "data:text/plain;base64," + base64.b64encode(b"words " * 175_000).decode()


@each(
    "fields",
    [
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"x" * LONG: {}}}}}]},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"x" * LONG: 1}}}},
        {"chat_template_kwargs": {"x" * LONG: True}},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"enum": [10**15] * 50_000}}}]},
        {"messages": [{"role": "user", "content": [{"type": "x", "data": "data:image/png;base64," + "A" * LONG}]}]},
        {
            "messages": [
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x", "z": "y" * LONG}}]}
            ]
        },
        {"messages": [{"role": "user", "content": "hi", "images": ["A" * LONG]}]},
    ],
)
async def test_hold_covers_a_prompt_wherever_it_is_hidden(lab: Lab, fields: dict[str, Any]) -> None:
    person = await lab.person(10_000_000)
    answer = await lab.chat(person, "lab/bills-bytes+in", **fields)
    assert answer.status_code == 200, answer.text
    tokens = int(lab.upstream.requests[-1].headers["content-length"])
    assert tokens >= 800_000 and answer.headers["x-service-cost-micros"] == str(tokens)
    assert 10_000_000 - await lab.balance(person) == tokens
    poor = await lab.person(tokens - 1)
    assert (await lab.chat(poor, "lab/bills-bytes+in", **fields)).status_code == 402


async def test_text_in_a_file_part_is_held_by_its_decoded_bytes(lab: Lab) -> None:
    person = await lab.person(10_000_000)
    part = {"type": "file", "file": {"filename": "a.txt", "file_data": TEXT_FILE}}
    assert (await lab.chat(person, "lab/ok+in", messages=[{"role": "user", "content": [part]}])).status_code == 200
    assert lab.holds(person)[0] >= 175_000 * 6


async def test_large_image_is_held_like_a_small_one(lab: Lab) -> None:
    person = await lab.person(10_000_000)
    for size in (4, 4_000_000):
        part = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * size}}
        assert (await lab.chat(person, "lab/ok+in", messages=[{"role": "user", "content": [part]}])).status_code == 200
    small, large = lab.holds(person)
    assert small == large and 8192 < small < 8192 + 500


# --- what is shown


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("by_key", [False, True])
async def test_a_debit_names_model_tokens_request_and_key(lab: Lab, stream: bool, by_key: bool) -> None:
    person = await lab.person(1_000)
    person.headers = person.headers if by_key else person.session
    answer = await lab.chat(person, "lab/ok", stream)
    assert answer.status_code == 200
    assert answer.headers.get("x-service-cost-micros") == (None if stream else "17")
    (debit,) = await lab.debits(person)
    assert debit.pop("id").startswith("led_") and debit.pop("reference").startswith("hold_") and debit.pop("created_at")
    assert debit == {
        "kind": "debit",
        "amount_micros": -17,
        "balance_after_micros": 983,
        "description": "lab/ok: 7 input and 5 output tokens",
        "model": "lab/ok",
        "input_tokens": 7,
        "cached_input_tokens": 0,
        "output_tokens": 5,
        "request_id": answer.headers["x-request-id"],
        "key_id": person.key_id if by_key else None,
    }
    (line,) = await logged(lab.service.log_lines, route=COMPLETIONS)
    assert (line["cost_micros"], line["input_tokens"], line["output_tokens"]) == (
        17,
        7,
        5,
    ) and "overrun_micros" not in line


async def test_request_id_of_the_caller_may_repeat_in_the_ledger(lab: Lab) -> None:
    person = await lab.person(1_000)
    person.headers["x-request-id"] = "mine"
    for _ in range(3):
        assert (await lab.chat(person, "lab/ok")).headers["x-request-id"] == "mine"
    assert [debit["request_id"] for debit in await lab.debits(person)] == ["mine"] * 3
    assert await lab.balance(person) == 1_000 - 3 * 17


async def test_run_pays_for_each_step_and_returns_the_sum(lab: Lab) -> None:
    person = await lab.person(10_000_000)
    goal = "Compute 12 * (3 + 4) and save a note with the result"
    answer = await lab.run(person, "builtin/assistant-paid", goal, tools=None)
    last = events(answer)[-1]
    debits = await lab.debits(person)
    assert last["type"] == "final" and last["steps"] == len(debits) == len(lab.holds(person)) > 1
    assert (
        last["cost_micros"]
        == -sum(debit["amount_micros"] for debit in debits)
        == 10_000_000 - await lab.balance(person)
    )
    assert last["usage"]["prompt_tokens"] == sum(debit["input_tokens"] for debit in debits)
    assert {(debit["request_id"], debit["key_id"]) for debit in debits} == {
        (answer.headers["x-request-id"], person.key_id)
    }
    (record,) = (await lab.get(person, "/v1/agents/runs"))["data"]
    assert record["cost_micros"] == last["cost_micros"] and record["usage"] == last["usage"]


async def test_run_with_an_empty_wallet_ends_with_insufficient_funds(lab: Lab) -> None:
    person = await lab.person(RUN_BYTES + 20_000)
    lab.script.chunks = [
        {
            "choices": [
                {
                    "index": 0,
                    "delta": {"tool_calls": [{"index": 0, "function": {"name": "calculate", "arguments": "{}"}}]},
                }
            ]
        },
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 10**6}},
    ]
    found = events(await lab.run(person, "lab/ok", max_steps=20))
    error = found[-1]
    assert error["type"] == "error" and error["error"]["code"] == "insufficient_funds"
    debits = await lab.debits(person)
    assert (
        error["cost_micros"] == -sum(debit["amount_micros"] for debit in debits) > 0
        and error["steps"] == len(debits) + 1
    )
    assert len(lab.upstream.requests) == len(debits) and await lab.balance(person) >= 0
    (used,) = (await lab.get(person, "/billing/usage"))["data"]
    assert used["requests"] == len(debits)


async def test_usage_counts_paid_and_free_calls_each_once(lab: Lab) -> None:
    person = await lab.person(10_000)
    for model in ("lab/ok", "lab/ok", "lab/ok+free", "builtin/echo", "lab/status-500"):
        for kind in KINDS:
            await lab.ask(kind, person, model)
    used = {row["model"]: row for row in (await lab.get(person, "/billing/usage"))["data"]}
    debits = await lab.debits(person)
    requests = {model: row["requests"] for model, row in used.items()}
    assert requests == {"lab/ok": 6, "lab/ok+free": 3, "builtin/echo": 3, "lab/status-500": 3}
    assert [used[model]["cost_micros"] for model in ("lab/ok+free", "builtin/echo", "lab/status-500")] == [0, 0, 0]
    assert used["lab/ok"]["cost_micros"] == -sum(debit["amount_micros"] for debit in debits) == 6 * 17
    assert (used["lab/ok"]["input_tokens"], used["lab/ok+free"]["output_tokens"]) == (6 * 7, 3 * 5)


async def test_usage_includes_unwritten_calls(lab: Lab) -> None:
    person, state = await lab.person(), lab.service.state
    assert (await lab.chat(person, "builtin/echo")).status_code == 200
    held, go_on = threading.Event(), threading.Event()
    busy = asyncio.ensure_future(state["db"].write(lambda tx: held.set() or go_on.wait(20)))
    await until(held.is_set)
    writing = asyncio.create_task(state["engines"].usage.flush())
    await until(lambda: state["db"].waiting()[0])
    asking = asyncio.create_task(lab.get(person, "/billing/usage"))
    await run_ready()
    assert not asking.done(), "it waits for what is being written"
    go_on.set()
    assert [row["requests"] for row in (await asking)["data"]] == [1]
    await asyncio.gather(busy, writing)


# --- what a model server says of its tokens

# "hello" (5 bytes) and at most 100 tokens are held: 5 + 200 micros. The answer has 13 bytes: 4 tokens, to 2 of input.
ESTIMATE = 2 + 2 * 4
USAGES: list[tuple[Any, int]] = [
    (None, ESTIMATE),
    ({}, ESTIMATE),
    ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, 0),
    ({"prompt_tokens": 0, "completion_tokens": 5}, 10),
    ({"prompt_tokens": 7, "completion_tokens": 0}, 7),
    ({"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 99}, 17),
    ({"prompt_tokens": -7, "completion_tokens": -5, "total_tokens": -12}, ESTIMATE),
    ({"prompt_tokens": 7, "completion_tokens": -5}, 7 + 8),
    ({"prompt_tokens": 6.5, "completion_tokens": 5.0}, 17),
    ({"prompt_tokens": math.nan, "completion_tokens": math.inf}, ESTIMATE),
    ({"prompt_tokens": "7", "completion_tokens": "5"}, 17),
    ({"prompt_tokens": "seven", "completion_tokens": "-5"}, ESTIMATE),
    ({"prompt_tokens": True, "completion_tokens": [5]}, ESTIMATE),
    ({"prompt_tokens": {"n": 7}, "completion_tokens": None}, ESTIMATE),
    ({"prompt_tokens": 10**9, "completion_tokens": 10**9}, 3 * 10**9),
    ({"prompt_tokens": 10**9, "completion_tokens": 0}, 10**9),
    ({"prompt_tokens": 10**30, "completion_tokens": 2**63}, ESTIMATE),
    ({"prompt_tokens": 1e300, "completion_tokens": 10**15}, ESTIMATE),
    ({"input_tokens": 7, "output_tokens": 5}, 17),
    ({"total_tokens": 12}, 12 - 4 + 8),
    ({"total_tokens": 0}, 0 + 8),
    ({"prompt_tokens": 7, "total_tokens": 12}, 17),
    ({"prompt_tokens": 7, "total_tokens": 3}, 7),
    ({"prompt_tokens": 5, "completion_tokens": 100}, 205),
    ({"prompt_tokens": 5, "completion_tokens": 500}, 1_005),
    ([7, 5], ESTIMATE),
    ("7", ESTIMATE),
    (7, ESTIMATE),
]


def spoken(usage: Any) -> tuple[dict[str, Any], list[Any]]:
    """A model server's answer with this usage, whole and in chunks."""
    message = {"role": "assistant", "content": "Hello, world!"}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
    chunks = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in ("Hello, ", "world!")]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return whole, [*chunks, end, {"choices": [], "usage": usage}]


async def test_debit_is_between_0_and_the_hold_for_any_usage(lab: Lab) -> None:
    person = await lab.person(1_000_000)
    for usage, cost in USAGES:
        lab.script.completion, lab.script.chunks = spoken(usage)
        for stream in (False, True):
            before = await lab.balance(person)
            answer = await lab.chat(person, "lab/ok", stream, max_tokens=100)
            assert answer.status_code == 200, (usage, answer.text)
            hold = hello_hold(stream)
            charged = min(cost, hold)
            assert (lab.holds(person)[-1], before - await lab.balance(person)) == (hold, charged), usage
            assert stream or answer.headers["x-service-cost-micros"] == str(charged)
    assert len(await lab.debits(person)) == 2 * sum(cost > 0 for _, cost in USAGES)  # what costs nothing is no row


@each(
    ("usages", "cost"),
    [
        ([(7, 5), (7, 5)], 17),
        ([(100, 90), (7, 5)], 17),
        ([(7, 0), (7, 1), (7, 5)], 17),
        ([(7, 5), (0, 0)], 0),
        ([(7, 5), None], 17),
    ],
)
async def test_last_of_several_usages_is_charged_once(lab: Lab, usages: list[Any], cost: int) -> None:
    person = await lab.person(1_000)
    *lab.script.chunks, end, _ = spoken(None)[1]
    for counts in usages[:-1]:
        lab.script.chunks.append({"choices": [{"index": 0, "delta": {"content": "x"}}], "usage": _counted(counts)})
    lab.script.chunks += [end, {"choices": [], "usage": _counted(usages[-1])}]
    assert events(await lab.chat(person, "lab/ok", stream=True))[-1] == "[DONE]"
    assert await lab.balance(person) == 1_000 - cost


@pytest.mark.parametrize("stream", [False, True])
async def test_answers_with_text_for_which_the_model_server_counts_nothing_are_counted(lab: Lab, stream: bool) -> None:
    person = await lab.person(1_000)

    async def unbilled(usage: Any, model: str) -> bool:
        lab.script.completion, lab.script.chunks = spoken(usage)
        assert (await lab.chat(person, model, stream, max_tokens=100)).status_code == 200
        text = (await lab.service.client.get("/metrics")).text
        return "\nsvc_unbilled_answers_total 1\n" in text

    nothing = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    assert not await unbilled(nothing, "lab/ok+free")
    assert not await unbilled({"prompt_tokens": 7, "completion_tokens": 0}, "lab/ok")
    assert not await unbilled(None, "lab/ok")
    assert await unbilled(nothing, "lab/ok")


@each("limit", [100, 5])
@each("stream", [False, True])
async def test_all_choices_of_llama_cpp_are_charged(lab: Lab, stream: bool, limit: int) -> None:
    """Two choices of 6 tokens each: a stream has a usage for each, a whole answer only that of the first choice."""
    person = await lab.person(1_000)
    usage = {"prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 11}
    texts = ("one two three four five six", "six five four three two one")
    said = [{"index": place, "message": {"content": text}, "finish_reason": "stop"} for place, text in enumerate(texts)]
    lab.script.completion, lab.script.chunks = {"choices": said, "usage": usage}, []
    lab.script.chunks += [
        {"choices": [{"index": place, "delta": {"content": text}}]} for place, text in enumerate(texts)
    ]
    for place in (1, 0):
        end = {"index": place, "delta": {}, "finish_reason": "stop"}
        lab.script.chunks += [{"choices": [end]}, {"choices": [], "usage": usage}]
    assert (await lab.chat(person, "lab/ok", stream, n=2, max_tokens=limit)).status_code == 200
    (debit,) = await lab.debits(person)
    assert (debit["input_tokens"], debit["output_tokens"]) == (5, 12)
    assert -debit["amount_micros"] == 5 + 2 * 12 <= lab.holds(person)[-1]


def _counted(counts: tuple[int, int] | None) -> dict[str, int] | None:
    return counts and {"prompt_tokens": counts[0], "completion_tokens": counts[1]}


@pytest.mark.parametrize("stream", [False, True])
async def test_cost_above_the_hold_is_counted_as_overrun(lab: Lab, stream: bool) -> None:
    person = await lab.person(1_000)
    lab.script.completion, lab.script.chunks = spoken({"prompt_tokens": 5, "completion_tokens": 1_000})
    assert (await lab.chat(person, "lab/ok", stream, max_tokens=100)).status_code == 200
    hold = hello_hold(stream)
    assert await lab.balance(person) == 1_000 - hold
    (line,) = await logged(lab.service.log_lines, route=COMPLETIONS)
    assert (line["cost_micros"], line["overrun_micros"]) == (hold, 2_005 - hold)


# --- the formulas, written a second time

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
PARTS = st.lists(st.one_of(TEXTS.map(lambda text: {"type": "text", "text": text}), st.just(IMAGE)), max_size=3)
COUNTS = st.one_of(st.none(), st.integers(0, 400), st.integers(0, 10**9))


def due_hold(prices: tuple[int, int], body: dict[str, Any], limit: int, n: int, micros: int) -> tuple[int, int] | None:
    """The hold in micros and the limit sent upstream; None for 402."""
    parts = [
        part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]
    ]
    pictures = parts.count(IMAGE)
    tokens = most_tokens(body) + pictures * (8192 - len(IMAGE["image_url"]["url"]))

    def cost(output: int) -> int:
        return math.ceil(Fraction(tokens * prices[0] + output * prices[1], 10**6))

    if cost(limit * n) <= micros:
        return cost(limit * n), limit
    fitting = [output for output in range(16, limit) if cost(output * n) <= micros]
    return (cost(fitting[-1] * n), fitting[-1]) if fitting else None


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    name=st.sampled_from([name for name in PRICES if name not in ("free", "")]),
    contents=st.lists(st.one_of(TEXTS, PARTS), min_size=1, max_size=3),
    limit=st.one_of(st.none(), st.integers(1, 300)),
    n=st.one_of(st.none(), st.integers(1, 4)),
    micros=st.one_of(st.integers(1, 1_500), st.integers(1, 60_000), st.just(10**15)),
    counts=st.tuples(COUNTS, COUNTS),
    stream=st.booleans(),
)
async def test_hold_and_debit_follow_their_formulas(
    lab: Lab,
    name: str,
    contents: list[Any],
    limit: int | None,
    n: int | None,
    micros: int,
    counts: tuple[int | None, int | None],
    stream: bool,
) -> None:
    lab.service.clocks.advance(1)  # hypothesis repeats the random numbers, and an id is made of one and the time
    person = await lab.person(micros)
    messages = [{"role": "user", "content": content} for content in contents]
    fields = {key: value for key, value in (("max_tokens", limit), ("n", n)) if value is not None}
    usage = {
        key: count
        for key, count in zip(("prompt_tokens", "completion_tokens"), counts, strict=True)
        if count is not None
    }
    lab.script.completion, lab.script.chunks = spoken(usage)
    asked_before = len(lab.upstream.requests)
    answer = await lab.chat(person, f"lab/ok+{name}", stream, messages=messages, **fields)
    body = sent(f"lab/ok+{name}", stream, messages=messages, **fields)
    due = due_hold(PRICES[name], body, limit or 4096, n or 1, micros)
    if due is None:
        assert answer.status_code == 402 and len(lab.upstream.requests) == asked_before and lab.holds(person) == []
        return
    assert answer.status_code == 200, answer.text
    assert lab.holds(person) == ([due[0]] if due[0] else []) and lab.upstream.requests[-1].body["max_tokens"] == due[1]
    text = sum(
        len(content.encode())
        if isinstance(content, str)
        else sum(len(part.get("text", "").encode()) for part in content)
        for content in contents
    )
    tokens = (
        math.ceil(text / 4) if counts[0] is None else counts[0],
        math.ceil(13 / 4) if counts[1] is None else counts[1],
    )
    cost = math.ceil(Fraction(sum(count * price for count, price in zip(tokens, PRICES[name], strict=True)), 10**6))
    assert micros - await lab.balance(person) == min(due[0], cost)


# --- many at once


@pytest.mark.parametrize("served", [0, 1, 5])
async def test_funds_for_k_pay_exactly_k_of_200_concurrent_requests(lab: Lab, served: int) -> None:
    hold = most_tokens(sent("lab/ok+in", True, messages=[SYSTEM, USER]))
    person = await lab.person((served + 1) * hold - 1)
    lab.script.completion, lab.script.chunks = spoken({"prompt_tokens": 10**9})  # so that each costs all that it held

    async def one(number: int) -> httpx.Response:
        if KINDS[number % 3] == "run":
            return await lab.run(person, "lab/ok+in")
        stream = True if KINDS[number % 3] == "stream" else None  # as large as a stream's
        options = {"include_usage": True}
        return await lab.chat(person, "lab/ok+in", stream, messages=[SYSTEM, USER], stream_options=options)

    answers = await asyncio.gather(*(one(number) for number in range(200)))
    assert sorted(answer.status_code for answer in answers) == [200] * served + [402] * (200 - served)
    assert len(lab.upstream.requests) == len(await lab.debits(person)) == served
    assert await lab.balance(person) == hold - 1


@each("served", [0, 1, 5])
async def test_funds_for_k_pay_exactly_k_of_200_concurrent_built_in_calls(lab: Lab, served: int) -> None:
    fields = {"messages": [{"role": "user", "content": "9**900"}], "max_tokens": 200}
    rich = await lab.person(1_000)
    assert (await lab.chat(rich, "builtin/assistant-paid", **fields)).status_code == 200
    (hold,), cost = lab.holds(rich), 1_000 - await lab.balance(rich)
    assert (
        served * (hold - cost) < hold
    )  # what is left of k holds is no further one: together or one by one, k are served
    person = await lab.person(served * hold)
    answers = await asyncio.gather(
        *(lab.chat(person, "builtin/assistant-paid", number % 2 == 0, **fields) for number in range(200))
    )
    debits = await lab.debits(person)
    # One that comes after others have ended gets what is left, for fewer tokens.
    whole = [debit for debit in debits if debit["output_tokens"] == 200]
    assert len(whole) == served and all(debit["amount_micros"] == -cost for debit in whole)
    assert sorted(answer.status_code for answer in answers) == [200] * len(debits) + [402] * (200 - len(debits))
    assert await lab.balance(person) == served * hold + sum(debit["amount_micros"] for debit in debits) >= 0


async def test_concurrent_calls_never_overdraw_the_wallet(lab: Lab) -> None:
    person = await lab.person(30_000)
    models = (
        "lab/ok",
        "builtin/assistant-paid",
        "lab/no-usage",
        "lab/tools",
        "lab/cut-after-2-chunks",
        "lab/fail-once",
    )
    await asyncio.gather(
        *(lab.ask(KINDS[number % 3], person, models[number % 6 - number % 2]) for number in range(200))
    )
    spent = -sum(debit["amount_micros"] for debit in await lab.debits(person))
    assert 0 < spent == 30_000 - await lab.balance(person) <= 30_000


# --- every way to end


@pytest.mark.slow
@each("kind", KINDS)
@each(
    "model",
    ["status-400", "status-500", "refuse-429", "silent", "cut-head", "html-200", "error-200", "cut-after-1-chunks"],
)
async def test_error_without_output_costs_nothing(lab: Lab, model: str, kind: str) -> None:
    person = await lab.person(100_000)
    answer = await lab.ask(kind, person, f"lab/{model}")
    if model == "cut-after-1-chunks" and kind == "json":
        return  # chunks are a stream's
    if answer.status_code == 200:
        assert any("error" in event for event in events(answer) if event != "[DONE]")
    assert await lab.balance(person) == 100_000 and len(lab.holds(person)) == 1 and await lab.debits(person) == []


@each(
    ("model", "produced"),
    [
        ("error-mid-stream", "Hello"),
        ("cut-after-2-chunks", "Hello"),
        ("reset-after-3-chunks", "Hello, "),
        ("silent-after-3-chunks", "Hello, "),
        ("broken-json", "Hello"),
    ],
)
@each("kind", ["stream", "run"])
async def test_fault_in_mid_stream_charges_only_the_output_so_far(
    lab: Lab, model: str, produced: str, kind: str
) -> None:
    person = await lab.person(100_000)
    found = events(await lab.ask(kind, person, f"lab/{model}"))
    assert any("error" in event for event in found if event != "[DONE]")
    (debit,) = await lab.debits(person)
    assert (debit["input_tokens"], debit["output_tokens"]) == (0, math.ceil(len(produced) / 4))
    assert -debit["amount_micros"] == 2 * math.ceil(len(produced) / 4)


@each("stream", [False, True])
async def test_answer_without_usage_is_charged_by_estimate(lab: Lab, stream: bool) -> None:
    person = await lab.person(100_000)
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "integer", "maximum": 2**64}}}
    assert (await lab.chat(person, "lab/no-usage", stream, tools=[tool])).status_code == 200
    (debit,) = await lab.debits(person)
    assert debit["input_tokens"] == math.ceil((5 + len(json.dumps([tool], separators=(",", ":")))) / 4)
    assert await lab.balance(person) == 100_000 + debit["amount_micros"]


@each(
    ("counts", "charged"),
    [((7, 5), 10), ((0, 0), 2 * 3), ((7, 0), 2 * 3), ((7, 1), 2 * 3), (None, 2 * 3)],
)
async def test_usage_before_the_end_is_at_least_the_estimate(
    lab: Lab, counts: tuple[int, int] | None, charged: int
) -> None:
    person = await lab.person(1_000)
    deltas = [
        {"choices": [{"index": 0, "delta": {"content": text}}], "usage": _counted(counts)}
        for text in ("Hello, ", "wor")
    ]
    lab.script.chunks = [*deltas, {"error": {"message": "fell over"}}]
    assert "error" in events(await lab.chat(person, "lab/ok", stream=True))[-2]
    assert await lab.balance(person) == 1_000 - charged


@pytest.mark.parametrize("kind", KINDS)
async def test_retry_is_one_hold_and_one_debit(lab: Lab, kind: str) -> None:
    person = await lab.person(100_000)
    assert (await lab.ask(kind, person, "lab/fail-once")).status_code == 200
    assert [seen.model for seen in lab.upstream.requests] == ["fail-once"] * 2
    assert len(lab.holds(person)) == 1 and await lab.balance(person) == 100_000 - 17


@each(("to", "cost"), [("cheap", math.ceil(17 / 10)), ("free", 0), ("dear", None)])
@each("kind", KINDS)
async def test_fallback_is_charged_at_its_own_lower_price(lab: Lab, to: str, cost: int | None, kind: str) -> None:
    lab.upstream.requests.clear()
    person = await lab.person(100_000)
    answer = await lab.ask(kind, person, f"lab/status-503+to-{to}")
    used = (await lab.get(person, "/billing/usage"))["data"]
    if cost is None:
        assert len(lab.upstream.requests) == 2 and await lab.balance(person) == 100_000
        return
    assert answer.status_code == 200 and lab.upstream.requests[-1].model == f"ok+{to}"
    assert await lab.balance(person) == 100_000 - cost
    assert kind != "json" or answer.headers["x-service-cost-micros"] == str(cost)
    assert [(row["model"], row["requests"], row["cost_micros"]) for row in used] == [(f"lab/ok+{to}", 1, cost)]
    assert [debit["model"] for debit in await lab.debits(person)] == ([f"lab/ok+{to}"] if cost else [])


# --- once, and only if it can be written


async def a_paid_call(lab: Lab, person: Person, model_id: str = "lab/ok", **fields: Any) -> chat_call.ChatCall:
    model = await lab.service.state["engines"].catalog.find(model_id)
    body = {"model": model_id, "messages": [USER], **fields}
    return chat_call.ChatCall(model, body, lab.service.state["engines"], Payer(person.account_id, "req_1", None, None))


async def test_canceled_or_repeated_settlement_is_one_debit(lab: Lab) -> None:
    person = await lab.person(1_000)
    for turns in range(6):
        call = await a_paid_call(lab, person)
        await call.reserve()
        await call.complete()
        settling = asyncio.create_task(call.end())
        for _ in range(turns):
            await asyncio.sleep(0)
        settling.cancel()
        await asyncio.gather(settling, return_exceptions=True)
        # As an agent run does whose turn was cut off in its settlement.
        await call.end_with(lambda tx: None)
        await call.end()
        assert call.cost_micros == 17 and await lab.balance(person) == 1_000 - 17 * (turns + 1)
    (used,) = (await lab.get(person, "/billing/usage"))["data"]
    assert (used["requests"], used["cost_micros"]) == (6, 6 * 17)


@each(("leaving", "charged"), [(ClientGone, 2 + 2 * 4), (asyncio.CancelledError, 2 * 4)])
async def test_early_end_after_the_text_without_usage_charges_the_estimate(
    lab: Lab, leaving: type[BaseException], charged: int
) -> None:
    person = await lab.person(1_000)
    call = await a_paid_call(lab, person, "lab/silent-after-7-chunks", stream=True)
    with pytest.raises(leaving):
        async with call:
            answer = call.stream()
            while not call.chunk_writer.finished:
                await anext(answer)
            await answer.athrow(leaving())
    await asyncio.wait_for(lab.upstream.requests[-1].gone.wait(), 20)
    # "hello" and "Hello, world!", as they are estimated. A cancellation that is not the caller's leaves out the input.
    assert await lab.balance(person) == 1_000 - charged


@each(("first", "charged"), [(True, 2 + 2 * 4), (False, 2 * 4)])
async def test_who_ended_a_call_first_decides_what_it_costs(lab: Lab, first: bool, charged: int) -> None:
    """A disconnect before a shutdown pays for the input, and one after it does not."""
    person = await lab.person(1_000)
    call = await a_paid_call(lab, person, "lab/silent-after-7-chunks", stream=True)
    async with call:
        answer = call.stream()
        while not call.chunk_writer.finished:
            await anext(answer)
        call.note_early_end(of_caller=first)
        call.note_early_end(of_caller=not first)
        await answer.aclose()
    assert await lab.balance(person) == 1_000 - charged


@each("scheme", ["http", "https"])
async def test_disconnected_client_pays_for_the_input_only_if_it_was_sent(lab: Lab, scheme: str) -> None:
    came = asyncio.Event()

    async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        came.set()
        await reader.read()
        writer.close()

    person = await lab.person(1_000)
    async with await asyncio.start_server(stay_silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        model = await lab.service.state["engines"].catalog.find("lab/ok")
        assert model.provider is not None
        # Over https the server does not answer the handshake, so that there is never a connection.
        provider = dataclasses.replace(model.provider, base_url=f"{scheme}://127.0.0.1:{port}/v1", timeout_seconds=30)
        payer = Payer(person.account_id, "req_1", None, None)
        body = {"model": "lab/ok", "messages": [USER]}
        call = chat_call.ChatCall(
            dataclasses.replace(model, provider=provider), body, lab.service.state["engines"], payer
        )

        context = Context({}, account_id=person.account_id)

        async def ask() -> None:
            async with call:
                with Interrupt().over(context, Drain()):
                    await call.complete()

        asking = asyncio.create_task(ask())
        await asyncio.wait_for(came.wait(), 5)
        context.disconnect()
        await asyncio.gather(asking, return_exceptions=True)
    assert await lab.balance(person) == 1_000 - (2 if scheme == "http" else 0)


async def test_hold_of_a_canceled_reservation_is_released(lab: Lab) -> None:
    person = await lab.person(1_000)
    for turns in range(6):
        call = await a_paid_call(lab, person)
        reserving = asyncio.create_task(call.reserve())
        for _ in range(turns):
            await asyncio.sleep(0)
        reserving.cancel()
        await asyncio.gather(reserving, return_exceptions=True)
        await call.end()
        assert await lab.balance(person) == 1_000


@pytest.mark.parametrize("kind", KINDS)
async def test_settlement_on_a_full_disk_is_an_error_and_written_later(lab: Lab, kind: str) -> None:
    person = await lab.person(100_000)
    asking = asyncio.create_task(lab.ask(kind, person, "lab/waits"))
    await until(lambda: lab.upstream.waiting)
    with full_disk():
        lab.upstream.release.set()
        answer = await hastened(asking)
        refused = await lab.ask(kind, person, "lab/ok")
        held = (await lab.get(person, "/billing/account"))["held_micros"]
    assert (refused.status_code, refused.json()["error"]["code"], len(lab.upstream.requests)) == (
        503,
        "storage_unavailable",
        1,
    )
    assert held == lab.holds(person)[0]
    if kind == "json":
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "storage_unavailable")
        assert "x-service-cost-micros" not in answer.headers
    else:
        last = events(answer)[-1 if kind == "run" else -2]
        assert last["error"]["code"] == "storage_unavailable"
    advance_loop(2)  # then it is stored
    await lab.settled(person)
    # A client that got the text pays for the output. An error instead of it costs nothing.
    assert await lab.balance(person) == 100_000 - (0 if kind == "json" else 10)
    assert len(lab.holds(person)) == 1


async def test_account_deleted_during_a_call_loses_its_hold(lab: Lab) -> None:
    person = await lab.person(100_000)
    asking = asyncio.create_task(lab.chat(person, "lab/waits"))
    await until(lambda: lab.upstream.waiting)
    await lab.service.state["db"].write(
        lambda tx: tx.execute("DELETE FROM accounts WHERE id = ?", (person.account_id,))
    )
    lab.upstream.release.set()
    assert (await asking).headers["x-service-cost-micros"] == "0"
    assert rows(lab.database, "SELECT count(*) FROM holds") == [(0,)]
    assert rows(lab.database, "SELECT amount_micros FROM ledger ORDER BY seq") == [(100_000,)]
