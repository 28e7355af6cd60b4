"""Prompt caches of model servers: the marks and prefixes that they get, and what cached input costs."""

import asyncio
import csv
import dataclasses
import io
import itertools
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.billing import wallet
from svc.config import Config
from svc.inference import cache_marks
from svc.inference.catalog import Model, Provider
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.support.cases import each
from tests.support.late_imports import import_late
from tests.support.model_answers import Wanted
from tests.support.model_server import ModelServer

COMPLETIONS, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
PRICES = "input_micros_per_million_tokens = 3_000_000\noutput_micros_per_million_tokens = 15_000_000\n"
CACHED = "cached_input_micros_per_million_tokens = 300_000\ncache_write_micros_per_million_tokens = 3_750_000\n"
HOUR = "cache_write_1h_micros_per_million_tokens = 6_000_000\n"
MARKED = "cache_control = true\n"
MODELS = {
    "hour": PRICES + CACHED + HOUR + MARKED,
    "five-minutes": PRICES + CACHED + MARKED,
    "priced": PRICES + CACHED + HOUR,
    "plain": PRICES,
    "free": "",
    "free-marked": MARKED,
    "status-503+to-plain": PRICES + MARKED + 'fallback = "lab/plain"\n',
    "status-503+to-free": MARKED + 'fallback = "lab/free"\n',
}
USAGE = {"prompt_tokens": 1250, "completion_tokens": 10, "total_tokens": 1260}
HIT = {**USAGE, "prompt_tokens_details": {"cached_tokens": 1200}}
WRITTEN = {
    **USAGE,
    "cache_read_input_tokens": 700,
    "cache_creation_input_tokens": 500,
    "cache_creation": {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 200},
}
MARK, HOUR_MARK = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
LONG = "A question of some length. " * 60


@dataclass
class Lab:
    """The service in front of `upstream`, which reports `usage`, and an account with 10 dollars."""

    service: Service
    upstream: ModelServer
    session: dict[str, str]
    key: dict[str, str]
    email: str
    usage: list[dict[str, Any]]

    async def chat(self, model: str = "lab/hour", by: str = COMPLETIONS, **fields: Any) -> httpx.Response:
        sent = {"messages": [{"role": "user", "content": LONG}], "max_tokens": 100}
        if by == RESPONSES:
            sent = {"input": LONG, "max_output_tokens": 100}
        answer = await self.service.client.post(by, json={"model": model, **sent, **fields}, headers=self.key)
        assert answer.status_code == 200, answer.text
        return answer

    async def get(self, path: str) -> Any:
        answer = await self.service.client.get(path, headers=self.key)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def debit(self) -> dict[str, Any]:
        newest: dict[str, Any] = (await self.get("/billing/ledger?limit=1"))["data"][0]
        return newest

    async def next_day(self) -> None:
        """Advance the clock by 25 hours, and sign in again."""
        self.service.clocks.advance(90_000)
        answer = await self.service.client.post("/auth/login", json={"email": self.email, "password": PASSWORD})
        self.session |= bearer(answer.json()["access_token"])

    @property
    def sent(self) -> dict[str, Any]:
        body: dict[str, Any] = self.upstream.requests[-1].body
        return body


@pytest.fixture
async def lab(config: Config, clocks: Clocks, tmp_path: Path) -> AsyncIterator[Lab]:
    reported = [USAGE]

    class Answers(Wanted):
        def usage(self) -> dict[str, Any]:
            return reported[0]

    async with ModelServer(answers=Answers) as upstream:
        models = "".join(f'[[providers.models]]\nid = "{name}"\n{entries}' for name, entries in MODELS.items())
        catalog = f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\n{models}'
        async with serving(dataclasses.replace(config, byok_private=True), clocks, catalog) as service:
            signed_up = await service.sign_up()
            session = bearer(signed_up["access_token"])
            book = (signed_up["user"]["id"], 10_000_000)
            await service.state["db"].write(wallet.book, *book, description="Funds", now_seconds=clocks.now)
            key = bearer((await service.make_key(session))["key"])
            lab = Lab(service, upstream, session, key, signed_up["user"]["email"], reported)
            yield lab


def sent_events(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    for block in answer.text.split("\n\n"):
        data = block.partition("data: ")[2]
        if data and data != "[DONE]":
            yield orjson.loads(data)


# --- what it costs


async def test_cached_input_costs_its_own_price(lab: Lab) -> None:
    """The example of the issue: 1,200 of 1,250 input tokens are cached."""
    costs = {}
    for model, usage in (("lab/plain", HIT), ("lab/priced", HIT), ("lab/priced", USAGE), ("lab/hour", WRITTEN)):
        lab.usage[0] = usage
        answer = await lab.chat(model)
        debit = await lab.debit()
        assert answer.headers["x-service-cost-micros"] == str(-debit["amount_micros"])
        costs[model, debit["cached_input_tokens"]] = -debit["amount_micros"]
    assert costs == {
        ("lab/plain", 1200): 3_900,
        ("lab/priced", 1200): 660,
        ("lab/priced", 0): 3_900,
        ("lab/hour", 700): 150 + 3 * 50 + 210 + 1_125 + 1_200,  # output, fresh, cached, written, for an hour
    }


@each("stream", [False, True])
@each("by", [COMPLETIONS, RESPONSES, MESSAGES])
async def test_settlement_and_answer_have_the_same_counts_in_each_format(lab: Lab, by: str, stream: bool) -> None:
    lab.usage[0] = WRITTEN
    options = {"stream_options": {"include_usage": True}} if by == COMPLETIONS else {}
    answer = await lab.chat("lab/hour", by, stream=stream, **options)
    events = [*sent_events(answer)] if stream else []
    shown = next(reversed([*filter(None, (_usage_of(event) for event in events))]), None) or answer.json()["usage"]
    debit = await lab.debit()
    assert (debit["input_tokens"], debit["cached_input_tokens"], -debit["amount_micros"]) == (1250, 700, 2_835)
    assert debit["description"] == "lab/hour: 1250 input (700 cached) and 10 output tokens"
    if by == COMPLETIONS:
        assert shown["prompt_tokens"] == 1250
        assert shown["prompt_tokens_details"] == {"cached_tokens": 700, "cache_write_tokens": 500}
    elif by == RESPONSES:
        assert shown["input_tokens"] == 1250
        assert shown["input_tokens_details"] == {"cached_tokens": 700, "cache_write_tokens": 500}
    else:
        assert shown["input_tokens"] == 50 and shown["cache_read_input_tokens"] == 700
        assert shown["cache_creation_input_tokens"] == 500
        assert shown["cache_creation"] == {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 200}
    _fits_the_sdk(by, shown)
    if by == MESSAGES and stream:
        estimate = events[0]["message"]["usage"]
        assert estimate["input_tokens"] > 100 and estimate["cache_read_input_tokens"] == 0
        assert estimate["cache_creation"] is None
        _fits_the_sdk(by, estimate)


def _usage_of(event: dict[str, Any]) -> dict[str, Any] | None:
    found: dict[str, Any] | None = event.get("usage") or (event.get("response") or {}).get("usage")
    return found


def _fits_the_sdk(by: str, usage: dict[str, Any]) -> None:
    """Validate a usage with the type of the vendor's own SDK, without conversions."""
    import_late("anthropic" if by == MESSAGES else "openai")
    if by == COMPLETIONS:
        from openai.types import CompletionUsage

        parsed = CompletionUsage.model_validate(usage, strict=True)
        assert parsed.prompt_tokens_details is not None and parsed.prompt_tokens_details.cached_tokens == 700
    elif by == RESPONSES:
        from openai.types.responses import ResponseUsage

        assert ResponseUsage.model_validate(usage, strict=True).input_tokens_details.cached_tokens == 700
    else:
        from anthropic.types import Usage

        Usage.model_validate(usage, strict=True)


async def test_hold_has_the_dearest_price_of_input(lab: Lab) -> None:
    """A model server that reports all input as written for an hour costs no more than the hold."""
    for usage in ({**USAGE, "cache_creation": {"ephemeral_1h_input_tokens": 10**9}}, HIT, USAGE):
        lab.usage[0] = usage
        await lab.chat("lab/hour", messages=[{"role": "user", "content": "x" * 1300}])
        assert "svc_overruns_total 0\n" in (await lab.service.client.get("/metrics")).text
    assert (await lab.get("/billing/account"))["held_micros"] == 0


async def test_cached_tokens_are_in_all_reports(lab: Lab) -> None:
    lab.usage[0] = HIT
    for model in ("lab/priced", "lab/priced", "lab/free"):
        await lab.chat(model)
    days = {row["model"]: row for row in (await lab.get("/billing/usage"))["data"]}
    assert {name: row["cached_input_tokens"] for name, row in days.items()} == {"lab/priced": 2400, "lab/free": 1200}
    answer = await lab.service.client.get("/billing/usage?format=csv", headers=lab.key)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = {row["model"]: row for row in csv.DictReader(io.StringIO(answer.text))}
    assert {name: dict(row) for name, row in rows.items()} == {
        name: {column: str(value) for column, value in row.items()} for name, row in days.items()
    }
    by_key = (await lab.service.client.get("/billing/usage?format=csv&by=key", headers=lab.key)).text.splitlines()
    assert by_key[0].startswith("id,day,key_id,requests,") and len(by_key) == 2
    wrong = await lab.service.client.get("/billing/usage?format=xml", headers=lab.key)
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "format")
    metrics = (await lab.service.client.get("/metrics")).text
    assert 'svc_tokens_total{provider="lab",kind="cached"} 3600\n' in metrics
    assert 'svc_tokens_total{provider="lab",kind="input"} 3750\n' in metrics
    lines: list[dict[str, Any]] = []
    while len(lines) < 3:  # a thread writes them
        await asyncio.sleep(0)
        log = (lab.service.config.data_dir.parent / "log").read_bytes().splitlines()
        lines = [line for line in map(orjson.loads, log) if line.get("route") == COMPLETIONS]
    assert [line["cached_input_tokens"] for line in lines] == [1200] * 3


async def test_answer_of_a_conversation_shows_its_cached_input_and_saving(lab: Lab) -> None:
    lab.usage[0] = HIT
    body = {"model": "lab/priced", "messages": [{"role": "user", "content": LONG}], "max_tokens": 100}
    answer = await lab.service.client.post(COMPLETIONS, json=body, headers=lab.session)
    path = f"/conversations/{answer.headers['x-service-conversation']}/messages"
    details = (await lab.get(path))["data"][0]["answer"]
    names = ("input_tokens", "cached_input_tokens", "cost_micros", "saved_micros")
    assert [details[name] for name in names] == [1250, 1200, 660, 3_240]


async def test_prices_of_cached_input_are_listed_where_they_are_set(lab: Lab) -> None:
    listed = {model["id"]: model["pricing"] for model in (await lab.get("/v1/models"))["data"]}
    required = {"input_micros_per_million_tokens": 3_000_000, "output_micros_per_million_tokens": 15_000_000}
    assert listed["lab/plain"] == required
    assert listed["lab/hour"] == {
        **required,
        "cached_input_micros_per_million_tokens": 300_000,
        "cache_write_micros_per_million_tokens": 3_750_000,
        "cache_write_1h_micros_per_million_tokens": 6_000_000,
    }


# --- marks


def marked(mark: Any) -> dict[str, Any]:
    """A chat request with a mark in each place."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "cache_control": mark}
    part = {"type": "text", "text": "hi", "cache_control": mark}
    schema = {"type": "object", "properties": {"cache_control": {"type": "string"}}}
    function = {"name": "f", "parameters": schema}
    return {
        "messages": [
            {"role": "system", "content": "be brief", "cache_control": mark},
            {"role": "user", "content": [{"type": "text", "text": "a"}, part]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": [part]},
        ],
        "tools": [
            {"type": "function", "function": function, "cache_control": mark},
            {"type": "function", "function": {**function, "name": "g", "cache_control": mark}},
        ],
    }


def marks_in(value: Any, name: str = "") -> list[Any]:
    """The marks of a request, without what a JSON schema calls so."""
    if isinstance(value, dict):
        return [
            found
            for key, item in value.items()
            if key != "properties"
            for found in ([item] if key == "cache_control" else marks_in(item, key))
        ]
    return [found for item in value for found in marks_in(item)] if isinstance(value, list) else []


PLACES = 6
SENT: list[tuple[str, Any, list[Any]]] = [
    ("lab/hour", MARK, [MARK] * PLACES),
    ("lab/hour", HOUR_MARK, [HOUR_MARK] * PLACES),
    ("lab/hour", {**MARK, "ttl": "5m"}, [{**MARK, "ttl": "5m"}] * PLACES),
    ("lab/hour", {**MARK, "ttl": "24h"}, [MARK] * PLACES),
    ("lab/five-minutes", MARK, [MARK] * PLACES),
    ("lab/five-minutes", HOUR_MARK, [MARK] * PLACES),
    ("lab/five-minutes", {**MARK, "TTL": "1h"}, [MARK] * PLACES),
    ("lab/hour", {**MARK, "Ttl": "24h"}, [MARK] * PLACES),
    ("lab/priced", HOUR_MARK, []),
    ("lab/plain", MARK, []),
    ("lab/free", HOUR_MARK, [HOUR_MARK] * PLACES),
    ("lab/free-marked", HOUR_MARK, [HOUR_MARK] * PLACES),
    ("mine/any", HOUR_MARK, [HOUR_MARK] * PLACES),
    ("lab/status-503+to-plain", MARK, []),
    ("lab/status-503+to-free", MARK, []),
]


@each(("model", "mark", "expected"), SENT)
async def test_marks_of_a_chat_reach_those_model_servers_that_may_get_them(
    lab: Lab, model: str, mark: Any, expected: list[Any]
) -> None:
    own = {"name": "mine", "base_url": lab.upstream.base_url}
    assert (await lab.service.client.post("/user/providers", json=own, headers=lab.key)).status_code in (201, 409)
    await lab.chat(model, **marked(mark))
    assert marks_in(lab.sent) == expected
    unmarked = {name: value for name, value in marked(mark)["tools"][0].items() if name != "cache_control"}
    first = {name: value for name, value in lab.sent["tools"][0].items() if name != "cache_control"}
    assert first == unmarked, "a property of a schema is no mark"


BLOCKS: dict[str, Any] = {
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: changes"},
        {"type": "text", "text": "You are brief."},
        {"type": "text", "text": "The repository is small.", "cache_control": HOUR_MARK},
    ],
    "tools": [
        {"name": "f", "input_schema": {"type": "object"}},
        {"name": "g", "input_schema": {"type": "object"}, "cache_control": MARK},
    ],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "c", "cache_control": MARK},
                {"type": "tool_use", "id": "t", "name": "f", "input": {}, "cache_control": MARK},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t", "content": "42", "cache_control": MARK},
                {"type": "text", "text": "d", "cache_control": MARK},
            ],
        },
    ],
}


async def test_marks_of_messages_keep_their_places(lab: Lab) -> None:
    await lab.chat("lab/hour", MESSAGES, **BLOCKS)
    system, first, said, result, last = lab.sent["messages"]
    assert system["content"] == [
        {"type": "text", "text": "You are brief."},
        {"type": "text", "text": "The repository is small.", "cache_control": HOUR_MARK},
    ]
    assert first["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert said["content"] == [{"type": "text", "text": "c", "cache_control": MARK}]
    assert said["tool_calls"][0]["cache_control"] == MARK
    assert result["content"] == [{"type": "text", "text": "42", "cache_control": MARK}]
    assert last["content"] == [{"type": "text", "text": "d", "cache_control": MARK}]
    assert [tool.get("cache_control") for tool in lab.sent["tools"]] == [None, MARK]


async def test_mark_of_a_whole_messages_request_is_for_its_last_block(lab: Lab) -> None:
    await lab.chat("lab/five-minutes", MESSAGES, cache_control=HOUR_MARK)
    assert lab.sent["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": LONG, "cache_control": MARK}]}
    ]
    assert "cache_control" not in lab.sent


@each("model", ["lab/priced", "lab/plain", "lab/free", "mine/any"])
async def test_messages_without_marks_are_plain_texts(lab: Lab, model: str) -> None:
    """Many chat templates accept only a string as the system message."""
    own = {"name": "mine", "base_url": lab.upstream.base_url}
    await lab.service.client.post("/user/providers", json=own, headers=lab.key)
    await lab.chat(model, MESSAGES, **BLOCKS)
    assert marks_in(lab.sent) == []
    contents = [message["content"] for message in lab.sent["messages"]]
    assert contents == ["You are brief.\n\nThe repository is small.", "a\nb", "c", "42", "d"]


JSON = st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=2) | (
    st.dictionaries(st.sampled_from(["type", "ttl", "cache_control", "x"]), inner, max_size=3)), max_leaves=4)  # fmt: skip


@given(JSON, st.booleans(), st.booleans())
def test_no_mark_reaches_a_priced_model_against_the_catalog(mark: Any, takes_marks: bool, hour: bool) -> None:
    prices = {"input_micros_per_million_tokens": 1, **({"cache_write_1h_micros_per_million_tokens": 1} if hour else {})}
    model = Model("a/m", "m", Provider("a", "http://a"), "chat", prices, cache_control=takes_marks)
    body = marked(mark)
    assert cache_marks.has_marks(body)
    for asked in (True, False):
        found = marks_in(cache_marks.for_model(body, model, asked=asked))
        times = [one["ttl"] for one in found if isinstance(one, dict) and "ttl" in one]
        assert not found or takes_marks
        assert all(time == "5m" or (hour and time == "1h") for time in times)
    assert body == marked(mark), "the caller's request is as it was"


def renamed(value: Any, name: str, holder: str = "") -> Any:
    """A request with marks under another `name`."""
    if isinstance(value, dict):
        own = holder == "properties"
        return {
            name if key == "cache_control" and not own else key: renamed(item, name, key) for key, item in value.items()
        }
    return [renamed(item, name) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("spelling", ["Cache_Control", "cacheControl", "CACHE-CONTROL"])
@pytest.mark.parametrize("takes_marks", [False, True])
def test_no_mark_reaches_a_priced_model_in_another_spelling(spelling: str, takes_marks: bool) -> None:
    model = Model(
        "a/m", "m", Provider("a", "http://a"), "chat", {"input_micros_per_million_tokens": 1}, cache_control=takes_marks
    )
    body = renamed(marked(HOUR_MARK), spelling)
    assert spelling in str(body)
    sent = cache_marks.for_model(body, model, asked=True)
    assert spelling not in str(sent)
    assert sent == cache_marks.for_model(marked(HOUR_MARK), dataclasses.replace(model, cache_control=False), asked=True)


# --- prefixes


def common(first: bytes, second: bytes) -> bytes:
    """The beginning that two requests share."""
    end = next((place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), len(first))
    return first[:end]


async def test_prefix_of_a_growing_conversation_stays_the_same(lab: Lab) -> None:
    """With memory: what is recalled for a question follows the history, and no date or id stands before it."""
    settings = {"instructions": "Call me Ada."}
    assert (await lab.service.client.patch("/user/settings", json=settings, headers=lab.session)).status_code == 200
    told = [{"role": "user", "content": "The zebra Zora eats clover in the garden of the museum."}]
    body = {"model": "lab/hour", "max_tokens": 100}
    await lab.service.client.post(COMPLETIONS, json={**body, "messages": told}, headers=lab.session)
    history: list[dict[str, Any]] = []
    conversation: dict[str, str] = {}
    before, recalled = b"", 0
    for question in ("What does the zebra Zora eat?", "And where does Zora eat her clover?", "Is the museum near?"):
        await lab.next_day()
        history.append({"role": "user", "content": question})
        answer = await lab.service.client.post(
            COMPLETIONS, json={**body, "messages": history}, headers=lab.session | conversation
        )
        assert answer.status_code == 200, answer.text
        conversation["x-service-conversation"] = answer.headers["x-service-conversation"]
        recalled += int(answer.headers["x-service-memory"])
        sent = lab.upstream.requests[-1]
        assert sent.body["messages"][0] == {"role": "system", "content": "Call me Ada."}
        assert sent.body["messages"][1:-1] == history[:-1]
        if before:
            asked = common(before, sent.raw)
            assert asked.endswith(history[-3]["content"].encode()), "all up to the end of the question before"
        history.append(answer.json()["choices"][0]["message"])
        before = sent.raw
    assert recalled >= 2


@each("by", [RESPONSES, MESSAGES])
async def test_prefix_of_a_growing_request_of_other_formats_stays_the_same(lab: Lab, by: str) -> None:
    turns: list[dict[str, Any]] = []
    before = b""
    for number in range(3):
        await lab.next_day()
        turns.append({"role": "user", "content": f"Question {number}"})
        if by == MESSAGES:
            header = {"type": "text", "text": f"x-anthropic-billing-header: cch={number}"}
            system = [header, {"type": "text", "text": "You are brief.", "cache_control": MARK}]
            answer = await lab.chat("lab/hour", by, system=system, messages=turns)
            turns.append({"role": "assistant", "content": answer.json()["content"]})
        else:
            answer = await lab.chat("lab/hour", by, instructions="You are brief.", input=turns)
            turns += answer.json()["output"]
        raw = lab.upstream.requests[-1].raw
        if before:
            end = f'Question {number - 1}"' + ("}]}" if by == MESSAGES else "}")
            assert common(before, raw).endswith(end.encode()), "all messages of the call before"
        before = raw


async def test_a_mark_that_moves_on_leaves_the_texts_as_they_were(lab: Lab) -> None:
    """Claude Code marks the last block of each request. A model server compares the texts without the marks."""
    texts = [{"type": "text", "text": text} for text in "ab"]
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "42"}
    said = [texts, [*texts, call], [result, *texts], texts, [*texts], texts, [texts[0]]]
    turns = [{"role": ("user", "assistant")[place % 2], "content": content} for place, content in enumerate(said)]
    before: list[Any] = []
    for count in (1, 3, 5, 7):
        *earlier, last = turns[:count]
        *blocks, block = last["content"]
        marked_last = {**last, "content": [*blocks, {**block, "cache_control": MARK}]}
        await lab.chat("lab/hour", MESSAGES, messages=[*earlier, marked_last], system="Be brief.")
        assert marks_in(lab.sent) == [MARK]
        sent = [_unmarked(message) for message in lab.sent["messages"]]
        assert sent[: len(before)] == before
        before = sent


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unmarked(item) for name, item in value.items() if name != "cache_control"}
    return [_unmarked(item) for item in value] if isinstance(value, list) else value


async def test_prefix_of_an_agent_run_stays_the_same(lab: Lab) -> None:
    prompts = []
    for goal in ('tool calculate {"expression": "1+1"}\n---\nsay two', "say three"):
        await lab.next_day()
        lab.upstream.requests.clear()
        body = {"goal": goal, "model": "mine/script"}
        own = {"name": "mine", "base_url": lab.upstream.base_url}
        await lab.service.client.post("/user/providers", json=own, headers=lab.session)
        assert (await lab.service.client.post("/v1/agents/run", json=body, headers=lab.session)).status_code == 200
        steps = [request.body for request in lab.upstream.requests if "messages" in request.body]
        for earlier, later in itertools.pairwise(steps):
            assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
        assert all(step["tools"] == steps[0]["tools"] for step in steps)
        assert len(steps) == 2 - len(prompts)
        prompts.append((steps[0]["messages"][0], steps[0]["tools"]))
    assert prompts[0] == prompts[1], "the planner's prompt and tools are the same on another day"
