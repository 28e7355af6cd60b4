"""Refusals of prompts that are too long: recognized in the words of every server, and sent on in those of each format."""

import functools
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.billing import wallet
from svc.config import Config
from svc.inference.answer.too_long import TooLong, anthropic_message, found_in
from svc.inference.answer.upstream_errors import error_object, status_fault
from tests.conftest import JSON, Clocks, Service, bearer, serving
from tests.support.cases import each
from tests.support.model_server import ModelServer
from tests.support.too_long_errors import TOO_LONG

OTHERS = (
    "max_completion_tokens is too large: 200000. This model supports at most 16384 completion tokens.",
    "Request too large for model `llama` on tokens per minute (TPM): Limit 6000, Requested 12000.",
    "Rate limit reached for gpt-4 on tokens per min. Limit: 10000 / min.",
    "Invalid 'messages[0].content': string too long. Expected a string with maximum length 10485760.",
    "Unsupported parameter: 'max_tokens' is not supported with this model.",
    "The image is too large.",
    "This model supports the context window beta only with tools.",
)


@each("form", list(TOO_LONG))
def test_refusal_of_a_long_prompt_is_recognized_with_its_sizes(form: str) -> None:
    status, document, sizes = TOO_LONG[form]
    fault = status_fault("", 502 if status == 200 else status, error_object(document, None))
    assert fault.status == 400 and fault.error is not None
    assert fault.error["too_long"] == sizes


@each("message", OTHERS)
def test_other_refusals_are_not_about_the_context(message: str) -> None:
    assert found_in(message, {"code": "invalid_request_error", "type": None}) is None


WORDS = st.sampled_from(
    ["context length", "exceeds", "prompt is too long:", "12", "8,192", "tokens", "n_ctx", "(", "> "]
)
VALUES = st.one_of(
    st.none(), st.integers(), st.text(max_size=9), st.just("context_length_exceeded"), st.lists(st.none())
)


@given(
    words=st.lists(st.one_of(WORDS, st.text(max_size=9)), max_size=12),
    fields=st.dictionaries(st.sampled_from(["code", "type", "n_ctx", "n_prompt_tokens"]), VALUES),
)
def test_any_error_is_read(words: list[str], fields: dict[str, Any]) -> None:
    sizes = found_in(" ".join(words), fields)
    assert sizes is None or all(size is None or size >= 0 for size in sizes)
    if sizes is not None:
        assert anthropic_message(sizes, 9000, 8192).startswith(
            ("prompt is too long: ", "input length and `max_tokens`")
        )


@each("status", [401, 402, 403, 404, 429, 503])
def test_other_statuses_stay(status: int) -> None:
    error = error_object(TOO_LONG["openai"][1], None)
    assert status_fault("", status, error).status == status


@each(
    ("sizes", "context_length", "message"),
    [
        (TooLong(9412, None, 8192), None, "prompt is too long: 9412 tokens > 8192 maximum"),
        (TooLong(9412, 10, 8192), 4096, "prompt is too long: 9412 tokens > 8192 maximum"),
        (TooLong(None, None, 8192), 4096, "prompt is too long: 9000 tokens > 8192 maximum"),
        (TooLong(), 8192, "prompt is too long: 9000 tokens > 8192 maximum"),
        (TooLong(), 10_000, "prompt is too long: 10001 tokens > 10000 maximum"),  # the estimate is too small
        (TooLong(), None, "prompt is too long"),
        (
            TooLong(4000, 5000, 8192),
            None,
            "input length and `max_tokens` exceed context limit: 4000 + 5000 > 8192, decrease input length or "
            "`max_tokens` and try again",
        ),
    ],
)
def test_messages_clients_get_the_sizes_in_anthropics_words(
    sizes: TooLong, context_length: int | None, message: str
) -> None:
    assert anthropic_message(sizes, 9000, context_length) == message


ASKED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hi"}]},
    "/v1/responses": {"input": "Hi"},
    "/v1/messages": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 100},
}


@pytest.fixture
async def upstream() -> AsyncIterator[ModelServer]:
    async with ModelServer() as upstream:
        yield upstream


@pytest.fixture
async def service(config: Config, clocks: Clocks, upstream: ModelServer) -> AsyncIterator[Service]:
    models = (*(f"too-long-{form}" for form in TOO_LONG), "error-raw", "mid-line", "mid-event")
    entries = "".join(f'[[providers.models]]\nid = "{name}"\n' for name in models)
    catalog = f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\n{entries}'
    catalog += f'[[providers]]\nname = "paid"\nbase_url = "{upstream.base_url}"\n[[providers.models]]\n'
    catalog += 'id = "too-long-vllm"\noutput_micros_per_million_tokens = 1\n'
    catalog += '[[providers.models]]\nid = "too-long-anthropic"\nkind = "image"\n'
    async with serving(config, clocks, catalog) as service:
        yield service


@pytest.mark.parametrize("own", [False, True], ids=["operators", "own"])
@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
async def test_every_format_has_its_own_error_for_a_long_prompt(
    service: Service, upstream: ModelServer, own: bool, stream: bool
) -> None:
    headers = {**JSON, **bearer((await service.make_key(await service.bearer()))["key"])}
    provider = {"name": "own", "base_url": upstream.base_url}
    assert (await service.client.post("/user/providers", json=provider, headers=headers)).status_code == 201
    for form, (status, document, _) in TOO_LONG.items():
        if status == 200 and not stream:
            continue
        for path, body in ASKED.items():
            service.clocks.advance(60)  # the rate limit
            sent = {**body, "model": f"{'own' if own else 'lab'}/too-long-{form}", "stream": stream}
            answer = await service.client.post(path, json=sent, headers=headers)
            assert answer.status_code == 400, (form, answer.text)
            error = answer.json()["error"]
            assert error["type"] == "invalid_request_error"
            if path == "/v1/messages":
                assert error["message"].startswith(("prompt is too long", "input length and `max_tokens` exceed"))
            else:
                param = "input" if path == "/v1/responses" else "messages"
                assert (error["code"], error["param"]) == ("context_length_exceeded", param)
                message = error["message"].replace("max_output_tokens", "max_tokens")  # the caller's name
                assert message in json.dumps(document)
    assert len(upstream.requests) == len([form for form in TOO_LONG if stream or TOO_LONG[form][0] != 200]) * 3


@pytest.mark.parametrize("model", ["mid-line", "mid-event"])
async def test_context_that_is_full_in_mid_stream_ends_the_stream_with_the_same_error(
    service: Service, model: str
) -> None:
    headers = {**JSON, **bearer((await service.make_key(await service.bearer()))["key"])}
    texts = {}
    for path, body in ASKED.items():
        answer = await service.client.post(
            path, json={**body, "model": f"lab/{model}", "stream": True}, headers=headers
        )
        assert answer.status_code == 200
        texts[path] = answer.text
    chat, responses, messages = (texts[path] for path in ASKED)
    assert '"code":"context_length_exceeded","param":"messages"' in chat
    assert "response.failed" in responses and '"error":{"code":"context_length_exceeded"' in responses
    assert '"error":{"type":"invalid_request_error","message":"prompt is too long"}' in messages


async def test_prompt_that_is_too_long_is_not_sent_again_with_a_lower_limit(
    service: Service, upstream: ModelServer
) -> None:
    session = await service.bearer()
    account_id = (await service.client.get("/user/me", headers=session)).json()["id"]
    now_seconds = service.clocks.now
    book = functools.partial(wallet.book, description="", now_seconds=now_seconds)
    await service.state["db"].write(book, account_id, 1_000_000)
    body = {"model": "paid/too-long-vllm", **ASKED["/v1/chat/completions"]}
    answer = await service.client.post("/v1/chat/completions", json=body, headers=session)
    assert answer.json()["error"]["code"] == "context_length_exceeded" and len(upstream.requests) == 1


async def test_prompt_of_a_picture_has_no_context(service: Service) -> None:
    body = {"model": "paid/too-long-anthropic", "prompt": "a lighthouse"}
    answer = await service.client.post("/v1/images/generations", json=body, headers=await service.bearer())
    error = answer.json()["error"]
    assert answer.status_code == 400 and error["message"].startswith("prompt is too long")
    assert (error["code"], error["param"]) == (None, None)


async def test_a_status_is_no_code(service: Service) -> None:
    headers = {**JSON, **bearer((await service.make_key(await service.bearer()))["key"])}
    body = {"model": "lab/error-raw", **ASKED["/v1/chat/completions"]}
    answer = await service.client.post("/v1/chat/completions", json=body, headers=headers)
    assert answer.status_code == 400 and answer.json()["error"]["code"] is None
