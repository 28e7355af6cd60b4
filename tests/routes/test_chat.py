"""Chat and models through HTTP with the built-in provider."""

import asyncio
import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from svc.billing import wallet
from svc.config import Config
from svc.server.session_answer import SessionAnswer
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.cases import each
from tests.support.model_server import ModelServer
from tests.support.waiting import until

COMPLETIONS = "/v1/chat/completions"


def ask(text: str, model: str = "builtin/echo", **fields: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}], **fields}


def events(answer: httpx.Response) -> list[Any]:
    """The payloads of a chat stream, `[DONE]` as itself; checks the framing of every block."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/event-stream" and "content-length" not in answer.headers
    assert answer.content.endswith(b"\n\n") and answer.content.isascii()
    blocks = answer.content.decode().split("\n\n")[:-1]
    assert all(block.startswith("data: ") and "\n" not in block for block in blocks)
    return [block[6:] if block == "data: [DONE]" else orjson.loads(block[6:]) for block in blocks]


@pytest.fixture
async def headers(service: Service) -> dict[str, str]:
    return bearer((await service.make_key(await service.bearer()))["key"])


async def test_json_answer_has_all_fields_of_clients(service: Service, headers: dict[str, str]) -> None:
    answer = await service.client.post(COMPLETIONS, json=ask("Hello  there\n🙂"), headers=headers)
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"id", "object", "created", "model", "choices", "usage"}
    assert (
        body["id"].startswith("chatcmpl-") and body["object"] == "chat.completion" and body["model"] == "builtin/echo"
    )
    assert body["created"] == int(service.clocks.now)
    message = {"role": "assistant", "content": "Hello  there\n🙂", "refusal": None}
    assert body["choices"] == [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}]
    usage = body["usage"]
    assert usage["prompt_tokens"] + usage["completion_tokens"] == usage["total_tokens"] > 0


@each("include_usage", [True, False, None])
async def test_stream_follows_the_grammar(
    service: Service, headers: dict[str, str], include_usage: bool | None
) -> None:
    options = {} if include_usage is None else {"stream_options": {"include_usage": include_usage}}
    text = "one two\u2028three 🙂 data: [DONE]\n\ndata: {}"
    *chunks, done = events(
        await service.client.post(COMPLETIONS, json=ask(text, stream=True, **options), headers=headers)
    )
    assert done == "[DONE]"
    assert len({(chunk["id"], chunk["created"], chunk["model"], chunk["object"]) for chunk in chunks}) == 1
    if include_usage:
        last = chunks.pop()
        assert last["choices"] == [] and last["usage"]["total_tokens"] > 0
        assert all(chunk["usage"] is None for chunk in chunks)
    else:
        assert all("usage" not in chunk for chunk in chunks)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": ""} and all("role" not in delta for delta in deltas[1:])
    assert "".join(delta.get("content", "") for delta in deltas) == text
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]


async def test_n_answers_are_numbered_in_json_and_stream(service: Service, headers: dict[str, str]) -> None:
    body = (await service.client.post(COMPLETIONS, json=ask("hi", n=3), headers=headers)).json()
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]
    *chunks, _ = events(await service.client.post(COMPLETIONS, json=ask("hi", n=3, stream=True), headers=headers))
    finished = [choice["index"] for chunk in chunks for choice in chunk["choices"] if choice["finish_reason"]]
    assert sorted(finished) == [0, 1, 2]


async def test_token_limit_and_stop_sequences_end_an_answer(service: Service, headers: dict[str, str]) -> None:
    text = "alpha beta gamma delta " * 20
    limited = (await service.client.post(COMPLETIONS, json=ask(text, max_tokens=3), headers=headers)).json()
    assert limited["choices"][0]["finish_reason"] == "length" and limited["usage"]["completion_tokens"] <= 3
    stopped = (await service.client.post(COMPLETIONS, json=ask(text, stop=["gamma"]), headers=headers)).json()
    assert (
        stopped["choices"][0]["message"]["content"] == "alpha beta "
        and stopped["choices"][0]["finish_reason"] == "stop"
    )


TOOL = {
    "type": "function",
    "function": {
        "name": "calculate",
        "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}},
    },
}


async def test_the_assistant_calls_a_tool_and_answers_with_its_result(
    service: Service, headers: dict[str, str]
) -> None:
    request = ask("What is 12 * (3 + 4)?", "builtin/assistant", tools=[TOOL])
    choice = (await service.client.post(COMPLETIONS, json=request, headers=headers)).json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls" and choice["message"]["content"] is None
    (call,) = choice["message"]["tool_calls"]
    assert call["type"] == "function" and orjson.loads(call["function"]["arguments"]) == {"expression": "12 * (3 + 4)"}
    result = {"role": "tool", "tool_call_id": call["id"], "content": "84"}
    request["messages"] += [choice["message"], result]
    final = (await service.client.post(COMPLETIONS, json=request, headers=headers)).json()["choices"][0]
    assert (
        final["finish_reason"] == "stop"
        and "84" in final["message"]["content"]
        and "tool_calls" not in final["message"]
    )


async def test_streamed_tool_call_is_opened_once(service: Service, headers: dict[str, str]) -> None:
    request = ask("What is 12 * (3 + 4)?", "builtin/assistant", tools=[TOOL], stream=True)
    *chunks, _ = events(await service.client.post(COMPLETIONS, json=request, headers=headers))
    pieces = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", [])]
    assert (
        pieces[0]["index"] == 0 and pieces[0]["function"] == {"name": "calculate", "arguments": ""} and pieces[0]["id"]
    )
    assert all(set(piece) == {"index", "function"} and set(piece["function"]) == {"arguments"} for piece in pieces[1:])
    assert orjson.loads("".join(piece["function"]["arguments"] for piece in pieces)) == {"expression": "12 * (3 + 4)"}
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_the_response_format_makes_the_answer_json(service: Service, headers: dict[str, str]) -> None:
    schema = {
        "type": "object",
        "properties": {"sum": {"type": "integer"}},
        "required": ["sum"],
        "additionalProperties": False,
    }
    for form in (
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"name": "sum", "schema": schema, "strict": True}},
    ):
        body = (
            await service.client.post(
                COMPLETIONS, json=ask("2+2", "builtin/assistant", response_format=form), headers=headers
            )
        ).json()
        value = orjson.loads(body["choices"][0]["message"]["content"])
        assert isinstance(value, dict) and (form["type"] == "json_object" or isinstance(value["sum"], int))


@pytest.mark.parametrize(
    ("script", "status", "code"),
    [
        ("fail 400 too long", 400, None),
        ("fail 429 slow down", 503, "upstream_error"),
        ("fail 401 bad key svc", 502, "upstream_error"),
        ("fail 500 oops", 502, "upstream_error"),
        ("fail 503 busy", 503, "upstream_error"),
        ("drop", 502, "upstream_error"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_error_before_the_first_byte_is_an_http_status(
    service: Service, headers: dict[str, str], script: str, status: int, code: str | None, stream: bool
) -> None:
    answer = await service.client.post(COMPLETIONS, json=ask(script, "builtin/script", stream=stream), headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    error = answer.json()["error"]
    assert {"message", "type", "code", "param"} <= set(error) and error["code"] == code
    assert answer.headers["x-ratelimit-remaining-requests"] == "19"


@each("fault", ["fail 500 oops", "drop"])
async def test_error_after_the_first_byte_ends_the_stream_without_finish_chunk(
    service: Service, headers: dict[str, str], fault: str
) -> None:
    request = ask(f"say Hello\n{fault}", "builtin/script", stream=True, stream_options={"include_usage": True})
    *chunks, error, done = events(await service.client.post(COMPLETIONS, json=request, headers=headers))
    assert done == "[DONE]" and set(error) == {"error"} and error["error"]["code"] == "upstream_error"
    assert all(choice["finish_reason"] is None for chunk in chunks for choice in chunk["choices"])
    assert all(chunk["choices"] for chunk in chunks)


@each(
    ("body", "status", "code", "param"),
    [
        ({"messages": []}, 400, None, "messages"),
        ({}, 400, "missing_field", "messages"),
        ({"messages": "hi"}, 400, "invalid_value", "messages"),
        ({"messages": [{"role": "user", "content": "hi"}], "model": 5}, 400, "invalid_value", "model"),
        ({"messages": [{"role": "user", "content": "hi"}], "model": "no/such"}, 404, "model_not_found", "model"),
        ({"messages": [{"role": "user", "content": "hi"}], "model": "builtin/"}, 404, "model_not_found", "model"),
        ({"messages": [{"role": "user", "content": "hi"}], "n": 0}, 400, "invalid_value", "n"),
        ({"messages": [{"role": "user", "content": "hi"}], "stream": "yes"}, 400, "invalid_value", "stream"),
        ({"messages": [{"role": "user", "content": "hi"}], "temperature": 3}, 400, "invalid_value", "temperature"),
    ],
)
async def test_error_names_the_wrong_field(
    service: Service, headers: dict[str, str], body: dict[str, Any], status: int, code: str | None, param: str
) -> None:
    answer = await service.client.post(COMPLETIONS, json=body, headers=headers)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (status, param) and (code is None or error["code"] == code)


async def test_known_fields_may_be_null_and_unknown_ones_are_accepted(
    service: Service, headers: dict[str, str]
) -> None:
    nulls = dict.fromkeys(
        ("stream", "temperature", "tools", "stop", "n", "max_tokens", "stream_options", "user", "model")
    )
    body = {**ask("hi"), **nulls, "x_unknown": {"a": 1}}
    assert (await service.client.post(COMPLETIONS, json=body, headers=headers)).status_code == 200


async def test_default_model_of_the_account_answers_before_the_assistant(
    service: Service, headers: dict[str, str]
) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}]}
    assert (await service.client.post(COMPLETIONS, json=body, headers=headers)).json()["model"] == "builtin/assistant"
    await service.client.patch("/user/settings", json={"default_model": "builtin/echo"}, headers=headers)
    assert (await service.client.post(COMPLETIONS, json=body, headers=headers)).json()["model"] == "builtin/echo"


async def test_the_list_of_models_has_every_model_with_kind_and_pricing(
    service: Service, headers: dict[str, str]
) -> None:
    listed = (await service.client.get("/v1/models", headers=headers)).json()
    assert listed["object"] == "list" and listed["has_more"] is False
    models = {model["id"]: model for model in listed["data"]}
    assert {"builtin/echo", "builtin/assistant", "builtin/assistant-paid", "builtin/script"} <= set(models)
    for model in models.values():
        assert (
            model["object"] == "model"
            and model["created"] > 0
            and model["owned_by"] == "builtin"
            and model["byok"] is False
        )
        assert (await service.client.get(f"/v1/models/{model['id']}", headers=headers)).json() == model
    assert models["builtin/assistant-paid"]["pricing"] == {
        "input_micros_per_million_tokens": 500_000,
        "output_micros_per_million_tokens": 1_500_000,
    }
    assert {name for name, model in models.items() if model["capabilities"] == ["tools"]} == {
        f"{prefix}{name}" for name in ("assistant", "assistant-paid", "script") for prefix in ("", "builtin/")
    }
    assert {model["context_length"] for model in models.values() if model["kind"] == "chat"} == {4 * 1024 * 1024}
    missing = await service.client.get("/v1/models/no/such:model", headers=headers)
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")


async def test_built_in_models_have_their_names_without_a_slash_as_aliases(
    service: Service, headers: dict[str, str]
) -> None:
    listed = {model["id"]: model for model in (await service.client.get("/v1/models", headers=headers)).json()["data"]}
    for name in [name.removeprefix("builtin/") for name in listed if name.startswith("builtin/")]:
        assert listed[name] == {**listed[f"builtin/{name}"], "id": name, "alias_of": f"builtin/{name}"}
    body = {"model": "echo", "messages": [{"role": "user", "content": "hi"}]}
    answer = (await service.client.post(COMPLETIONS, json=body, headers=headers)).json()
    assert (answer["model"], answer["choices"][0]["message"]["content"]) == ("builtin/echo", "hi")


async def test_alias_of_the_catalog_wins_over_that_of_a_built_in_model(config: Config, clocks: Clocks) -> None:
    async with ModelServer() as upstream:
        catalog = f"""
            default_model = "assistant"
            [[providers]]
            name = "lab"
            base_url = "{upstream.base_url}"
            models = [{{ id = "ok", aliases = ["assistant"] }}, {{ id = "echo" }}]
        """
        async with serving(config, clocks, catalog) as service:
            headers = await service.bearer()
            listed = (await service.client.get("/v1/models", headers=headers)).json()["data"]
            found = {model["id"]: model["alias_of"] for model in listed if "alias_of" in model}
            assert found["assistant"] == "lab/ok" and found["echo"] == "builtin/echo"
            assert [model["id"] for model in listed].count("assistant") == 1
            for model in ("assistant", None):
                body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
                answer = await service.client.post(COMPLETIONS, json=body, headers=headers)
                assert answer.json()["model"] == "lab/ok"


async def test_alias_is_accepted_as_a_model_everywhere(config: Config, clocks: Clocks, tmp_path: Path) -> None:
    async with ModelServer() as upstream:
        (tmp_path / "catalog.toml").write_text(f"""
            default_model = "gpt-5"
            [[providers]]
            name = "lab"
            base_url = "{upstream.base_url}"
            models = [
                {{ id = "echo", aliases = ["gpt-5"], capabilities = ["tools", "vision"], context_length = 8192 }},
                {{ id = "status-503", aliases = ["broken"], fallback = "gpt-5" }},
                {{ id = "ok", kind = "image", aliases = ["gpt-image"] }},
                {{ id = "seconds-1", kind = "speech", aliases = ["tts-1"] }},
            ]
        """)
        async with serving(replace(config, catalog=tmp_path / "catalog.toml"), clocks) as service:
            client, headers = service.client, bearer((await service.make_key(await service.bearer()))["key"])
            listed = {one["id"]: one for one in (await client.get("/v1/models", headers=headers)).json()["data"]}
            assert listed["gpt-5"] == {**listed["lab/echo"], "id": "gpt-5", "alias_of": "lab/echo"}
            assert (listed["gpt-5"]["capabilities"], listed["gpt-5"]["context_length"]) == (["tools", "vision"], 8192)
            assert (listed["lab/ok"]["capabilities"], listed["lab/ok"]["context_length"]) == ([], None)
            for name in ("gpt-5", "lab/echo"):
                assert (await client.get(f"/v1/models/{name}", headers=headers)).json() == listed[name]
            assert (await client.get("/v1/models/gpt-6", headers=headers)).status_code == 404

            async def answered(**fields: str) -> str:
                body = {"messages": [{"role": "user", "content": "hi"}], **fields}
                return str((await client.post(COMPLETIONS, json=body, headers=headers)).json()["model"])

            assert [await answered(model="gpt-5"), await answered()] == ["lab/echo"] * 2
            assert await answered(model="broken") == "lab/status-503"  # and its fallback answered
            settings = await client.patch("/user/settings", json={"default_model": "broken"}, headers=headers)
            assert settings.json()["default_model"] == "broken" and settings.json()["chat_model"] == "lab/status-503"
            run = await client.post(
                "/v1/agents/run", json={"goal": "hi", "model": "gpt-5", "tools": []}, headers=headers
            )
            assert orjson.loads(run.content.split(b"\n\n")[0][6:])["model"] == "lab/echo"
            picture = await client.post(
                "/v1/images/generations", json={"prompt": "x", "model": "gpt-image"}, headers=headers
            )
            assert picture.status_code == 200
            for path in ("/v1/audio/generate", "/v1/audio/speech"):
                spoken = await client.post(
                    path, json={"input": "hi", "model": "tts-1", "voice": "alloy"}, headers=headers
                )
                assert spoken.status_code == 200
            wrong_kind = await client.post(COMPLETIONS, json=ask("hi", "tts-1"), headers=headers)
            assert wrong_kind.status_code == 400 and wrong_kind.json()["error"]["param"] == "model"


async def test_shutdown_after_the_last_chunk_keeps_the_answer_complete(service: Service) -> None:
    headers = await service.bearer()
    script = {"role": "user", "content": "wait 300\nsay hello"}
    body = {"model": "builtin/script", "messages": [script], "stream": True}
    asking = asyncio.create_task(service.client.post("/v1/chat/completions", json=body, headers=headers))
    open_answers: dict[str, SessionAnswer] = service.state["open_answers"]
    await until(lambda: any(answer.in_progress for answer in open_answers.values()))
    (answer,) = open_answers.values()
    go_on = threading.Event()
    writing = asyncio.ensure_future(service.state["db"].write(lambda tx: go_on.wait(20)))
    await until(lambda: answer.ended.status == "complete")  # its end waits for the writer
    service.state["drain"].begin()
    go_on.set()
    assert await writing
    text = (await asking).text
    assert '"finish_reason":"stop"' in text and "error" not in text and text.endswith("data: [DONE]\n\n")


@each("path", [COMPLETIONS, "/v1/responses"])
async def test_long_answer_that_a_shutdown_finds_whole_is_sent_and_paid(
    config: Config, clocks: Clocks, path: str
) -> None:
    """With an Idempotency-Key, an answer of over 256 KiB is stored before its settlement."""
    async with ModelServer() as upstream:
        catalog = f"""
            [[providers]]
            name = "lab"
            base_url = "{upstream.base_url}"
            [[providers.models]]
            id = "echo+slow-300ms"
            output_micros_per_million_tokens = 2000000
        """
        config = replace(config, data_dir=config.data_dir.with_name(path.rpartition("/")[2]))
        async with serving(config, clocks, catalog) as service:
            signed_up = await service.sign_up()
            db, key = service.state["db"], await service.make_key(bearer(signed_up["access_token"]))
            await db.write(wallet.book, signed_up["user"]["id"], 5_000_000, description="", now_seconds=1.0)
            said = f"{'x' * 5_000} " * 60
            asked = {"input": said} if path == "/v1/responses" else {"messages": [{"role": "user", "content": said}]}
            limits = {"max_tokens": 100_000, "max_output_tokens": 100_000}
            body = {"model": "lab/echo+slow-300ms", "stream": True, **limits, **asked}
            headers = {**bearer(key["key"]), "idempotency-key": "k"}
            asking = asyncio.create_task(service.client.post(path, json=body, headers=headers))
            await until(lambda: upstream.requests)
            held, go_on = threading.Event(), threading.Event()
            writing = asyncio.ensure_future(db.write(lambda tx: held.set() or go_on.wait(20)))
            await until(held.is_set)
            (claim,) = service.state["claims"].running.values()
            await until(lambda: claim.size >= len(said) and db.waiting()[0])  # the whole answer waits for the writer
            service.state["drain"].begin()
            go_on.set()
            await writing
            answer = await asking
            assert b"shutting_down" not in answer.content and answer.content.endswith(b"data: [DONE]\n\n")
            assert (b"response.completed" in answer.content) is (path == "/v1/responses")
            numbers = [int(number) for number in re.findall(rb'"sequence_number":(\d+)', answer.content)]
            assert numbers == list(range(len(numbers)))
            query = "SELECT amount_micros FROM ledger WHERE model IS NOT NULL"
            assert [row[0] for row in await db.read(lambda conn: conn.execute(query).fetchall())] == [-10]
