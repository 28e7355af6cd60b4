"""Three formats of callers in front of three formats of model servers: every cell says and costs the same."""

import contextlib
import itertools
import json
import random
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from svc.billing import wallet
from svc.config import Config
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.cases import each
from tests.support.format_events import APIS, Said
from tests.support.format_server import FormatServer, cassette
from tests.support.late_imports import import_late
from tests.support.money import assert_exact, rows
from tests.support.sdk_types import checked_answer, checked_event, checked_request

Json = dict[str, Any]
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
CELLS = list(itertools.product(APIS, APIS))  # the caller's format, and the server's
PRICES = """
input_micros_per_million_tokens = 3_000_000
output_micros_per_million_tokens = 15_000_000
cached_input_micros_per_million_tokens = 300_000
cache_write_micros_per_million_tokens = 3_750_000
context_length = 100_000
"""
# The recordings that every format has.
SAME = ("text", "reasoning", "parallel_tools", "length", "cached", "structured")
# In these the formats differ.
OTHERS = ("refusal", "redacted", "stop_sequence", "cut", "error_middle", "error_before", "too_long", "overloaded")
TOOL = {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}, "strict": False}


@dataclass
class Lab:
    service: Service
    server: FormatServer
    headers: dict[str, str]

    async def ask(self, caller: str, server: str, model: str, **more: Any) -> Any:
        self.service.clocks.advance(10)  # for the rate limit
        body = {"model": f"{server}/{model}", **request_of(caller), **more}
        return await self.service.client.post(PATHS[caller], json=body, headers=self.headers)

    def charged(self) -> int:
        """Return the micros of all calls so far."""
        query = "SELECT coalesce(-sum(amount_micros), 0) FROM ledger WHERE amount_micros < 0"
        ((micros,),) = rows(self.service.config.data_dir / "service.db", query)
        return int(micros)


@pytest.fixture
async def lab(config: Config, clocks: Clocks) -> AsyncIterator[Lab]:
    names = ("said-one", "script", *(f"cassette-{name}" for name in (*SAME, *OTHERS)))
    models = "".join(f"[[providers.models]]\nid = '{name}'\n{PRICES}" for name in names)
    async with FormatServer() as server:
        providers = (
            f"[[providers]]\nname = '{api}'\napi = '{api}'\nbase_url = '{server.base_url}'\n{models}" for api in APIS
        )
        async with serving(config, clocks, "".join(providers)) as service:
            session = await service.sign_up()
            await service.state["db"].write(
                wallet.book, session["user"]["id"], 10**9, description="", now_seconds=clocks.now
            )
            key = await service.make_key(bearer(session["access_token"]))
            yield Lab(service, server, bearer(key["key"]))


def request_of(caller: str) -> Json:
    """Return a request that shows all that an answer may hold."""
    function = {"type": "function", "function": TOOL}
    if caller == "chat":
        return {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 500, "tools": [function]}
    if caller == "responses":
        return {
            "input": "Hi",
            "max_output_tokens": 500,
            "tools": [{"type": "function", **TOOL}],
            "reasoning": {"summary": "auto"},
        }
    tool = {"input_schema" if name == "parameters" else name: value for name, value in TOOL.items()}
    messages = [{"role": "user", "content": "Hi"}]
    return {"messages": messages, "max_tokens": 500, "tools": [tool], "thinking": {"type": "adaptive"}}


# --- what an answer says, whatever its format


@dataclass
class Heard:
    text: str = ""
    thought: str = ""
    refusal: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: str | None = None
    usage: tuple[int, ...] = ()  # all input, of it cached and written, and output


def heard(caller: str, document: Json) -> Heard:
    return {"chat": _of_chat, "responses": _of_response, "messages": _of_message}[caller](document)


def _of_chat(document: Json) -> Heard:
    choice, usage = document["choices"][0], document["usage"]
    message = choice["message"]
    details = usage.get("prompt_tokens_details") or {}
    return Heard(
        message["content"] or "",
        message.get("reasoning_content") or "",
        message.get("refusal") or "",
        tuple((call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ()),
        choice["finish_reason"],
        (usage["prompt_tokens"], *_cached(details), usage["completion_tokens"]),
    )


def _cached(details: Json) -> tuple[int, int]:
    return details.get("cached_tokens") or 0, details.get("cache_write_tokens") or 0


def _of_response(document: Json) -> Heard:
    found = Heard()
    for item in document["output"]:
        if item["type"] == "reasoning":
            parts = item["summary"] or item.get("content") or []
            found.thought += "".join(part["text"] for part in parts)
        elif item["type"] == "function_call":
            found.calls += ((item["name"], item["arguments"]),)
        for part in item["content"] if item["type"] == "message" else ():
            found.text += part.get("text", "")
            found.refusal += part.get("refusal", "")
    usage = document["usage"]
    details = _cached(usage.get("input_tokens_details") or {})
    found.usage = (usage["input_tokens"], *details, usage["output_tokens"])
    reasons = {"max_output_tokens": "length", "content_filter": "content_filter"}
    found.finish = reasons.get(
        (document.get("incomplete_details") or {}).get("reason"), "tool_calls" if found.calls else "stop"
    )
    return found


def _of_message(document: Json) -> Heard:
    found = Heard()
    for block in document["content"]:
        found.text += block.get("text", "")
        found.thought += block.get("thinking", "")
        if block["type"] == "tool_use":
            found.calls += ((block["name"], block.get("arguments") or json.dumps(block["input"])),)
    reasons = {"max_tokens": "length", "tool_use": "tool_calls", "refusal": "content_filter"}
    found.finish = reasons.get(document["stop_reason"], "stop")
    usage = document["usage"]
    cached, written = usage["cache_read_input_tokens"], usage.get("cache_creation_input_tokens", 0)
    found.usage = (usage["input_tokens"] + cached + written, cached, written, usage["output_tokens"])
    return found


def events_in(content: bytes) -> Iterator[Json]:
    for block in content.decode().split("\n\n")[:-1]:
        data = block.rpartition("data: ")[2]
        if data != "[DONE]" and block != ": ping":
            yield json.loads(data)


def joined(caller: str, events: list[Json]) -> Json:
    """Return the whole answer of a stream, as the SDKs accumulate it."""
    if caller == "responses":
        whole: Json = events[-1]["response"]
        return whole
    return _joined_message(events) if caller == "messages" else _joined_chat(events)


def _joined_chat(events: list[Json]) -> Json:
    message: Json = {"content": "", "reasoning_content": "", "refusal": "", "tool_calls": []}
    finish = None
    for choice in (choice for event in events for choice in event["choices"]):
        finish = choice["finish_reason"] or finish
        for name in ("content", "reasoning_content", "refusal"):
            message[name] += choice["delta"].get(name) or ""
        for call in choice["delta"].get("tool_calls") or ():
            if call["index"] == len(message["tool_calls"]):
                message["tool_calls"].append({"function": {"name": call["function"]["name"], "arguments": ""}})
            message["tool_calls"][call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": events[-1]["usage"]}


def _joined_message(events: list[Json]) -> Json:
    whole: Json = {**events[0]["message"], "content": []}
    for event in events:
        if event["type"] == "content_block_start":
            whole["content"].append({**event["content_block"], "arguments": ""})
        elif event["type"] == "content_block_delta":
            block, delta = whole["content"][event["index"]], event["delta"]
            for name, field in (("text", "text"), ("thinking", "thinking"), ("partial_json", "arguments")):
                if name in delta:
                    block[field] += delta[name]
        elif event["type"] == "message_delta":
            whole |= event["delta"]
            whole["usage"] = {**whole["usage"], **event["usage"]}
    return whole


# --- tests


async def each_answer(lab: Lab, caller: str, server: str, name: str) -> list[tuple[Json, Heard]]:
    """Return the JSON answer and the joined stream of a recording."""
    whole = await lab.ask(caller, server, f"cassette-{name}")
    assert whole.status_code == 200, whole.text
    more = {"stream_options": {"include_usage": True}} if caller == "chat" else {}
    streamed = await lab.ask(caller, server, f"cassette-{name}", stream=True, **more)
    events = [event for event in events_in(streamed.content) if event.get("type") != "ping"]
    return [(whole.json(), heard(caller, whole.json())), ({"events": events}, heard(caller, joined(caller, events)))]


@each("name", SAME)
async def test_every_cell_says_and_costs_the_same(name: str, lab: Lab) -> None:
    wanted, costs = _of_chat(cassette(name)["chat"]["answer"]), set()
    for caller, server in CELLS:
        before = lab.charged()
        for _, found in await each_answer(lab, caller, server, name):
            assert _comparable(found) == _comparable(wanted), (caller, server)
        costs.add(lab.charged() - before)
    assert len(costs) == 1 and costs != {0}
    assert_exact(lab.service.config.data_dir / "service.db")


def _comparable(found: Heard) -> tuple[Any, ...]:
    calls = [(name, json.loads(arguments)) for name, arguments in found.calls]
    return (found.text, found.thought, found.refusal, calls, found.finish, found.usage)


@pytest.mark.slow
async def test_requests_answers_and_events_fit_the_vendors_types(lab: Lab) -> None:
    for name, (caller, server) in itertools.product(SAME, CELLS):
        for document, _ in await each_answer(lab, caller, server, name):
            for event in document.get("events", ()):
                checked_event(caller, event)
            if "events" not in document:
                checked_answer(caller, document)
        for seen in lab.server.requests:
            checked_request(server, seen.body)
        lab.server.requests.clear()


def hostile(generator: random.Random) -> tuple[Said, str]:
    """Return an answer of any kind, and how its stream ends."""
    parts: list[Json] = []
    texts = ("", "a", "Grüezi 🌍\n", "data: x\n\n", "\u2028", "x" * 300, "\\\"'<>", "日本語" * 9)
    for number in range(generator.randint(0, 5)):
        text = "".join(generator.choices(texts, k=generator.randint(0, 4)))
        call = {"call": f"call_{number}", "name": "look", "arguments": json.dumps({"a": text})}
        parts.append(generator.choice([{"text": text}, {"thought": text, "seal": ""}, call]))
    said = Said(
        parts,
        generator.choice(["stop", "length"]),
        input_tokens=generator.choice(
            [0, 7, 200]
        ),  # more than a body's bytes cost its hold, which depends on the format
        output_tokens=generator.choice([0, 1, 5, 499]),
        piece=generator.randint(1, 60),
        counted=generator.random() < 0.8,
    )
    if any("call" in part for part in parts):
        said.finish = "tool_calls"
    said.cached = generator.randint(0, said.input_tokens)
    ends = ["", f"cut-after-{generator.randint(1, 9)}-pieces", "comments", "crlf"]
    return said, generator.choice(ends)


async def play(lab: Lab, seeds: range) -> None:
    for seed in seeds:
        said, end = hostile(random.Random(seed))
        lab.server.said["one"], costs = said, {}
        lab.server.always = frozenset([end] if end else [])
        for caller, server in CELLS:
            before = lab.charged()
            answer = await lab.ask(caller, server, "said-one", stream=True)
            costs[caller, server] = (lab.charged() - before, _ended_well(caller, answer))
        assert len(set(costs.values())) == 1, (seed, end, said, costs)
    assert_exact(lab.service.config.data_dir / "service.db")


def _ended_well(caller: str, answer: Any) -> bool:
    if answer.status_code != 200:
        return False
    last = {"chat": b'"finish_reason":"', "responses": b"event: response.failed", "messages": b"event: error"}
    with contextlib.suppress(ValueError):
        return (last[caller] in answer.content) == (caller == "chat")
    return False


async def test_hostile_streams_cost_the_same_in_every_cell(lab: Lab) -> None:
    await play(lab, range(10))


@pytest.mark.slow
@pytest.mark.parametrize("last", [20, pytest.param(90, marks=pytest.mark.soak)])
async def test_many_hostile_streams_cost_the_same_in_every_cell(lab: Lab, last: int) -> None:
    await play(lab, range(10, last))


# --- faults, in the caller's own form


def error_in(caller: str, content: bytes) -> Json:
    """Return the error that ends a stream. Nothing but `[DONE]` follows it."""
    last = list(events_in(content))[-1]
    error: Json = last["response"]["error"] if caller == "responses" and "response" in last else last.get("error", last)
    if caller == "messages":
        assert content.rpartition(b"event: ")[2].startswith(b"error\n")
    return error


@each("name", ["cut", "error_middle"])
async def test_stream_that_breaks_never_looks_finished(name: str, lab: Lab) -> None:
    for caller, server in CELLS:
        answer = await lab.ask(caller, server, f"cassette-{name}", stream=True)
        assert answer.status_code == 200, (caller, server)
        error = error_in(caller, answer.content)
        assert error.get("message"), (caller, server)
        told = (b'"finish_reason":"', b"response.completed", b"message_stop", b"response.incomplete")
        assert not any(word in answer.content for word in told), (caller, server)
        if caller == "messages":
            assert error["type"] in ("api_error", "overloaded_error")


async def test_stream_that_breaks_after_a_whole_item_has_an_error(lab: Lab) -> None:
    lab.server.said["one"] = Said([{"text": "Grüezi 🌍"}, {"text": "mitenand"}])
    lab.server.always = frozenset(["cut-after-3-pieces"])
    for caller, server in CELLS:
        answer = await lab.ask(caller, server, "said-one", stream=True)
        error = error_in(caller, answer.content)
        assert "was cut off before its end" in error["message"], (caller, server)


async def test_refusal_of_the_server_keeps_its_words(lab: Lab) -> None:
    for caller, server in CELLS:
        answer = await lab.ask(caller, server, "cassette-error_before")
        assert answer.status_code == 400, (caller, server)
        assert "temperature" in answer.json()["error"]["message"]
        assert (answer.json().get("type") == "error") == (caller == "messages")


async def test_too_long_a_prompt_has_the_code_of_the_callers_format(lab: Lab) -> None:
    for caller, server in CELLS:
        answer = await lab.ask(caller, server, "cassette-too_long")
        assert answer.status_code == 400, (caller, server)
        error = answer.json()["error"]
        if caller == "messages":
            assert error["type"] == "invalid_request_error"
            assert re.match(r"prompt is too long: \d+ tokens > \d+ maximum", error["message"]), (server, error)
        else:
            assert error["code"] == "context_length_exceeded", (caller, server)


async def test_thread_is_refused_in_the_form_after_which_the_sdk_sends_everything(lab: Lab) -> None:
    for server, state in itertools.product(
        APIS, ({"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"})
    ):
        answer = await lab.ask("messages", server, "cassette-text", thread=state)
        assert answer.status_code == 400 and answer.json()["error"]["type"] == "invalid_request_error"
        details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
        assert answer.json()["error"]["details"] == details
    assert lab.server.requests == []


@pytest.mark.slow
async def test_tool_runner_of_anthropics_sdk_goes_on_without_a_thread(lab: Lab) -> None:
    import_late("anthropic")
    import httpx2
    from anthropic import AsyncAnthropic, beta_async_tool

    seen: list[str] = []

    @beta_async_tool
    async def look(place: str) -> str:
        """Look."""
        seen.append(place)
        return "7"

    token = lab.headers["authorization"].removeprefix("Bearer ")
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(lab.service.app))
    sdk = AsyncAnthropic(base_url=lab.service.config.base_url, auth_token=token, http_client=http, max_retries=0)
    steps = ('tool look {"place": "a"}\ntool look {"place": "b"}', 'tool look {"place": "c"}', "say It is 7.")
    for server in APIS:
        lab.service.clocks.advance(60)
        script = "\n---\n".join(steps)
        runner = sdk.beta.messages.tool_runner(
            model=f"{server}/script", max_tokens=100, tools=[look], messages=[{"role": "user", "content": script}]
        )
        last = [step async for step in runner][-1]
        assert last.content[-1].type == "text" and last.content[-1].text == "It is 7.", server
    assert sorted(seen) == sorted([*"abc"] * 3)


async def test_other_state_of_the_sdk_is_ignored(lab: Lab) -> None:
    """A container is one of a vendor's own tools, and diagnostics compare a prompt with an earlier one."""
    state = {"container": "container_1", "diagnostics": {"previous_message_id": "msg_1"}}
    for server in APIS:
        answer = await lab.ask("messages", server, "cassette-text", **state)
        assert answer.status_code == 200, (server, answer.text)
        assert state.keys().isdisjoint(lab.server.requests[-1].body)


async def test_error_about_the_stops_names_the_callers_field(lab: Lab) -> None:
    lab.server.always, stops = frozenset(["quotes"]), ["1", "2", "3", "4", "5"]
    own, names = {"chat": "stop", "messages": "stop_sequences"}, {"chat": "stop", "messages": "stop_sequences"}
    for caller, server in itertools.product(own, names):
        lab.server.requests.clear()
        words = f"SAY:Invalid '{names[server]}': array too long. Expected at most 4 items.|{names[server]}"
        body = {"messages": [{"role": "user", "content": words}], own[caller]: stops}
        answer = await lab.ask(caller, server, "said-one", **body)
        error = answer.json()["error"]
        assert answer.status_code == 400, (caller, server)
        assert error["message"] == f"Invalid '{own[caller]}': array too long. Expected at most 4 items."
        assert error.get("param") in (own[caller], None)  # an error of Messages has no place for it
        assert lab.server.requests[-1].body[names[server]] == stops
