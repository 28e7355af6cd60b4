"""Chat over a connection and a model server that misbehaves on command."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.support.agent_runs import Stream
from tests.support.cases import each, named
from tests.support.local_server import LocalServer, local_server
from tests.support.model_server import ModelServer
from tests.support.people import Person, another_person
from tests.support.waiting import logged, until

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
        "retry-after-0.3",
        "retry-after-30",
        "silent",
        "cut-after-2-chunks",
    ),
    *(
        "error-mid-stream",
        "endless",
        "quote-key",
        "broken-json",
        "html-200",
        "waits-after-3-chunks",
        "redirect",
        "gzip",
        "quotes",
    ),
)
HASTY = ("silent", "silent-after-2-chunks")  # models of a provider that waits only 0.3 s


def catalog(upstream: ModelServer) -> str:
    entries = "".join(f'[[providers.models]]\nid = "{name}"\n' for name in MODELS)
    failing = ("status-503", "retry-after-60")
    fallback = "".join(f'[[providers.models]]\nid = "{name}"\nfallback = "lab/ok"\n' for name in failing)
    dear = '[[providers.models]]\nid = "status-502"\nfallback = "builtin/assistant-paid"\n'
    where = f'base_url = "{upstream.base_url}"\napi_key = "sk-the-operators-secret"\n'
    hasty = "".join(f'[[providers.models]]\nid = "{name}"\n' for name in HASTY)
    return (
        f'[[providers]]\nname = "lab"\n{where}timeout_seconds = 30\n{entries}{fallback}{dear}'
        f'[[providers]]\nname = "hasty"\n{where}timeout_seconds = 0.3\n{hasty}'
    )


@dataclass
class Lab:
    """The service, in front of `upstream`, and a person who uses it."""

    server: LocalServer
    upstream: ModelServer
    person: Person
    client: httpx.AsyncClient

    async def chat(self, model: str, stream: bool = False, **fields: Any) -> httpx.Response:
        name = model if "/" in model else f"lab/{model}"
        body = {"model": name, "messages": [{"role": "user", "content": "hi"}], "stream": stream, **fields}
        return await self.client.post(COMPLETIONS, json=body, headers=self.person.headers)

    def events(self, answer: httpx.Response) -> list[Any]:
        assert answer.status_code == 200, answer.text
        blocks = answer.text.split("\n\n")[:-1]
        return [
            block[6:] if block == "data: [DONE]" else orjson.loads(block[6:])
            for block in blocks
            if not block.startswith(":")
        ]


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    async with ModelServer() as upstream, local_server(tmp_path, catalog(upstream)) as server:
        async with server.client(timeout=30) as client:
            yield Lab(server, upstream, await another_person(server), client)
        assert "sk-the-operators-secret" not in server.log()


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


FAULTS = {
    "lab/status-400": (400, None),
    "lab/status-404": (404, None),
    "lab/status-401": (502, "upstream_error"),
    "lab/quote-key": (502, "upstream_error"),
    "lab/status-500": (502, "upstream_error"),
    "lab/refuse-429": (503, "upstream_error"),
    "hasty/silent": (504, "upstream_timeout"),
    "lab/html-200": (502, "upstream_invalid_response"),
    "lab/redirect": (502, None),
}


async def test_a_fault_before_the_first_byte_is_one_clear_http_error(lab: Lab) -> None:
    asked = [(model, stream) for model in FAULTS for stream in (False, True)]
    answers = await asyncio.gather(*(lab.chat(model, stream=stream) for model, stream in asked))
    for (model, stream), answer in zip(asked, answers, strict=True):
        with named({"model": model, "stream": stream}):
            error, (status, code) = answer.json()["error"], FAULTS[model]
            assert answer.status_code == status, answer.text
            assert {"message", "type", "code", "param"} <= set(error) and (code is None or error["code"] == code)
            assert "sk-the-operators-secret" not in answer.text


@each("model", ["hasty/silent-after-2-chunks", "cut-after-2-chunks", "error-mid-stream", "broken-json"])
async def test_mid_stream_fault_is_an_error_event_without_finish_chunk(lab: Lab, model: str) -> None:
    *chunks, error, done = lab.events(await lab.chat(model, stream=True, stream_options={"include_usage": True}))
    assert done == "[DONE]" and error["error"]["type"] == "upstream_error"
    assert chunks and all(chunk["choices"][0]["finish_reason"] is None for chunk in chunks)


async def test_refusal_is_retried_once(lab: Lab) -> None:
    assert await text_of(await lab.chat("fail-once")) == "Hello, world!"
    assert [seen.model for seen in lab.upstream.requests] == ["fail-once", "fail-once"]


async def test_retry_after_is_honoured_up_to_5_seconds(lab: Lab) -> None:
    assert (await lab.chat("retry-after-0.3")).status_code == 503
    first, second = lab.upstream.requests
    assert second.came_at - first.came_at > 0.29
    answer = await lab.chat("retry-after-30")
    assert (
        answer.status_code == 503 and len(lab.upstream.requests) == 3 and 1 <= int(answer.headers["retry-after"]) <= 59
    )


async def test_fallback_answers_under_the_requested_name(lab: Lab) -> None:
    for model, tried in (
        ("status-503", ["status-503", "status-503", "ok"]),
        ("retry-after-60", ["retry-after-60", "ok"]),
    ):
        lab.upstream.requests.clear()
        answer = await lab.chat(model)
        assert await text_of(answer) == "Hello, world!" and answer.json()["model"] == f"lab/{model}"
        assert [seen.model for seen in lab.upstream.requests] == tried


async def line_of(lab: Lab, answer: httpx.Response) -> dict[str, Any]:
    """The log line of the request whose id the client has."""
    return (await logged(lab.server.log_lines, request_id=answer.headers["x-request-id"]))[-1]


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
    assert "zanzibar" not in lab.server.log()


async def test_a_dearer_model_is_never_a_fallback(lab: Lab) -> None:
    assert (await lab.chat("status-502")).status_code == 502


async def test_model_server_is_used_at_once_after_its_return(lab: Lab) -> None:
    assert (await lab.chat("ok")).status_code == 200
    await lab.upstream.stop()
    answer = await lab.chat("ok")
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_unreachable")
    await lab.upstream.start()
    lab.upstream.requests.clear()
    assert (await lab.chat("ok")).status_code == 200 and len(lab.upstream.requests) == 1


@each(("model", "stream"), [("silent", False), ("silent", True), ("waits-after-3-chunks", True), ("endless", True)])
async def test_disconnected_client_cancels_the_model_server(lab: Lab, model: str, stream: bool) -> None:
    """The model server itself waits without end, or sends without end."""
    lab.upstream.requests.clear()
    body = {"model": f"lab/{model}", "messages": [{"role": "user", "content": "hi"}], "stream": stream}
    sent = await Stream.send(lab.server, COMPLETIONS, lab.person.key, body)
    await until(lambda: lab.upstream.requests)
    if model != "silent":
        await sent.head()
        await anext(sent.read())
    sent.leave("vanish")
    await asyncio.wait_for(lab.upstream.requests[0].gone.wait(), 20)
    await lab.server.idle(but=1)  # the client of the lab keeps a connection
    assert len(lab.upstream.requests) == 1


async def test_chunks_are_sent_as_they_arrive(lab: Lab) -> None:
    body = {"model": "lab/waits-after-3-chunks", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    async with lab.client.stream("POST", COMPLETIONS, json=body, headers=lab.person.headers) as answer:
        lines = answer.aiter_lines()
        async for line in lines:
            if '"content":", "' in line:
                break
        assert lab.upstream.waiting == 1
        lab.upstream.release.set()
        assert [line async for line in lines][-2:] == ["data: [DONE]", ""]


async def test_providers_own_list_is_offered_without_one_in_the_catalog(tmp_path: Path) -> None:
    async with ModelServer(models=("org/chat:7b", "echo")) as upstream:
        text = f'default_model = "lab/org/chat:7b"\n[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\n'
        async with local_server(tmp_path, text, builtin=False) as server:
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


async def test_log_has_model_tokens_and_times_without_content(lab: Lab) -> None:
    line = await line_of(lab, await lab.chat("echo", messages=[{"role": "user", "content": "a private matter"}]))
    assert (
        line["status"] == 200 and line["model"] == "lab/echo" and line["input_tokens"] > 0 and line["upstream_ms"] > 0
    )
    log = lab.server.log()
    for secret in ("private matter", lab.person.key, lab.person.session, lab.person.email, "correct horse"):
        assert secret not in log
