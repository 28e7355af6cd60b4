"""Requests in the format of their model server: the server gets the caller's bytes, and the caller the server's."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from svc.billing import wallet
from svc.config import Config
from tests.conftest import Service, bearer
from tests.support.byok import Names, add_provider
from tests.support.cases import each
from tests.support.format_server import FormatServer
from tests.support.full_disk import full_disk
from tests.support.loop_clock import advance_loop
from tests.support.waiting import until
from tests.support.watchdog import WATCHDOG

PATHS = {"responses": "/v1/responses", "messages": "/v1/messages"}
PRICES = "input_micros_per_million_tokens = 1_000_000\noutput_micros_per_million_tokens = 1_000_000\n"
# Written as no encoder of ours would.
TEXTS = {
    "responses": r"""{ "model" : "MODEL",
  "input":[ {"role":"user","content":[{"type":"input_text","text":"Gr\u00fc\u00dfe \/ \u2028 é"}]},
    {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2VhbA=="} ],
  "temperature":1.0, "top_p":1e-1 ,"metadata":{"z":"1","a":"2"}, "include":["reasoning.encrypted_content"] MORE}""",
    "messages": r"""{ "model" : "MODEL", "max_tokens":  64 ,
  "system":[{"type":"text","text":"x-anthropic-billing-header: 1","cache_control":{"type":"ephemeral"}}],
  "messages":[ {"role":"user","content":[{"type":"text","text":"Gr\u00fc\u00dfe \/ \u2028 é"}]},
    {"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"c2Vh\u0062A=="},
      {"type":"redacted_thinking","data":"b3RoZXI="},{"type":"text","text":"Yes?", "citations":[]}]},
    {"role":"user","content":"Go on."}], "temperature":1.0, "top_p":1e-1 ,"metadata":{"user_id":"2"} MORE}""",
    "chat": r"""{ "model" : "MODEL", "messages":[ {"role":"user","content":"Gr\u00fc\u00dfe \/ \u2028 é"} ],
  "temperature":1.0, "top_p":1e-1, "seed": 10000000000000000000000 MORE}""",
}


@pytest.fixture
async def upstream() -> AsyncIterator[FormatServer]:
    async with FormatServer(models=("ok", "plays-a", "plays-a+slow-300ms")) as upstream:
        yield upstream


@pytest.fixture
def config(config: Config, upstream: FormatServer, tmp_path: Path) -> Config:
    catalog = ""
    for api in TEXTS:
        head = f'[[providers]]\nname = "NAME"\nbase_url = "{upstream.base_url}"\napi = "{api}"\n'
        catalog += head.replace("NAME", f"free-{api}") + "input_micros_per_million_tokens = 0\n"
        catalog += head.replace("NAME", f"paid-{api}") + f'api_key = "sk-of-the-operator-0123"\n{PRICES}'
        hosted = "hosted_tools = { web_search = 10_000 }\n" if api != "chat" else ""
        catalog += f'{head.replace("NAME", f"hosted-{api}")}[[providers.models]]\nid = "cassette-web_search"\n'
        catalog += f"{PRICES}{hosted}"
    (tmp_path / "catalog.toml").write_text(catalog)
    return dataclasses.replace(config, catalog=tmp_path / "catalog.toml", resolve=Names())


@pytest.fixture
async def headers(service: Service) -> dict[str, str]:
    signed_up = await service.sign_up()
    booked = {"description": "", "now_seconds": service.clocks.now}
    await service.state["db"].write(wallet.book, signed_up["user"]["id"], 1_000_000, **booked)
    session = bearer(signed_up["access_token"])
    key = await service.client.post("/user/api-keys", json={"name": "k"}, headers=session)
    return bearer(key.json()["key"])


def path_of(api: str) -> str:
    return PATHS.get(api, "/v1/chat/completions")


async def post(service: Service, headers: dict[str, str], api: str, text: str | bytes) -> httpx.Response:
    body = text if isinstance(text, bytes) else text.encode()
    return await service.client.post(
        path_of(api), content=body, headers={**headers, "content-type": "application/json"}
    )


def text_of(api: str, model: str, more: str = "") -> str:
    return TEXTS[api].replace("MODEL", model).replace(" MORE", more)


@each("api", TEXTS)
async def test_request_keeps_its_bytes(
    service: Service, headers: dict[str, str], upstream: FormatServer, api: str
) -> None:
    answer = await post(service, headers, api, text_of(api, f"free-{api}/ok"))
    assert answer.status_code == 200, answer.text
    expected = text_of(api, "ok")
    if api == "responses":
        expected = '{"store":false,' + expected[1:]
    assert upstream.requests[-1].raw.decode() == expected


@each("api", TEXTS)
async def test_priced_model_gets_a_limit(
    service: Service, headers: dict[str, str], upstream: FormatServer, api: str
) -> None:
    answer = await post(service, headers, api, text_of(api, f"paid-{api}/ok", ', "stream" : true'))
    assert answer.status_code == 200, answer.text
    raw = upstream.requests[-1].raw.decode()
    rest = text_of(api, "ok", ', "stream" : true')[1:]
    assert raw.endswith(rest)
    limits = {"responses": '{"store":false,"max_output_tokens":4096,', "messages": "{"}
    assert raw.removesuffix(rest) == limits.get(api, '{"max_tokens":4096,"stream_options":{"include_usage":true},')


# Answers, written as no encoder of ours would; the vendor's ids and unknown fields pass.
ANSWERS = {
    "responses": r"""{"id" : "resp_of-vendor", "object":"response","status":"completed" , "model" : "MODEL","new":[1.0, 1e3],
 "output":[{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"c2Vh\u0062A=="},
 {"id":"msg_1","type":"message","role":"assistant","status":"completed",
  "content":[{"type":"output_text","text":"Gr\u00fc\u00dfe\/ é \u2028","annotations":[]}]}],
 "usage":{"input_tokens":7,"output_tokens":5,"total_tokens":12}}""",
    "messages": r"""{"id" : "msg_of-vendor", "type":"message","role":"assistant" , "model" : "MODEL","new":[1.0, 1e3],
 "content":[{"type":"thinking","thinking":"Hm.","signature":"c2Vh\u0062A=="},
 {"type":"text","text":"Gr\u00fc\u00dfe\/ é \u2028","citations":null}],
 "stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":5}}""",
}
EVENTS = {
    "responses": r"""event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_v","object":"response" , "model" : "MODEL","output":[]}}

event: response.new_kind
data: {"type":"response.new_kind","sequence_number":1 , "x":1.0}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"msg_1","type":"message","content":[]}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":3,"output_index":0,"content_index":0,"delta":"Gr\u00fc\u00dfe","obfuscation":"a"}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":4,"output_index":0,"content_index":0,"delta" : " é\/"}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":5,"output_index":0,"item":{"id":"msg_1","type":"message","content":[]}}

event: response.completed
data: {"type":"response.completed","sequence_number":6,"response":{"id":"resp_v","object":"response","status":"completed","model":"MODEL","output":[{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Grüße é/"}]}],"usage":{"input_tokens":7,"output_tokens":5,"total_tokens":12}}}

data: [DONE]

""",
    "messages": r"""event: message_start
data: {"type":"message_start","message":{"id":"msg_v","type":"message","role":"assistant" , "model" : "MODEL","content":[],"usage":{"input_tokens":7,"output_tokens":1}}}

event: ping
data: {"type": "ping"}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2Vh\u0062A=="}}

event: content_block_stop
data: {"type":"content_block_stop","index":0 }

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Gr\u00fc\u00dfe"}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta" , "text":" é\/"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}

event: message_stop
data: {"type":"message_stop" }

""",
}


async def balance(service: Service, headers: dict[str, str]) -> int:
    found = (await service.client.get("/billing/account", headers=headers)).json()
    assert found["held_micros"] == 0
    return int(found["wallet_balance_micros"])


@each("api", PATHS)
async def test_json_answer_keeps_its_bytes_and_is_charged(
    service: Service, headers: dict[str, str], upstream: FormatServer, api: str
) -> None:
    upstream.played["a"] = ANSWERS[api].replace("MODEL", "vendors-own-2026").encode()
    before = await balance(service, headers)
    answer = await post(service, headers, api, text_of(api, f"paid-{api}/plays-a"))
    assert answer.status_code == 200
    assert answer.text == ANSWERS[api].replace("MODEL", f"paid-{api}/plays-a")
    assert answer.headers["x-service-cost-micros"] == "12"
    assert await balance(service, headers) == before - 12


@each("api, end", [(api, end) for api in PATHS for end in ("\n", "\r\n", "\r")])
async def test_events_keep_their_bytes_and_are_charged(
    service: Service, headers: dict[str, str], upstream: FormatServer, api: str, end: str
) -> None:
    upstream.played["a"] = EVENTS[api].replace("MODEL", "vendors-own-2026").replace("\n", end).encode()
    before = await balance(service, headers)
    answer = await post(service, headers, api, text_of(api, f"paid-{api}/plays-a", ', "stream":true'))
    assert answer.status_code == 200
    assert answer.text == EVENTS[api].replace("MODEL", f"paid-{api}/plays-a")
    assert await balance(service, headers) == before - 12


@each(
    ("api", "kind"),
    [
        *(("messages", kind) for kind in ("items", "text", "names", "answer")),
        ("responses", "items"),
        ("responses", "answer"),
    ],
)
async def test_large_bodies_do_not_block_the_event_loop(
    service: Service,
    headers: dict[str, str],
    upstream: FormatServer,
    api: str,
    kind: str,
) -> None:
    """The watchdog fails a test whose event loop was held."""
    WATCHDOG.most_seconds = 0.05
    said = [{"role": "user", "content": "hi"}]
    body: dict[str, Any] = {"model": f"free-{api}/plays-a", "metadata": {"a": "\\u0061"}, "max_tokens": 5}
    if kind == "items":
        said *= 20_000
    elif kind == "text":
        said[0]["content"] = 'é"' * 4_000_000
    elif kind == "names":
        said = [{"role": "user", "content": "model"} for _ in range(10_000)]
    long = "x" * (7_000_000 if kind == "answer" else 1)
    upstream.played["a"] = ANSWERS[api].replace("\\u2028", long).encode()
    body["input" if api == "responses" else "messages"] = said
    answer = await post(service, headers, api, orjson.dumps(body))
    assert answer.status_code == 200, answer.text[:500]
    sent = {**body, "model": "plays-a"} | ({"store": False} if api == "responses" else {})
    assert upstream.requests[-1].body == sent
    assert answer.content == upstream.played["a"].replace(b'"MODEL"', f'"free-{api}/plays-a"'.encode())


CUT_ENDS = {"responses": "response.failed", "messages": "error"}


def events_in(text: str) -> list[dict[str, Any]]:
    blocks = [block.rpartition("data: ")[2] for block in text.split("\n\n")[:-1]]
    return [json.loads(data) for data in blocks if data != "[DONE]"]


@each("api", PATHS)
async def test_cut_stream_ends_with_the_error_of_its_format(
    service: Service, headers: dict[str, str], upstream: FormatServer, api: str
) -> None:
    blocks = EVENTS[api].replace("[DONE]", "{}").split("\n\n")
    for count in range(1, len(blocks) - (3 if api == "messages" else 2)):
        passed = "\n\n".join(blocks[:count]) + "\n\n"
        upstream.played["a"] = passed.encode()
        answer = await post(service, headers, api, text_of(api, f"paid-{api}/plays-a", ', "stream":true'))
        if answer.status_code != 200:  # before the first part of the answer
            assert answer.status_code == 502 and "cut off" in answer.text
            continue
        shown = passed.replace("MODEL", f"paid-{api}/plays-a")
        assert answer.text.startswith(shown)
        last, *others = events_in(answer.text.removeprefix(shown))
        assert last["type"] == CUT_ENDS[api] and not others
        if api == "responses":
            before = events_in(passed)
            assert last["sequence_number"] == before[-1]["sequence_number"] + 1
            assert last["response"]["id"] == "resp_v" and last["response"]["error"]["code"] == "server_error"
    assert await balance(service, headers) < 1_000_000  # for the texts that were sent


@each("api", PATHS)
async def test_end_of_a_stream_waits_for_the_settlement(
    service: Service, headers: dict[str, str], upstream: FormatServer, api: str
) -> None:
    upstream.played["a"] = EVENTS[api].encode()
    upstream.requests.clear()
    body = text_of(api, f"paid-{api}/plays-a+slow-300ms", ', "stream":true')
    asking = asyncio.create_task(post(service, headers, api, body))
    await until(lambda: upstream.requests)
    with full_disk():
        answer = await asking
    *_, before, last = events_in(answer.text)
    assert before["type"] in ("content_block_stop", "response.output_item.done") and last["type"] == CUT_ENDS[api]
    assert "message_stop" not in answer.text and "response.completed" not in answer.text
    advance_loop(2)  # then it is stored


@each("api", PATHS)
async def test_answer_beyond_its_limit_ends_there(
    service: Service, headers: dict[str, str], upstream: FormatServer, api: str
) -> None:
    text = EVENTS[api].replace("Gr\\u00fc\\u00dfe", "x" * 32 * 64).replace(" é", "more" * 32 * 64)
    upstream.played["a"] = text.encode()
    limit = ', "max_output_tokens":64' if api == "responses" else ""
    answer = await post(service, headers, api, text_of(api, f"paid-{api}/plays-a", f', "stream":true{limit}'))
    events = events_in(answer.text)
    assert "more" not in answer.text
    if api == "responses":
        assert events[-1]["type"] == "response.incomplete"
        assert events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
        assert answer.text.endswith("data: [DONE]\n\n")
    else:
        assert [event["type"] for event in events[-3:]] == ["content_block_stop", "message_delta", "message_stop"]
        assert events[-2]["delta"]["stop_reason"] == "max_tokens"


SEARCHES = {
    "responses": {"input": "Did it rain?", "tools": [{"type": "web_search"}, {"type": "file_search"}]},
    "messages": {
        "messages": [{"role": "user", "content": "Did it rain?"}],
        "max_tokens": 64,
        "tools": [
            {"type": "web_search_20250305", "name": "web_search"},
            {"type": "code_execution_20250825", "name": "x"},
        ],
    },
}


@each("api, stream", [(api, stream) for api in PATHS for stream in (False, True)])
async def test_call_of_a_priced_hosted_tool_is_charged_and_shown(
    service: Service, headers: dict[str, str], upstream: FormatServer, api: str, stream: bool
) -> None:
    model, before = f"hosted-{api}/cassette-web_search", await balance(service, headers)
    body = {"model": model, "stream": stream, **SEARCHES[api]}
    answer = await post(service, headers, api, json.dumps(body))
    assert answer.status_code == 200 and "It rained on Monday." in answer.text
    other = SEARCHES[api]["tools"][1]["type"]
    assert answer.headers["x-service-ignored-tools"] == other and other not in upstream.requests[-1].raw.decode()
    assert await balance(service, headers) == before - 320 - 70 - 10_000
    entry = (await service.client.get("/billing/ledger", headers=headers)).json()["data"][0]
    assert entry["description"] == f"{model}: 320 input and 70 output tokens, 1 web_search"
    usage = (await service.client.get("/billing/usage", headers=headers)).json()["data"]
    assert sum(row["cost_micros"] for row in usage if row["model"] == model) % 10_390 == 0


@each("api", PATHS)
async def test_hold_has_the_price_of_eight_calls(
    service: Service, headers: dict[str, str], upstream: FormatServer, api: str
) -> None:
    upstream.requests.clear()
    limit = {"monthly_limit_micros": 80_000}
    assert (await service.client.patch("/user/settings", json=limit, headers=headers)).status_code == 200
    body = {"model": f"hosted-{api}/cassette-web_search", **SEARCHES[api]}
    answer = await post(service, headers, api, json.dumps(body))
    assert answer.status_code in (400, 402) and "insufficient" in answer.text + "insufficient" * (api == "messages")
    assert upstream.requests == []
    tools = [{**tool, "max_uses": 1} for tool in SEARCHES[api]["tools"]]
    answer = await post(service, headers, api, json.dumps({**body, "tools": tools}))
    assert answer.status_code == 200
    assert (
        await service.client.patch("/user/settings", json={"monthly_limit_micros": None}, headers=headers)
    ).is_success


@each("api", PATHS)
async def test_answers_come_back_whole_in_the_next_request(
    service: Service, headers: dict[str, str], upstream: FormatServer, api: str
) -> None:
    body = {"model": f"hosted-{api}/cassette-web_search", **SEARCHES[api]}
    said = (await post(service, headers, api, json.dumps(body))).json()
    field = "input" if api == "responses" else "messages"
    turn = said["output"] if api == "responses" else [{"role": "assistant", "content": said["content"]}]
    again = {**body, field: [{"role": "user", "content": "Did it rain?"}, *turn, {"role": "user", "content": "Sure?"}]}
    answer = await post(service, headers, api, json.dumps(again))
    assert answer.status_code == 200, answer.text
    assert upstream.requests[-1].body[field] == again[field]


async def test_reference_to_a_passed_item_is_resolved(
    service: Service, headers: dict[str, str], upstream: FormatServer
) -> None:
    upstream.played["a"] = ANSWERS["responses"].encode()
    await post(service, headers, "responses", text_of("responses", "free-responses/plays-a"))
    items = [{"type": "item_reference", "id": "rs_1"}, {"role": "user", "content": "Go on."}]
    body = {"model": "free-responses/plays-a", "input": items}
    answer = await post(service, headers, "responses", json.dumps(body))
    assert answer.status_code == 200, answer.text
    assert upstream.requests[-1].body["input"][0]["encrypted_content"] == "c2VhbA=="
    body["input"] = [{"type": "item_reference", "id": "rs_unknown"}]
    answer = await post(service, headers, "responses", json.dumps(body))
    assert answer.status_code == 404 and "rs_unknown" in answer.text


async def test_headers_of_anthropic_are_passed_on_the_diagonal_alone(
    service: Service, headers: dict[str, str], upstream: FormatServer
) -> None:
    sent = {**headers, "anthropic-version": "2024-01-01", "anthropic-beta": "a-2025-01-01, context-1m-2025-08-07"}
    seen = {}
    for model in ("free-messages/ok", "paid-messages/ok", "free-responses/ok", "free-chat/ok"):
        assert (await post(service, sent, "messages", text_of("messages", model))).status_code == 200
        got = upstream.requests[-1].headers
        seen[model.partition("/")[0]] = (got.get("anthropic-version"), got.get("anthropic-beta"))
    assert seen == {
        "free-messages": ("2024-01-01", "a-2025-01-01, context-1m-2025-08-07"),
        "paid-messages": ("2024-01-01", "a-2025-01-01"),
        "free-responses": (None, None),
        "free-chat": (None, None),
    }
    sent["anthropic-beta"] = "a" * 1001
    answer = await post(service, sent, "messages", text_of("messages", "free-messages/ok"))
    assert answer.status_code == 400


@each("api", PATHS)
async def test_users_own_server_gets_what_the_caller_sent(service: Service, upstream: FormatServer, api: str) -> None:
    more = ', "store" : true, "service_tier":"flex", "tools":[{"type":"file_search" , "name":"f"}]'
    key = await service.bearer()
    own = await add_provider(service, key, upstream.base_url, api=api)
    answer = await post(service, key, api, text_of(api, f"{own['name']}/ok", more))
    assert answer.status_code == 200, answer.text
    assert upstream.requests[-1].raw.decode() == text_of(api, "ok", more)


@each("api", PATHS)
async def test_providers_key_never_comes_back(
    service: Service, headers: dict[str, str], upstream: FormatServer, api: str
) -> None:
    key = "sk-of-the-operator-0123"
    for written in (key, key.replace("o", "\\u006f"), key.replace("-", "\\u002d")):
        for text, more in ((ANSWERS[api], ""), (EVENTS[api], ', "stream":true')):
            upstream.played["a"] = (
                text.replace("c2Vh\\u0062A==", written).replace("Gr\\u00fc\\u00dfe", written).encode()
            )
            answer = await post(service, headers, api, text_of(api, f"paid-{api}/plays-a", more))
            assert answer.status_code == 200
            shown = json.dumps(events_in(answer.text) if more else answer.json())
            assert "of-the-operator" not in answer.text + shown
            assert "***" in answer.text


@each("api", PATHS)
async def test_other_form_than_asked_for_is_translated(
    service: Service, headers: dict[str, str], upstream: FormatServer, api: str
) -> None:
    upstream.played["a"] = ANSWERS[api].encode()
    answer = await post(service, headers, api, text_of(api, f"paid-{api}/plays-a", ', "stream":true'))
    assert answer.headers["content-type"] == "text/event-stream" and "Gr\\u00fc\\u00dfe" in answer.text
    upstream.played["a"] = EVENTS[api].encode()
    answer = await post(service, headers, api, text_of(api, f"paid-{api}/plays-a"))
    assert answer.json()["usage"]["output_tokens"] == 5


@each("api", PATHS)
async def test_repeat_with_an_idempotency_key_gets_the_same_bytes(
    service: Service, headers: dict[str, str], upstream: FormatServer, api: str
) -> None:
    for number, more in enumerate(("", ', "stream":true')):
        upstream.played["a"] = (EVENTS if more else ANSWERS)[api].encode()
        sent = {**headers, "idempotency-key": f"{api}-{number}"}
        before, asked = await balance(service, headers), len(upstream.requests)
        first = await post(service, sent, api, text_of(api, f"paid-{api}/plays-a", more))
        again = await post(service, sent, api, text_of(api, f"paid-{api}/plays-a", more))
        assert first.content == again.content and again.headers["x-service-replayed"] == "true"
        assert len(upstream.requests) <= asked + 2 and await balance(service, headers) == before - 12


@each("api", PATHS)
async def test_error_of_the_model_server_comes_in_the_callers_format(
    service: Service, headers: dict[str, str], upstream: FormatServer, api: str
) -> None:
    event = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    if api == "responses":
        event = {"type": "response.failed", "response": {"status": "failed", "error": {"code": "x", "message": "Over"}}}
    head = EVENTS[api].split("\n\n")[: 5 if api == "responses" else 3]
    upstream.played["a"] = ("\n\n".join(head) + f"\n\nevent: {event['type']}\ndata: {json.dumps(event)}\n\n").encode()
    answer = await post(service, headers, api, text_of(api, f"paid-{api}/plays-a", ', "stream":true'))
    assert answer.status_code == 200
    last = events_in(answer.text)[-1]
    assert last["type"] == CUT_ENDS[api] and "model server" in json.dumps(last)


@each("api", PATHS)
async def test_state_of_the_vendor_stays_refused(service: Service, headers: dict[str, str], api: str) -> None:
    fields = ["previous_response_id", "conversation", "prompt"] if api == "responses" else ["thread", "compaction"]
    for field in fields:
        answer = await post(service, headers, api, text_of(api, f"free-{api}/ok", f', "{field}":"x"'))
        assert answer.status_code == 400 and field in answer.text
