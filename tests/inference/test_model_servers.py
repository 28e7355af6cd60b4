"""Chat through the real server and a model server that misbehaves on command."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import pytest_asyncio

from tests.support.cases import each
from tests.support.model_server import ModelServer
from tests.support.people import Person, another_person
from tests.support.server import RunningServer, running_server

pytestmark = pytest.mark.asyncio(loop_scope="module")
COMPLETIONS = "/v1/chat/completions"
MODELS = (
    *(
        "ok",
        "echo",
        "unicode",
        "tools-bare",
        "no-usage",
        "no-done",
        "status-400",
        "status-401",
        "status-404",
        "status-500",
    ),
    *(
        "fail-once",
        "refuse-429",
        "retry-after-1",
        "retry-after-30",
        "silent",
        "silent-after-2-chunks",
        "cut-after-2-chunks",
    ),
    *(
        "error-mid-stream",
        "endless",
        "quote-key",
        "broken-json",
        "html-200",
        "slow-300ms",
        "drip-100ms",
        "redirect",
        "gzip",
        "quotes",
    ),
)


def catalog(upstream: ModelServer, timeout_seconds: float = 2) -> str:
    entries = "".join(f'[[providers.models]]\nid = "{name}"\n' for name in MODELS)
    failing = ("status-503", "retry-after-60")
    fallback = "".join(f'[[providers.models]]\nid = "{name}"\nfallback = "lab/ok"\n' for name in failing)
    dear = '[[providers.models]]\nid = "status-502"\nfallback = "builtin/assistant-paid"\n'
    return (
        f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\napi_key = "sk-the-operators-secret"\n'
        f"timeout_seconds = {timeout_seconds}\n{entries}{fallback}{dear}"
    )


@dataclass
class Lab:
    """The service, in front of `upstream`, and a person who uses it."""

    server: RunningServer
    upstream: ModelServer
    person: Person
    client: httpx.AsyncClient

    async def chat(self, model: str, stream: bool = False, **fields: Any) -> httpx.Response:
        body = {"model": f"lab/{model}", "messages": [{"role": "user", "content": "hi"}], "stream": stream, **fields}
        return await self.client.post(COMPLETIONS, json=body, headers=self.person.headers)

    def events(self, answer: httpx.Response) -> list[Any]:
        assert answer.status_code == 200, answer.text
        blocks = answer.text.split("\n\n")[:-1]
        return [
            block[6:] if block == "data: [DONE]" else orjson.loads(block[6:])
            for block in blocks
            if not block.startswith(":")
        ]


@contextlib.asynccontextmanager
async def laboratory(folder: Path) -> AsyncIterator[Lab]:
    async with ModelServer() as upstream:
        (folder / "catalog.toml").write_text(catalog(upstream))
        async with running_server(folder, {"SVC_CATALOG": str(folder / "catalog.toml")}) as server:
            async with server.client(timeout=30) as client:
                yield Lab(server, upstream, await another_person(server), client)
            assert "sk-the-operators-secret" not in server.stderr()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Lab]:
    async with laboratory(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@pytest_asyncio.fixture(loop_scope="module")
async def lab(shared: Lab) -> Lab:
    """A new user of the shared server."""
    shared.upstream.requests.clear()
    return replace(shared, person=await another_person(shared.server))


@pytest_asyncio.fixture(loop_scope="module")
async def own_lab(tmp_path: Path) -> AsyncIterator[Lab]:
    """A separate server, for state, counters and shutdown."""
    async with laboratory(tmp_path) as lab:
        yield lab


async def text_of(answer: httpx.Response) -> str:
    text: str = answer.json()["choices"][0]["message"]["content"]
    return text


@each("options", [None, {"include_usage": False, "include_obfuscation": True}])
async def test_streams_request_usage_and_pass_other_fields_unchanged(lab: Lab, options: Any) -> None:
    await lab.chat("ok", stream=True, stream_options=options, top_k=5, unknown={"a": [None]}, big=2**70)
    body = lab.upstream.requests[-1].body
    assert body.pop("stream_options") == {**(options or {}), "include_usage": True}
    assert body == {
        "model": "ok",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "top_k": 5,
        "unknown": {"a": [None]},
        "big": 2**70,
    }


async def test_messages_are_passed_unchanged(lab: Lab) -> None:
    odd = {"annotations": [], "reasoning": "hm", "refusal": None, "provider_specific_fields": {"a": 1}}
    call = {
        "index": 0,
        "id": "c",
        "type": "function",
        "function": {"name": "no such: tool", "arguments": "{"},
        "extra_content": 1,
    }
    messages = [
        {"role": "user", "content": "hi", "x": 1},
        {"role": "assistant", "content": None, "tool_calls": [call], **odd},
        {"role": "tool", "tool_call_id": "c", "content": "x", "name": "f"},
    ]
    for headers in (lab.person.headers, lab.person.session_headers):
        answer = await lab.client.post(COMPLETIONS, json={"model": "lab/ok", "messages": messages}, headers=headers)
        assert answer.status_code == 200 and lab.upstream.requests[-1].body["messages"] == messages


async def test_no_caller_headers_reach_the_model_server(lab: Lab) -> None:
    answer = await lab.chat(
        "ok", temperature=0.5, x_unknown={"kept": 1}, api_base="http://evil", metadata={"api_key": "kept"}
    )
    assert await text_of(answer) == "Hello, world!" and answer.json()["model"] == "lab/ok"
    assert answer.json()["usage"] == {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    seen = lab.upstream.requests[-1]
    assert seen.path == "/v1/chat/completions" and seen.body["model"] == "ok"
    assert seen.body["temperature"] == 0.5 and seen.body["x_unknown"] == {"kept": 1} and "api_base" not in seen.body
    assert seen.headers["authorization"] == "Bearer sk-the-operators-secret"
    assert (
        lab.person.key not in str(seen.headers) and "cookie" not in seen.headers and "x-request-id" not in seen.headers
    )

    *chunks, done = lab.events(await lab.chat("ok", stream=True))
    assert done == "[DONE]" and all("usage" not in chunk and chunk["choices"] for chunk in chunks)
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == "Hello, world!"
    assert lab.upstream.requests[-1].body["stream_options"] == {"include_usage": True}


async def test_text_of_every_kind_arrives_unchanged(lab: Lab) -> None:
    whole = await text_of(await lab.chat("unicode"))
    *chunks, _ = lab.events(await lab.chat("unicode", stream=True))
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == whole
    assert "\u2028" in whole and "data:" in whole and "\0" in whole


@each("stream", [False, True])
@each(
    ("model", "status", "code"),
    [
        ("status-400", 400, None),
        ("status-404", 404, None),
        ("status-401", 502, "upstream_error"),
        ("quote-key", 502, "upstream_error"),
        ("status-500", 502, "upstream_error"),
        ("refuse-429", 503, "upstream_error"),
        ("silent", 504, "upstream_timeout"),
        ("html-200", 502, "upstream_invalid_response"),
        ("redirect", 502, None),
    ],
)
async def test_a_fault_before_the_first_byte_is_one_clear_http_error(
    lab: Lab, model: str, status: int, code: str | None, stream: bool
) -> None:
    answer = await lab.chat(model, stream=stream)
    error = answer.json()["error"]
    assert answer.status_code == status, answer.text
    assert {"message", "type", "code", "param"} <= set(error) and (code is None or error["code"] == code)
    assert "sk-the-operators-secret" not in answer.text


@each("model", ["silent-after-2-chunks", "cut-after-2-chunks", "error-mid-stream", "broken-json"])
async def test_mid_stream_fault_is_an_error_event_without_finish_chunk(lab: Lab, model: str) -> None:
    *chunks, error, done = lab.events(await lab.chat(model, stream=True, stream_options={"include_usage": True}))
    assert done == "[DONE]" and error["error"]["type"] == "upstream_error"
    assert chunks and all(chunk["choices"][0]["finish_reason"] is None for chunk in chunks)


async def test_refusal_is_retried_once(own_lab: Lab) -> None:
    assert await text_of(await own_lab.chat("fail-once")) == "Hello, world!"
    assert [seen.model for seen in own_lab.upstream.requests] == ["fail-once", "fail-once"]


async def test_retry_after_is_honoured_up_to_5_seconds(own_lab: Lab) -> None:
    began = time.monotonic()
    assert (await own_lab.chat("retry-after-1")).status_code == 503
    assert time.monotonic() - began > 0.9
    assert len(own_lab.upstream.requests) == 2
    answer = await own_lab.chat("retry-after-30")
    assert (
        answer.status_code == 503
        and len(own_lab.upstream.requests) == 3
        and 1 <= int(answer.headers["retry-after"]) <= 59
    )


async def test_fallback_answers_under_the_requested_name(own_lab: Lab) -> None:
    for model, tried in (
        ("status-503", ["status-503", "status-503", "ok"]),
        ("retry-after-60", ["retry-after-60", "ok"]),
    ):
        own_lab.upstream.requests.clear()
        answer = await own_lab.chat(model)
        assert await text_of(answer) == "Hello, world!" and answer.json()["model"] == f"lab/{model}"
        assert [seen.model for seen in own_lab.upstream.requests] == tried


async def line_of(lab: Lab, answer: httpx.Response) -> dict[str, Any]:
    """The log line of the request whose id the client has."""
    async with asyncio.timeout(5):
        while not (own := [e for e in lab.server.log_lines() if e.get("request_id") == answer.headers["x-request-id"]]):
            await asyncio.sleep(0.02)
    return own[-1]


async def test_log_names_the_model_that_was_asked_the_one_that_answered_and_why(lab: Lab) -> None:
    line = await line_of(lab, await lab.chat("retry-after-60"))
    assert (line["status"], line["model"], line["upstream_model"]) == (200, "lab/retry-after-60", "lab/ok")
    assert (line["asked_fault"], line["asked_status"], "upstream_fault" in line) == ("status", 429, False)
    assert line["asked_error"] == "the … asked for it"
    assert "asked_fault" not in await line_of(lab, await lab.chat("ok"))


async def test_log_of_a_refusal_has_the_cause_without_the_words_of_the_caller(lab: Lab) -> None:
    said = [{"role": "user", "content": "SAY:Invalid value for 'temperature': my zanzibar diary|zanzibar"}]
    answer = await lab.chat("quotes", messages=said)
    assert answer.status_code == 400 and "my zanzibar diary" in answer.text
    line = await line_of(lab, answer)
    assert (line["upstream_status"], line["upstream_error"]) == (400, "Invalid value for 'temperature': …")
    assert line["upstream_param"] == "…"
    assert "zanzibar" not in lab.server.stderr()


async def test_a_dearer_model_is_never_a_fallback(lab: Lab) -> None:
    assert (await lab.chat("status-502")).status_code == 502


async def test_model_server_is_used_within_2_seconds_of_its_return(own_lab: Lab) -> None:
    began = time.monotonic()
    assert (await own_lab.chat("ok")).status_code == 200
    alone_seconds = time.monotonic() - began
    await own_lab.upstream.stop()
    answer = await own_lab.chat("ok")
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_unreachable")
    await own_lab.upstream.start()
    began = time.monotonic()
    assert (await own_lab.chat("ok")).status_code == 200 and time.monotonic() - began < 2 + 10 * alone_seconds


@pytest.mark.parametrize(
    ("model", "stream"),
    [("silent", False), ("silent", True), ("drip-100ms", True), ("endless", True), ("slow-300ms", False)],
)
async def test_disconnected_client_cancels_the_model_server_within_a_second(lab: Lab, model: str, stream: bool) -> None:
    body = orjson.dumps({"model": f"lab/{model}", "messages": [{"role": "user", "content": "hi"}], "stream": stream})
    key = f"Authorization: Bearer {lab.person.key}"
    lines = [
        f"POST {COMPLETIONS} HTTP/1.1",
        "Host: 127.0.0.1",
        key,
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "",
        "",
    ]
    _, writer = await lab.server.raw()
    writer.write("\r\n".join(lines).encode() + body)
    async with asyncio.timeout(5):
        while not lab.upstream.requests:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.15)
    writer.transport.abort()
    began = time.monotonic()
    await asyncio.wait_for(lab.upstream.requests[-1].gone.wait(), 20)
    gone_seconds = time.monotonic() - began
    began = time.monotonic()
    assert (await lab.client.get("/healthz")).status_code == 200
    assert gone_seconds < 1 + 10 * (time.monotonic() - began)
    assert len(lab.upstream.requests) == 1


async def test_chunks_are_sent_as_they_arrive(lab: Lab) -> None:
    body = {"model": "lab/drip-100ms", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    began = time.monotonic()
    async with lab.client.stream("POST", COMPLETIONS, json=body, headers=lab.person.headers) as answer:
        blocks = answer.aiter_raw()
        first = await anext(blocks)
        first_seconds = time.monotonic() - began
        rest = b"".join([block async for block in blocks])
    assert b'"content":""' in first and rest.endswith(b"data: [DONE]\n\n")
    assert first_seconds < time.monotonic() - began - 0.25


async def test_providers_own_list_is_offered_without_one_in_the_catalog(tmp_path: Path) -> None:
    async with ModelServer(models=("org/chat:7b", "echo")) as upstream:
        (tmp_path / "catalog.toml").write_text(
            f'default_model = "lab/org/chat:7b"\n[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\n'
        )
        async with running_server(
            tmp_path, {"SVC_CATALOG": str(tmp_path / "catalog.toml"), "SVC_BUILTIN": "0"}
        ) as server:
            person = await another_person(server)
            async with server.client() as client:
                listed = (await client.get("/v1/models", headers=person.headers)).json()["data"]
                assert [model["id"] for model in listed] == ["lab/org/chat:7b", "lab/echo"]
                one = await client.get("/v1/models/lab/org/chat:7b", headers=person.headers)
                assert one.json() == listed[0] and one.json()["pricing"]["output_micros_per_million_tokens"] == 0
                body = {"messages": [{"role": "user", "content": "hi"}]}
                answer = await client.post(COMPLETIONS, json=body, headers=person.headers)
                assert answer.json()["model"] == "lab/org/chat:7b"
                unknown = await client.post(COMPLETIONS, json={**body, "model": "lab/none"}, headers=person.headers)
                assert unknown.status_code == 404


async def test_log_has_model_tokens_and_times_without_content(own_lab: Lab) -> None:
    line = await line_of(
        own_lab, await own_lab.chat("echo", messages=[{"role": "user", "content": "a private matter"}])
    )
    assert (
        line["status"] == 200 and line["model"] == "lab/echo" and line["input_tokens"] > 0 and line["upstream_ms"] > 0
    )
    log = own_lab.server.stderr()
    for secret in ("private matter", own_lab.person.key, own_lab.person.session, own_lab.person.email, "correct horse"):
        assert secret not in log
