"""upstream.py against a model server that misbehaves: one clear fault or the right answer, in bounded
time and memory.
"""

import asyncio
import contextlib
import dataclasses
import json
import time
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from svc.errors import ApiError, UpstreamFault
from svc.inference import upstream
from svc.inference.answer import chunk_writer, raw_answer, upstream_errors
from svc.inference.answer.events import Chunk, TextChunks
from svc.inference.catalog import Provider
from svc.outbound.addresses import public_address
from svc.outbound.client import Outbound
from tests.support.cases import each
from tests.support.loop_clock import advance_loop
from tests.support.model_answers import ARGUMENTS, TEXT, UNICODE
from tests.support.model_server import ModelServer
from tests.support.wire_grammar import as_sent

KEY = "test-key-0123456789-abcdef"
HEAD = {"id": "chatcmpl-x", "created": 1_790_000_000, "model": "here/it"}


def at(base_url: str, **fields: Any) -> Provider:
    return Provider(**{"name": "here", "base_url": base_url, "api_key": KEY, "timeout_seconds": 5.0, **fields})


@dataclass
class Setup:
    server: ModelServer
    client: Outbound

    def provider(self, **fields: Any) -> Provider:
        return at(self.server.base_url, **fields)

    async def chat(
        self, model: str, stream: bool = True, provider: Provider | None = None, **fields: Any
    ) -> AsyncGenerator[list[dict[str, Any]], None]:
        body = {
            "model": model,
            "messages": [{"role": "user", "content": "Hi there"}],
            **({"stream": True, "stream_options": {"include_usage": True}} if stream else {}),
            **fields,
        }
        written, stream = await upstream.dump(body), bool(body.get("stream"))
        chat = upstream.chat(self.client, provider or self.provider(), written, stream)
        async with contextlib.aclosing(await chat) as answer:
            while (raws := await answer.more()) is not None:
                yield raws

    async def chunks(self, model: str, **fields: Any) -> list[dict[str, Any]]:
        """The whole stream, read by wire as the service does."""
        writer = chunk_writer.ChunkWriter(**HEAD, request={"messages": [], "stream_options": {"include_usage": True}})
        sent: list[Chunk | TextChunks] = []
        async with contextlib.aclosing(self.chat(model, **fields)) as raws:
            async for together in raws:
                sent += [chunk for raw in together for chunk in writer.feed(raw)]
        return as_sent([*sent, *writer.finish()])

    async def answer(self, model: str, **fields: Any) -> dict[str, Any]:
        writer = chunk_writer.ChunkWriter(**HEAD, request={"messages": []})
        writer.whole = True
        async with contextlib.aclosing(self.chat(model, stream=False, **fields)) as raws:
            async for together in raws:
                for raw in together:
                    writer.feed(raw)
        return writer.answer()[0]

    async def fault(self, model: str, **fields: Any) -> UpstreamFault:
        with pytest.raises(UpstreamFault) as caught:
            await self.chunks(model, **fields)
        assert KEY not in str(caught.value)
        assert KEY not in repr(caught.value.error)
        return caught.value


@pytest.fixture
async def setup() -> AsyncIterator[Setup]:
    async with ModelServer() as server:
        client = Outbound()
        yield Setup(server, client)
        await client.aclose()


def text_of(chunks: list[dict[str, Any]]) -> str:
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


# --- what is sent


async def test_only_our_headers_are_sent(setup: Setup) -> None:
    await setup.answer("ok")
    seen = setup.server.requests[0]
    assert (seen.method, seen.path) == ("POST", "/v1/chat/completions")
    assert seen.headers.pop("host").startswith("127.0.0.1:")
    assert seen.headers.pop("content-length")
    assert seen.headers == {
        "authorization": f"Bearer {KEY}",
        "content-type": "application/json",
        "accept": "application/json",
        "accept-encoding": "identity",
        "user-agent": "svc",
    }


async def test_without_a_key_there_is_no_authorization(setup: Setup) -> None:
    await setup.answer("ok", provider=setup.provider(api_key=None))
    assert "authorization" not in setup.server.requests[0].headers


# --- good answers, however odd their form

ODD_BUT_WHOLE = [
    "ok",
    "echo-key",
    "bytewise",
    "drip-5ms",
    "slow-50ms",
    "no-done",
    "two-done",
    "linger",
    "cr-only",
    "crlf",
    "comments",
    "until-close",
    "until-close+no-done",
    "json-for-stream",
    "no-ids",
    "no-finish",
    "no-usage",
    "odd-usage",
    "usage-always",
    "bytewise+crlf",
    "bytewise+cr-only+no-done",
]


@each("model", ODD_BUT_WHOLE)
async def test_stream_of_any_form_is_read(setup: Setup, model: str) -> None:
    async with asyncio.timeout(20):  # it waits for nothing that does not come
        chunks = await setup.chunks(model, provider=setup.provider(timeout_seconds=60.0))
    assert text_of(chunks) == ("You sent Bearer ***" if model == "echo-key" else TEXT)
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"]["total_tokens"] > 0


@each("model", ["ok", "stream-for-json", "stream-for-json+no-done", "no-ids", "until-close", "bytewise"])
async def test_json_answer_of_any_form_is_read(setup: Setup, model: str) -> None:
    answer = await setup.answer(model, n=2)
    assert answer["choices"][0]["message"]["content"] == TEXT
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert model == "no-ids" or len(answer["choices"]) == 2
    if model != "stream-for-json+no-done":
        assert answer["usage"]["total_tokens"] > 0


@each("model", ["unicode", "unicode+bytewise", "unicode+json-for-stream"])
async def test_any_text_arrives_unchanged(setup: Setup, model: str) -> None:
    assert text_of(await setup.chunks(model)) == "".join(UNICODE)


async def test_an_emoji_in_two_halves_is_joined(setup: Setup) -> None:
    assert text_of(await setup.chunks("halves")) == "a😀b"


async def test_invalid_utf_8_is_replaced(setup: Setup) -> None:
    assert "\ufffd" in text_of(
        await setup.chunks("bad-utf8+no-ids+echo", messages=[{"role": "user", "content": "a b He"}])
    )


@each("model", ["tools", "tools-bare"])
@each("stream", [True, False])
async def test_tool_calls_are_read(setup: Setup, model: str, stream: bool) -> None:
    if stream:
        writer = chunk_writer.ChunkWriter(**HEAD, request={"messages": []})
        for raw in [raw async for together in setup.chat(model) for raw in together]:
            writer.feed(raw)
        message = writer.content()
    else:
        message = (await setup.answer(model))["choices"][0]["message"]
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["look_up", "look_up"]
    assert [orjson.loads(call["function"]["arguments"]) for call in message["tool_calls"]] == [ARGUMENTS, ARGUMENTS]


async def test_chunks_are_returned_as_they_arrive(setup: Setup) -> None:
    async with contextlib.aclosing(setup.chat("silent-after-2-chunks")) as raws:
        came = await asyncio.wait_for(anext(raws), 2)
        came += [] if len(came) > 1 else await asyncio.wait_for(anext(raws), 2)
    first, second = came
    assert first["choices"][0]["delta"]["role"] == "assistant"
    assert second["choices"][0]["delta"]["content"] == "Hello"


@each("model", ["ok", "two-done+drip-5ms", "json-for-stream"])
async def test_connection_is_reused(setup: Setup, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_answer, "AFTER_DONE_SECONDS", 2.0)
    for _ in range(3):
        await setup.chunks(model)
    assert setup.server.connections_made == 1


# --- bad answers


@each(
    ("model", "kind"),
    [
        ("cut-head", "unreachable"),
        ("cut-after-0-chunks", "cut"),
        ("cut-after-3-chunks", "cut"),
        ("cut-after-8-chunks", "cut"),
        ("reset-after-3-chunks", "cut"),
        ("until-close+cut-after-3-chunks", "cut"),
        ("until-close+no-done+no-finish", "cut"),
        ("until-close+cut-after-0-chunks", "invalid"),
        ("broken-json", "invalid"),
        ("html-200", "invalid"),
        ("gzip+json-for-stream", "invalid"),
        ("long-line", "invalid"),
        ("huge-head", "invalid"),
        ("error-200", "status"),
        ("error-mid-stream", "status"),
    ],
)
async def test_a_bad_answer_is_one_fault(setup: Setup, model: str, kind: str) -> None:
    fault = await setup.fault(model)
    assert fault.kind == kind
    assert fault.status == (502 if kind == "status" else 0)


async def test_an_error_with_200_keeps_its_message(setup: Setup) -> None:
    assert (await setup.fault("error-200")).error == {
        "message": "the model is out of memory",
        "type": None,
        "param": None,
        "code": None,
    }


async def test_answer_cut_at_any_byte_is_an_error(setup: Setup) -> None:
    whole = 2200
    for position in [*range(0, 300, 23), *range(300, whole, 191)]:
        for form in ("", "+json-for-stream"):
            try:
                chunks = await setup.chunks(f"cut-at-byte-{position}{form}")
            except UpstreamFault as fault:
                assert fault.kind in ("cut", "unreachable"), (position, form)
            else:
                assert text_of(chunks) == TEXT, (position, form)
    assert len(await setup.chunks("cut-at-byte-100000")) > 5


@each("model", ["silent", "silent-after-0-chunks", "silent-after-3-chunks"])
async def test_a_silent_server_is_a_timeout(setup: Setup, model: str) -> None:
    async with asyncio.timeout(20):
        assert (await setup.fault(model, provider=setup.provider(timeout_seconds=0.2))).kind == "timeout"


async def test_server_is_reachable_at_once_after_its_return(setup: Setup) -> None:
    await setup.chunks("ok")
    await setup.server.stop()
    assert (await setup.fault("ok")).kind == "unreachable"
    await setup.server.start()
    assert text_of(await setup.chunks("ok")) == TEXT


@pytest.mark.slow
async def test_endless_answer_is_refused_in_bounded_memory(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "STREAM_BYTES", 800_000)
    monkeypatch.setattr(upstream, "ANSWER_BYTES", 400_000)
    writer = chunk_writer.ChunkWriter(**HEAD, request={"messages": []})
    tracemalloc.start()
    with pytest.raises(UpstreamFault) as caught:
        async for together in setup.chat("endless"):
            for raw in together:
                writer.feed(raw)
    assert caught.value.kind == "invalid"
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 800_000
    with pytest.raises(UpstreamFault) as caught:
        await setup.answer("endless+stream-for-json")
    assert caught.value.kind == "invalid"


async def test_endless_slow_answer_times_out_after_an_hour(setup: Setup) -> None:
    raws, parts = setup.chat("endless+drip-20ms", provider=setup.provider(timeout_seconds=1000.0)), 0
    with pytest.raises(UpstreamFault) as caught:
        while await anext(raws):
            parts += 1
            advance_loop(900)
    assert (caught.value.kind, parts) == ("timeout", 4)


# --- leaving


@pytest.mark.parametrize("model", ["silent-after-2-chunks", "endless+drip-5ms", "linger+drip-20ms"])
async def test_closing_the_generator_ends_the_request_at_once(setup: Setup, model: str) -> None:
    raws = setup.chat(model)
    await anext(raws)
    await raws.aclose()
    assert await asyncio.wait_for(setup.server.requests[0].gone.wait(), 20)


@pytest.mark.parametrize(("model", "stream"), [("silent", True), ("silent", False), ("silent-after-1-chunks", False)])
async def test_cancelling_the_reader_ends_the_request_at_once(setup: Setup, model: str, stream: bool) -> None:
    form = "+stream-for-json" if model != "silent" else ""
    reader = asyncio.create_task(setup.chunks(model) if stream else setup.answer(model + form))
    while not setup.server.requests:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    await asyncio.wait_for(setup.server.requests[0].gone.wait(), 20)


# --- refusals


@each(
    ("model", "message", "code"),
    [
        ("error-text", "no such thing as text", None),
        ("error-detail", "no such thing as detail", None),
        ("error-list", "body.messages: no such thing as a list", None),
        ("error-message", "no such thing as a message", "40001"),
        ("error-bare", "no such thing as bare text", None),
        ("error-errors", "no such thing as errors", "7"),
        ("error-capital", "no such thing as a capital", None),
        ("error-raw", "Provider returned error: no such thing as raw", None),
        ("error-inner", "Filtered: for its words", "content_filter"),
    ],
)
async def test_error_body_of_any_shape_is_parsed(setup: Setup, model: str, message: str, code: str | None) -> None:
    fault = await setup.fault(model)
    assert (fault.kind, fault.status) == ("status", 400)
    assert fault.error == {"message": message, "type": None, "param": None, "code": code}


async def test_the_type_of_a_nested_error_is_kept(setup: Setup) -> None:
    fault = await setup.fault("error-nested")
    assert fault.error == {"message": "no such thing as a nest", "type": "nested", "param": None, "code": None}


@each("model", ["mid-line", "mid-event", "mid-bare"])
async def test_mid_stream_errors_of_every_shape_keep_their_message(setup: Setup, model: str) -> None:
    for bytewise in ("", "+bytewise"):
        fault = await setup.fault(model + bytewise)
        assert fault.kind == "status" and (fault.error or {})["message"] == "the request exceeds the context size"


@each("model", ["error-html", "error-huge", "error-empty"])
async def test_error_body_without_a_message_keeps_the_status(setup: Setup, model: str) -> None:
    fault = await setup.fault(model)
    assert (fault.kind, fault.status, fault.error) == ("status", 400, None)


@each("model", ["error-text+until-close", "error-text+cut-at-byte-85"])
async def test_refusal_with_a_cut_body_keeps_its_status(setup: Setup, model: str) -> None:
    assert (await setup.fault(model)).status == 400


@each(
    ("model", "low", "high"),
    [
        ("retry-after-7", 7, 7),
        ("retry-after-0.5", 0.5, 0.5),
        ("retry-after-date", 1, 3),
        ("retry-after-99999", 99999, 99999),
    ],
)
async def test_retry_after_is_read_as_seconds_or_date(setup: Setup, model: str, low: float, high: float) -> None:
    fault = await setup.fault(model)
    assert fault.status == 429
    assert fault.retry_after_seconds is not None
    assert low <= fault.retry_after_seconds <= high


@each(
    "model",
    ["refuse-429", "retry-after-soon", "retry-after--5", "retry-after-nan", "retry-after-inf", "retry-after-1e999"],
)
async def test_invalid_retry_after_is_none(setup: Setup, model: str) -> None:
    fault = await setup.fault(model)
    assert (fault.status, fault.retry_after_seconds) == (429, None)


async def test_own_key_is_redacted_in_refusals_and_answers(setup: Setup) -> None:
    fault = await setup.fault("quote-key")
    assert fault.error is not None
    assert "***" in fault.error["message"]
    answer = await setup.answer("echo-key")
    assert KEY not in repr(answer)
    assert KEY not in repr(setup.provider())


@each(
    "text",
    [
        "Bad key sk-proj-abcDEF123456.",
        "Got 'Bearer abcdef123456' instead",
        "your key short is wrong",
        "gsk_abcdef0123456 expired",
    ],
)
def test_other_secrets_are_redacted(text: str) -> None:
    redacted = upstream_errors.redact(text, "short")
    assert "***" in redacted
    assert not any(secret in redacted for secret in ("abcDEF123456", "abcdef123456", "abcdef0123456", "short"))


# --- models


async def test_the_list_of_models_is_read(setup: Setup) -> None:
    assert await upstream.models(setup.client, setup.provider()) == {"ok": None, "tools": None}
    assert setup.server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@contextlib.asynccontextmanager
async def serving(body: bytes, status: int = 200, missing_bytes: int = 0) -> AsyncIterator[Provider]:
    """A server that gives this answer to anything, and keeps back some of what its head promised."""

    tasks: set[asyncio.Task[None] | None] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            await reader.readuntil(b"\r\n\r\n")
            head = b"HTTP/1.1 %d Status\r\ncontent-length: %d\r\n\r\n" % (status, len(body) + missing_bytes)
            writer.write(head + body)
            await asyncio.Event().wait()
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield at(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/", timeout_seconds=0.3)
        for task in tasks:
            assert task is not None
            task.cancel()
        await asyncio.gather(*filter(None, tasks), return_exceptions=True)


@each(
    "body",
    [
        b'{"object": "list", "data": [{"id": "a"}, {"id": "b"}]}',
        b'[{"id": "a"}, {"id": "b", "object": "model"}]',
        b'["a", "b"]',
        b'{"models": [{"name": "a"}, {"name": "b"}]}',
        b'{"data": [{"id": "a"}, {"id": null}, 5, {"id": 7}, {"id": ""}, {"id": "b"}]}',
        b'["a", "b", "c\\n", "\\u0000", "%b"]' % (b"x" * 301),
    ],
)
async def test_model_lists_of_any_shape_are_read_without_unusable_names(setup: Setup, body: bytes) -> None:
    async with serving(body) as provider:
        assert await upstream.models(setup.client, provider) == {"a": None, "b": None}


@each(
    ("fields", "context_length"),
    [
        ({"context_length": 8192, "max_model_len": 1}, 8192),
        ({"context_length": "8192", "max_model_len": 4096.0}, 4096),
        ({"max_model_len": 0, "meta": {"n_ctx_train": 131_072}}, 131_072),
        ({"max_input_tokens": 1_000_000, "max_tokens": 128_000}, 1_000_000),
        ({"meta": {"n_ctx_train": 8192, "n_ctx": 4096}}, 4096),
        ({"meta": {"n_ctx_train": 8192, "n_ctx": 0}}, 8192),
        *(
            ({"context_length": value, "meta": value}, None)
            for value in (-1, 0.5, True, "x", [], 10**9 + 1, 10**400, {}, None)
        ),
    ],
)
async def test_context_length_is_read_from_the_list_unless_it_is_unusable(
    setup: Setup, fields: dict[str, Any], context_length: int | None
) -> None:
    async with serving(json.dumps([{"id": "a", **fields}]).encode()) as provider:
        assert await upstream.models(setup.client, provider) == {"a": context_length}


@each("body", [b"{}", b"<html>", b"[", b"5", b'{"data": {}}', b'["' + b"x" * 5_000_000 + b'"]'])
async def test_other_answers_than_model_lists_are_invalid(setup: Setup, body: bytes) -> None:
    async with serving(body) as provider:
        with pytest.raises(UpstreamFault) as caught:
            await upstream.models(setup.client, provider)
        assert caught.value.kind == "invalid"


CROWD = b"[]," * 1_300_000 + b"[]"


@each(
    "body",
    [
        b'data: {"choices": [], "x": ["\\u0061", %b]}\n\n' % CROWD,
        b'event: error\ndata: {"x": [%b]}\n\n' % CROWD,
        b'{"choices": [], "x": ["\\u0061", %b]}' % CROWD,
    ],
)
async def test_millions_of_values_do_not_block_the_event_loop(setup: Setup, body: bytes) -> None:
    async with serving(body) as provider:
        began = time.process_time()
        with pytest.raises(UpstreamFault, match="too many values"):
            async for _ in setup.chat("ok", provider=dataclasses.replace(provider, byok=True)):
                pass
        assert time.process_time() - began < 0.5


async def test_endless_list_of_models_times_out(setup: Setup) -> None:
    async with serving(b'{"data": [', missing_bytes=10) as provider:
        with pytest.raises(UpstreamFault) as caught:
            await upstream.models(setup.client, provider)
        assert caught.value.kind == "timeout"


async def test_refusal_with_a_stalled_body_keeps_its_status(setup: Setup) -> None:
    async with serving(b'{"error": ', status=413, missing_bytes=10) as provider:
        assert (await setup.fault("ok", provider=provider)).status == 413


async def test_forbidden_address_is_refused() -> None:
    client = Outbound(allow=public_address)
    with pytest.raises(ApiError) as caught:
        await upstream.models(client, at("http://127.0.0.1:9/v1"))
    assert caught.value.code == "address_not_allowed"
    await client.aclose()


async def test_redirects_are_not_followed(setup: Setup) -> None:
    assert (await setup.fault("redirect")).status == 302
    assert len(setup.server.requests) == 1


async def test_one_failure_is_retried(setup: Setup) -> None:
    assert upstream_errors.retriable(await setup.fault("fail-once"))
    assert text_of(await setup.chunks("fail-once")) == TEXT
