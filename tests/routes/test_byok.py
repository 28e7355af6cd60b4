"""Chat, agents and lists through the caller's own provider."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from svc.config import Config
from svc.inference.providers import KeyBox
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.support.byok import KEY, Names, add_provider, http_answer, raw_server
from tests.support.cases import each
from tests.support.format_server import FormatServer
from tests.support.model_server import ModelServer
from tests.support.waiting import logged, until
from tests.support.wire import listening

COMPLETIONS = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "hi"}]


@dataclass
class Own:
    """An account with its own provider `mine`, which is `upstream`."""

    service: Service
    upstream: ModelServer
    headers: dict[str, str]
    provider: dict[str, Any]

    @property
    def path(self) -> str:
        return f"/user/providers/{self.provider['id']}"

    async def chat(self, model: str = "mine/ok", **fields: Any) -> httpx.Response:
        self.service.clocks.advance(60)  # a full chat bucket each time
        body = {"model": model, "messages": HELLO, **fields}
        return await self.service.client.post(COMPLETIONS, json=body, headers=self.headers)

    async def change(self, **fields: Any) -> None:
        changed = await self.service.client.patch(self.path, json=fields, headers=self.headers)
        assert changed.status_code == 200, changed.text

    async def listed(self) -> list[str]:
        """The ids of GET /v1/models that are the person's own."""
        answer = await self.service.client.get("/v1/models", headers=self.headers)
        assert answer.status_code == 200
        return [model["id"] for model in answer.json()["data"] if model["byok"]]


@pytest.fixture
def config(config: Config) -> Config:
    return replace(config, resolve=Names())


@pytest.fixture
async def own(service: Service) -> AsyncIterator[Own]:
    async with ModelServer() as upstream:
        headers = await service.bearer()
        provider = await add_provider(service, headers, upstream.base_url, name="mine")
        yield Own(service, upstream, headers, provider)


IMPATIENT_SECONDS = 1.0


@pytest.fixture
async def impatient(config: Config, clocks: Clocks) -> AsyncIterator[Service]:
    """A service that gives providers a short time to list their models."""
    async with serving(replace(config, list_seconds=IMPATIENT_SECONDS), clocks) as service:
        yield service


def events(answer: httpx.Response) -> list[Any]:
    assert answer.status_code == 200, answer.text
    blocks = answer.text.split("\n\n")[:-1]
    return [block[6:] if block == "data: [DONE]" else orjson.loads(block[6:]) for block in blocks]


# --- chat


async def test_chat_is_sent_with_the_provider_key_only(own: Own) -> None:
    own.service.client.cookies.set("session", "a-cookie")
    own.headers |= {
        "x-request-id": "req-of-mine",
        "x-api-key": "sk-other",
        "x-forwarded-for": "10.1.1.1",
        "referer": "https://a.example",
    }
    answer = await own.chat(temperature=0.5)
    assert answer.json()["choices"][0]["message"]["content"] == "Hello, world!"
    assert answer.json()["model"] == "mine/ok" and answer.json()["usage"]["total_tokens"] == 12
    (seen,) = own.upstream.requests
    assert (seen.method, seen.path) == ("POST", "/v1/chat/completions")
    assert seen.body == {"model": "ok", "messages": HELLO, "temperature": 0.5}
    assert seen.headers == {
        "host": f"127.0.0.1:{own.upstream.port}",
        "accept-encoding": "identity",
        "accept": "application/json",
        "user-agent": "svc",
        "content-type": "application/json",
        "authorization": f"Bearer {KEY}",
        "content-length": seen.headers["content-length"],
    }


async def test_format_of_an_own_provider_is_kept_and_changed(own: Own) -> None:
    assert own.provider["api"] == "chat"
    await own.change(api="messages")
    await own.change(name="mine2")
    shown = (await own.service.client.get(own.path, headers=own.headers)).json()
    assert (shown["api"], shown["name"]) == ("messages", "mine2")
    made = await add_provider(own.service, own.headers, own.upstream.base_url, api="responses")
    assert made["api"] == "responses"
    for wrong in ("completions", "", None, 1):
        answer = await own.service.client.patch(own.path, json={"api": wrong}, headers=own.headers)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "api")


async def test_list_of_models_is_asked_with_the_headers_of_the_format(own: Own) -> None:
    await own.change(api="messages")
    assert "mine/ok" in await own.listed()
    seen = own.upstream.requests[-1]
    assert seen.path == "/v1/models?limit=1000", "Anthropic lists 20 without a limit"
    assert (seen.headers["x-api-key"], seen.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in seen.headers


async def test_metrics_separate_errors_of_own_providers(own: Own) -> None:
    def counted() -> int:
        (line,) = re.findall(r"^svc_byok_errors_total (\d+)$", own.service.state["metrics"].text([]), re.MULTILINE)
        return int(line)

    for model, status in (("mine/ok", 200), ("mine/status-404", 404), ("builtin/nothing", 404)):
        assert (await own.chat(model)).status_code == status
    failing = {"role": "user", "content": "fail 500 by the operator's model"}
    assert (await own.chat("builtin/script", messages=[failing])).status_code >= 500
    assert counted() == 0
    for number, model in enumerate(("mine/status-500", "mine/status-503", "mine/html-200"), 1):
        assert (await own.chat(model)).status_code >= 500
        assert counted() == number


async def test_stream_is_passed_on_chunk_by_chunk_with_usage(own: Own) -> None:
    *chunks, done = events(await own.chat(stream=True))
    assert done == "[DONE]" and {chunk["model"] for chunk in chunks} == {"mine/ok"}
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == "Hello, world!"
    assert all("usage" not in chunk for chunk in chunks)
    *_, last, _ = events(await own.chat(stream=True, stream_options={"include_usage": True}))
    assert last["choices"] == [] and last["usage"]["total_tokens"] == 12


async def test_tools_and_tool_calls_are_passed_on(own: Own) -> None:
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    answer = await own.chat("mine/tools", tools=tools)
    choice = answer.json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls" and own.upstream.requests[-1].body["tools"] == tools
    assert [call["function"]["name"] for call in choice["message"]["tool_calls"]] == ["weather", "weather"]
    *chunks, _ = events(await own.chat("mine/tools-bare", tools=tools, stream=True))
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_routing_fields_are_sent_to_own_providers(own: Own) -> None:
    fields = {
        "api_base": "http://a.example",
        "user_config": {"model_list": []},
        "extra_headers": {"x": "y"},
        "provider": {"order": ["a"]},
    }
    await own.chat(**fields, metadata={"api_key": "kept"})
    assert own.upstream.requests[-1].body == {
        "model": "ok",
        "messages": HELLO,
        **fields,
        "metadata": {"api_key": "kept"},
    }


async def test_provider_without_key_gets_no_authorization(own: Own) -> None:
    await own.change(api_key=None)
    assert (await own.chat()).status_code == 200
    assert "authorization" not in own.upstream.requests[-1].headers


async def test_key_is_not_sent_to_a_changed_address(own: Own) -> None:
    async with ModelServer() as elsewhere:
        await own.change(base_url=elsewhere.base_url)
        assert (await own.chat()).status_code == 200 and (await own.chat(stream=True)).status_code == 200
        assert "authorization" not in elsewhere.requests[0].headers | elsewhere.requests[1].headers
        assert own.upstream.requests == []


async def test_provider_headers_are_not_returned(service: Service) -> None:
    headers = await service.bearer()
    body = b'{"choices": [{"message": {"content": "hi"}}]}'
    hostile = (
        b"set-cookie: a=b",
        b"x-evil: 1",
        b"location: http://a.example",
        b"access-control-allow-origin: https://a.example",
    )
    more = (
        b"x-request-id: theirs",
        b"strict-transport-security: max-age=0",
        b"www-authenticate: Basic",
        b"content-security-policy: x",
    )
    for status in ("200 OK", "401 No", "429 Wait"):
        async with raw_server(http_answer(status, body, *hostile, *more)) as raw:
            provider = await add_provider(service, headers, raw.base_url)
            request = {"model": f"{provider['name']}/m", "messages": HELLO}
            got = await service.client.post(COMPLETIONS, json=request, headers=headers)
            assert got.status_code == int(status[:3])
            sent = {*("set-cookie", "x-evil", "location", "access-control-allow-origin", "content-security-policy")}
            assert sent.isdisjoint(got.headers) and got.headers["strict-transport-security"] == "max-age=31536000"
            assert got.headers["x-request-id"] != "theirs" and got.headers.get("www-authenticate") in (None, "Bearer")
    assert "a" not in service.client.cookies


async def test_log_and_records_have_the_model_but_not_the_key(own: Own, tmp_path: Path) -> None:
    await own.chat("mine/ok", messages=[{"role": "user", "content": "a private matter"}])
    await own.chat("mine/quote-key")
    lines = await logged(own.service.log_lines, 2, route=COMPLETIONS)
    assert [line["model"] for line in lines] == ["mine/ok", "mine/quote-key"] and lines[0]["input_tokens"] == 7
    for secret in (KEY, "private matter", own.upstream.base_url):
        assert secret not in (tmp_path / "log").read_text()


# --- which models there are


async def test_unknown_own_models_are_404(own: Own) -> None:
    other = await own.service.bearer()
    unknown = [
        await own.chat("mine/"),
        await own.chat("theirs/ok"),
        await own.chat("mine"),
        await own.chat("mine/" + "x" * 301),
        await own.chat("mine/a\nb"),
        await own.chat("builtin/none"),
        await own.service.client.post(COMPLETIONS, json={"model": "mine/ok", "messages": HELLO}, headers=other),
    ]
    assert {(answer.status_code, answer.json()["error"]["code"]) for answer in unknown} == {(404, "model_not_found")}
    shown = await own.service.client.get("/v1/models/mine/ok", headers=other)
    assert shown.status_code == 404 and own.upstream.requests == []
    assert (await own.chat("mine/any/name:7b")).status_code == 200, "without a list of its own the provider decides"
    assert own.upstream.requests[-1].model == "any/name:7b"


async def test_provider_with_models_offers_only_those(own: Own) -> None:
    await own.change(models=["org/small:1b", "ok"])
    assert await own.listed() == ["mine/org/small:1b", "mine/ok"] and own.upstream.requests == []
    assert (await own.chat("mine/ok")).status_code == 200
    assert (await own.chat("mine/tools")).status_code == 404
    shown = await own.service.client.get("/v1/models/mine/org/small:1b", headers=own.headers)
    assert shown.status_code == 200 and shown.json() == {
        "id": "mine/org/small:1b",
        "object": "model",
        "created": shown.json()["created"],
        "owned_by": "mine",
        "kind": "chat",
        "pricing": {"input_micros_per_million_tokens": 0, "output_micros_per_million_tokens": 0},
        "context_length": None,
        "capabilities": [],
        "provider": "mine",
        "byok": True,
    }
    await own.change(models=[])
    assert await own.listed() == [] and (await own.chat("mine/ok")).status_code == 404


async def test_own_models_have_their_kind(own: Own) -> None:
    await own.change(models=["ok", {"id": "draw", "kind": "image"}])
    listed = (await own.service.client.get("/v1/models", headers=own.headers)).json()["data"]
    assert [(model["id"], model["kind"]) for model in listed if model["byok"]] == [
        ("mine/ok", "chat"),
        ("mine/draw", "image"),
    ]
    refused = await own.chat("mine/draw")
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "model")
    body = {"model": "mine/draw", "prompt": "a pine"}
    drawn = await own.service.client.post("/v1/images/generations", json=body, headers=own.headers)
    assert drawn.status_code == 200, drawn.text


def lists_asked(own: Own) -> int:
    return sum(seen.path == "/v1/models" for seen in own.upstream.requests)


async def test_tests_and_lists_share_30_provider_requests_a_minute(own: Own) -> None:
    test = f"{own.path}/test"
    own.service.clocks.advance(60)
    answers = [await own.service.client.post(test, headers=own.headers) for _ in range(31)]
    assert [answer.status_code for answer in answers] == [200] * 30 + [429] and lists_asked(own) == 30
    assert 1 <= answers[-1].json()["error"]["retry_after"] <= 59
    await own.change(api_key="another-key-of-theirs")
    assert await own.listed() == [] and lists_asked(own) == 30
    own.service.clocks.advance(60)
    assert await own.listed() == ["mine/ok", "mine/tools"]


async def test_list_of_models_is_cached_for_a_minute(own: Own) -> None:
    own.upstream.models = ("ok", "org/chat:7b", "ok", "", "x" * 301, "a\u2028b")
    lists = await asyncio.gather(*(own.listed() for _ in range(20)))
    assert lists == [["mine/ok", "mine/org/chat:7b"]] * 20
    assert [(seen.path, seen.headers["authorization"]) for seen in own.upstream.requests] == [
        ("/v1/models", f"Bearer {KEY}")
    ]
    await own.change(api_key="another-key-of-theirs")
    own.upstream.models = ("new",)
    assert await own.listed() == ["mine/new"], "another key may see other models"
    own.upstream.models = ("newer",)
    for seconds, listed in ((59.9, "mine/new"), (0.1, "mine/newer")):
        own.service.clocks.advance(seconds)
        assert await own.listed() == [listed]
    assert all(
        not item["id"].startswith("mine/")
        for item in (await own.service.client.get("/v1/models", headers=await own.service.bearer())).json()["data"]
    )


async def test_context_length_is_that_of_the_providers_list(own: Own) -> None:
    own.upstream.models = ({"id": "ok", "max_model_len": 8192}, "tools")
    listed = (await own.service.client.get("/v1/models", headers=own.headers)).json()["data"]
    assert [model["context_length"] for model in listed if model["byok"]] == [8192, None]
    shown = await own.service.client.get("/v1/models/mine/ok", headers=own.headers)
    assert shown.json() in listed


# The paths of two files have the same name, and one model has the name of a file.
PATHS = ("/models/foo.gguf", "/a/same.gguf", "/b/same.gguf", "/x/plain.gguf", "plain.gguf", "org/deep.gguf")


async def test_path_of_a_file_is_listed_with_the_files_name_as_its_alias(own: Own) -> None:
    own.upstream.models = PATHS
    listed = {
        model["id"]: model
        for model in (await own.service.client.get("/v1/models", headers=own.headers)).json()["data"]
        if model["byok"]
    }
    assert set(listed) == {f"mine/{name}" for name in (*PATHS, "foo.gguf")}
    assert listed["mine/foo.gguf"] == {**listed["mine//models/foo.gguf"], "id": "mine/foo.gguf"} | {
        "alias_of": "mine//models/foo.gguf"
    }
    for name in ("mine/foo.gguf", "mine//models/foo.gguf"):
        shown = await own.service.client.get(f"/v1/models/{name}", headers=own.headers)
        assert shown.json() == listed[name]


@each("listed", [True, False])
async def test_model_that_is_a_file_is_found_by_its_path_and_by_the_files_name(own: Own, listed: bool) -> None:
    own.upstream.models = PATHS
    if listed:
        await own.listed()
    asked = {
        "foo.gguf": "/models/foo.gguf",
        "/models/foo.gguf": "/models/foo.gguf",
        "plain.gguf": "plain.gguf",
        "same.gguf": "same.gguf",  # which one is unknown, so the provider decides
        "deep.gguf": "deep.gguf",
    }
    for name, sent in asked.items():
        answer = await own.chat(f"mine/{name}")
        assert answer.status_code == 200 and own.upstream.requests[-1].model == sent
        assert answer.json()["model"] == f"mine/{sent}"


async def test_provider_with_paths_as_its_models_accepts_the_files_names(own: Own) -> None:
    await own.change(models=["/models/foo.gguf"])
    assert (await own.chat("mine/foo.gguf")).status_code == 200
    assert own.upstream.requests[-1].model == "/models/foo.gguf"
    assert (await own.chat("mine/bar.gguf")).status_code == 404


async def test_files_of_an_operators_server_are_found_by_path_and_by_name(config: Config, clocks: Clocks) -> None:
    async with ModelServer(models=PATHS) as upstream:
        catalog = f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\n'
        async with serving(config, clocks, catalog) as service:
            headers = await service.bearer()
            for name in ("foo.gguf", "/models/foo.gguf"):
                body = {"model": f"lab/{name}", "messages": HELLO}
                answer = await service.client.post(COMPLETIONS, json=body, headers=headers)
                assert answer.status_code == 200 and upstream.requests[-1].model == "/models/foo.gguf"
            for name in ("same.gguf", "deep.gguf", "other.gguf"):
                body = {"model": f"lab/{name}", "messages": HELLO}
                assert (await service.client.post(COMPLETIONS, json=body, headers=headers)).status_code == 404
            listed = (await service.client.get("/v1/models", headers=headers)).json()["data"]
            found = {
                model["id"]: model["alias_of"] for model in listed if model["owned_by"] == "lab" and "alias_of" in model
            }
            assert found == {"lab/foo.gguf": "lab//models/foo.gguf"}


async def test_endless_list_of_models_is_cut(own: Own) -> None:
    own.upstream.models = tuple(f"model-{number}" for number in range(1500))
    assert len(await own.listed()) == 500


async def test_unreachable_provider_does_not_delay_the_list(impatient: Service) -> None:
    headers = await impatient.bearer()

    async def listed() -> list[str]:
        answer = await impatient.client.get("/v1/models", headers=headers)
        assert answer.status_code == 200
        return [model["id"] for model in answer.json()["data"] if model["byok"]]

    async with ModelServer() as upstream, raw_server(None) as silent, raw_server(b"SSH-2.0-OpenSSH_9.6\r\n") as foreign:
        await add_provider(impatient, headers, upstream.base_url, name="mine")
        for url in (silent.base_url, foreign.base_url, "http://127.0.0.1:1", "http://nowhere.example"):
            await add_provider(impatient, headers, url)
        async with asyncio.timeout(8):  # without its own limit, a list has 10 s
            assert await listed() == ["mine/ok", "mine/tools"]


async def test_failed_list_is_retried_after_2_seconds(own: Own) -> None:
    await own.upstream.stop()
    assert await own.listed() == []
    await own.upstream.start()
    own.service.clocks.advance(1.9)
    assert await own.listed() == [] and own.upstream.requests == []
    own.service.clocks.advance(0.1)
    assert await own.listed() == ["mine/ok", "mine/tools"]


async def test_operator_model_wins_over_an_own_model(own: Own) -> None:
    rename = "UPDATE providers SET name = 'builtin', models = '[\"echo\",\"own\"]'"
    await own.service.state["db"].write(lambda tx: tx.execute(rename))
    assert await own.listed() == []
    answer = await own.chat("builtin/echo")
    assert answer.json()["choices"][0]["message"]["content"] == "hi" and own.upstream.requests == []
    assert (await own.chat("builtin/own")).status_code == 404


async def test_own_model_can_be_the_default(own: Own) -> None:
    set_to = await own.service.client.patch("/user/settings", json={"default_model": "mine/ok"}, headers=own.headers)
    assert set_to.status_code == 200
    answer = await own.service.client.post(COMPLETIONS, json={"messages": HELLO}, headers=own.headers)
    assert answer.json()["model"] == "mine/ok"
    await own.service.client.delete(own.path, headers=own.headers)
    answer = await own.service.client.post(COMPLETIONS, json={"messages": HELLO}, headers=own.headers)
    assert (answer.status_code, answer.json()["model"]) == (200, "builtin/assistant")


@each(
    ("default", "changes", "expected"),
    [
        ("mine/ok", None, None),
        ("mine/ok", {"name": "lab2"}, "lab2/ok"),
        ("mine/ok", {"name": "lab2", "models": ["other", "ok"]}, "lab2/ok"),
        ("mine/ok", {"name": "lab2", "models": ["other"]}, None),
        ("mine/ok", {"models": ["ok"]}, "mine/ok"),
        ("mine/ok", {"models": [{"id": "ok", "kind": "chat"}]}, "mine/ok"),
        ("mine/ok", {"models": [{"id": "ok", "kind": "image"}]}, None),
        ("mine/ok", {"models": [{"id": "chat", "kind": "image"}, {"id": "other", "kind": "chat"}]}, None),
        ("mine/ok", {"models": []}, None),
        ("mine/ok", {"models": None}, "mine/ok"),
        ("mine/a/b%_'\"", {"name": "lab2", "models": ["a/b%_'\""]}, "lab2/a/b%_'\""),
        ("builtin/echo", {"name": "lab2"}, "builtin/echo"),
        ("builtin/echo", None, "builtin/echo"),
        (None, None, None),
    ],
)
async def test_default_model_follows_its_provider(
    own: Own, default: str | None, changes: dict[str, Any] | None, expected: str | None
) -> None:
    client, settings = own.service.client, "/user/settings"
    session = await own.service.sign_up()
    headers, other = bearer(session["access_token"]), own.headers
    await client.patch(settings, json={"default_model": "mine/ok"}, headers=other)
    body = {"name": "mine", "base_url": own.upstream.base_url}
    provider = (await client.post("/user/providers", json=body, headers=headers)).json()
    second = await client.post("/user/providers", json={**body, "name": "mine2"}, headers=headers)
    chosen = await client.patch(settings, json={"default_model": default}, headers=headers)
    assert (second.status_code, chosen.status_code) == (201, 200)
    path = f"/user/providers/{provider['id']}"
    if changes is None:
        assert (await client.delete(path, headers=headers)).status_code == 204
    else:
        assert (await client.patch(path, json=changes, headers=headers)).status_code == 200
    shown = (await client.get(settings, headers=headers)).json()
    assert shown["default_model"] == expected and shown["chat_model"] == (expected or "builtin/assistant")
    assert (await client.get(settings, headers=other)).json()["default_model"] == "mine/ok", "that of another account"


async def test_models_of_a_deleted_provider_are_404_at_once(own: Own) -> None:
    assert await own.listed() == ["mine/ok", "mine/tools"]
    await own.service.client.delete(own.path, headers=own.headers)
    assert await own.listed() == [] and (await own.chat()).status_code == 404


# --- faults


@pytest.mark.parametrize("status", [401, 403, 429])
async def test_provider_401_403_and_429_are_passed_on_with_its_name(own: Own, status: int) -> None:
    for stream in (False, True):
        answer = await own.chat(f"mine/status-{status}", stream=stream)
        error = answer.json()["error"]
        assert answer.status_code == status and error["message"] == "mine: the test asked for it"
        assert error["type"] == "test_error" and ("retry_after" in error) == (status == 429)
    assert len(own.upstream.requests) == 2, "asked once each"


async def test_retry_after_of_a_provider_is_at_most_a_minute(own: Own) -> None:
    for asked, told in (("7", 7), ("3600", 59), ("0", 1), ("soon", 1)):
        answer = await own.chat(f"mine/retry-after-{asked}")
        assert (
            answer.status_code == 429
            and int(answer.headers["retry-after"]) == told == answer.json()["error"]["retry_after"]
        )


@pytest.mark.parametrize(
    ("model", "status", "code"),
    [
        ("status-400", 400, "on_command"),
        ("status-404", 404, "on_command"),
        ("status-500", 502, "upstream_error"),
        ("status-503", 503, "upstream_error"),
        ("fail-once", 503, "upstream_error"),
        ("redirect", 502, "upstream_error"),
        ("html-200", 502, "upstream_invalid_response"),
        ("cut-head", 502, "upstream_unreachable"),
        ("gzip", 502, "upstream_invalid_response"),
    ],
)
async def test_other_provider_errors_are_502_without_retry(own: Own, model: str, status: int, code: str) -> None:
    answer = await own.chat(f"mine/{model}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert len(own.upstream.requests) == 1


async def test_unreachable_provider_is_502(own: Own) -> None:
    await own.upstream.stop()
    for stream in (False, True):
        answer = await own.chat(stream=stream)
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_unreachable")
        assert "'mine'" in answer.json()["error"]["message"]


async def test_broken_stream_ends_with_an_error_event(own: Own) -> None:
    *chunks, error, done = events(await own.chat("mine/cut-after-2-chunks", stream=True))
    assert done == "[DONE]" and error["error"]["type"] == "upstream_error"
    assert chunks and all(chunk["choices"][0]["finish_reason"] is None for chunk in chunks)


async def test_quoted_key_is_masked(own: Own) -> None:
    answers = [
        await own.chat("mine/quote-key"),
        await own.chat("mine/echo-key"),
        await own.chat("mine/echo-key", stream=True),
    ]
    assert [answer.status_code for answer in answers] == [401, 200, 200]
    for answer in answers:
        assert "***" in answer.text and KEY not in answer.text


async def test_copied_row_cannot_be_decrypted(own: Own) -> None:
    thief = await own.service.bearer()
    theirs = await add_provider(own.service, thief, own.upstream.base_url, name="stolen")
    second = await add_provider(own.service, own.headers, own.upstream.base_url, name="second")
    copy = "UPDATE providers SET sealed_key = (SELECT sealed_key FROM providers WHERE id = ?) WHERE id = ?"
    for provider, headers in ((theirs, thief), (second, own.headers)):
        await own.service.state["db"].write(lambda tx, to=provider["id"]: tx.execute(copy, (own.provider["id"], to)))
        body = {"model": f"{provider['name']}/ok", "messages": HELLO}
        answer = await own.service.client.post(COMPLETIONS, json=body, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_value")
        tested = await own.service.client.post(f"/user/providers/{provider['id']}/test", headers=headers)
        assert (tested.status_code, tested.json()["error"]["code"]) == (400, "invalid_value")
    assert own.upstream.requests == [] and await own.listed() == ["mine/ok", "mine/tools"]


async def test_key_of_another_installation_must_be_set_again(own: Own) -> None:
    sealed = KeyBox(b"x" * 32).seal("user", own.provider["id"], KEY)
    await own.service.state["db"].write(lambda tx: tx.execute("UPDATE providers SET sealed_key = ?", (sealed,)))
    answer = await own.chat()
    assert answer.status_code == 400 and "Set it again" in answer.json()["error"]["message"]
    await own.change(api_key=KEY)
    assert (await own.chat()).status_code == 200


# --- money and limits


async def test_own_provider_is_free_and_usage_is_counted(own: Own) -> None:
    answer = await own.chat()
    assert "x-service-cost-micros" not in answer.headers
    await own.chat(stream=True)
    account = (await own.service.client.get("/billing/account", headers=own.headers)).json()
    assert account["wallet_balance_micros"] == account["held_micros"] == 0
    assert (await own.service.client.get("/billing/ledger", headers=own.headers)).json()["data"] == []
    await own.service.state["engines"].usage.flush()
    days = (await own.service.client.get("/billing/usage", headers=own.headers)).json()["data"]
    assert [(day["model"], day["requests"], day["cost_micros"]) for day in days] == [("mine/ok", 2, 0)]


async def test_own_provider_shares_the_chat_limit(own: Own) -> None:
    bodies = [{"model": model, "messages": HELLO} for model in ("mine/ok", "builtin/echo")] * 10
    key = bearer((await own.service.make_key(own.headers))["key"])
    for number, body in enumerate(bodies):
        answer = await own.service.client.post(COMPLETIONS, json=body, headers=key if number % 2 else own.headers)
        assert answer.status_code == 200 and answer.headers["x-ratelimit-remaining-requests"] == str(19 - number)
    refused = await own.service.client.post(COMPLETIONS, json=bodies[0], headers=own.headers)
    assert refused.status_code == 429 and refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert len(own.upstream.requests) == 10


# --- agents


async def test_agent_uses_an_own_model_with_its_key(own: Own) -> None:
    body = {"goal": "say hello", "model": "mine/ok"}
    found = events(await own.service.client.post("/v1/agents/run", json=body, headers=own.headers))
    assert found[0]["type"] == "started" and found[0]["model"] == "mine/ok"
    assert found[-1]["type"] == "final" and found[-1]["output"] == "Hello, world!" and found[-1]["cost_micros"] == 0
    (seen,) = own.upstream.requests
    assert seen.headers["authorization"] == f"Bearer {KEY}" and seen.body["model"] == "ok"
    assert {tool["function"]["name"] for tool in seen.body["tools"]} >= {"calculate", "write_artifact"}


async def test_agent_with_own_model_runs_until_its_last_step(own: Own) -> None:
    body = {"goal": "go on", "model": "mine/tools", "max_steps": 2, "tools": ["calculate"]}
    found = events(await own.service.client.post("/v1/agents/run", json=body, headers=own.headers))
    assert [event["name"] for event in found if event["type"] == "tool_call"] == ["calculate"] * 4
    assert found[-1]["type"] == "stopped" and found[-1]["reason"] == "max_steps" and len(own.upstream.requests) == 2


async def test_agent_error_names_the_provider(own: Own) -> None:
    body = {"goal": "say hello", "model": "mine/status-401"}
    found = events(await own.service.client.post("/v1/agents/run", json=body, headers=own.headers))
    assert found[-1]["type"] == "error" and found[-1]["error"]["message"] == "mine: the test asked for it"


# --- the test of a provider


async def test_provider_test_lists_all_models(own: Own) -> None:
    await own.change(models=["ok"])
    tested = await own.service.client.post(f"{own.path}/test", headers=own.headers)
    assert tested.status_code == 200 and tested.json()["ok"] is True
    assert tested.json()["models"] == ["ok", "tools"]
    seen = own.upstream.requests[0]
    assert (seen.method, seen.path, seen.headers["authorization"]) == ("GET", "/v1/models", f"Bearer {KEY}")


async def test_provider_test_tells_the_formats_by_empty_requests(own: Own) -> None:
    async with FormatServer() as every:
        answers = []
        for base_url in (own.upstream.base_url, every.base_url):
            await own.change(base_url=base_url, api_key=KEY)
            tested = await own.service.client.post(f"{own.path}/test", headers=own.headers)
            answers.append(tested.json()["formats"])
        assert answers == [
            {"chat": True, "responses": False, "messages": False},
            {"chat": True, "responses": True, "messages": True},
        ]
        for seen in every.requests[1:]:
            assert seen.body == {} and ("x-api-key" in seen.headers) is seen.path.endswith("/messages")


async def test_provider_test_is_not_cached(own: Own) -> None:
    for names in (("a",), ("b", "c"), ()):
        own.upstream.models = names
        tested = await own.service.client.post(f"{own.path}/test", headers=own.headers)
        assert tested.json()["models"] == list(names)
        assert await own.listed() == [f"mine/{name}" for name in names], "and the list knows it, too"


async def test_list_of_a_provider_is_asked_by_one_test_at_a_time(own: Own) -> None:
    await asyncio.gather(*(own.service.client.post(f"{own.path}/test", headers=own.headers) for _ in range(20)))
    assert lists_asked(own) == 20 and len(own.upstream.requests) == 80


@each("status", [401, 403, 429])
async def test_provider_test_passes_on_401_403_and_429(service: Service, status: int) -> None:
    headers = await service.bearer()
    body = b'{"error": {"message": "Bad key ' + KEY.encode() + b'"}}'
    async with raw_server(http_answer(f"{status} No", body, b"retry-after: 7")) as raw:
        provider = await add_provider(service, headers, raw.base_url, name="mine")
        tested = await service.client.post(f"/user/providers/{provider['id']}/test", headers=headers)
    assert tested.status_code == status and tested.json()["error"]["message"] == "mine: Bad key ***"
    assert tested.headers.get("retry-after") == ("7" if status == 429 else None)


async def test_failed_provider_tests_look_the_same(impatient: Service) -> None:
    headers = await impatient.bearer()
    there = [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        http_answer("200 OK", b"<html>"),
        http_answer("200 OK", b'{"status": "ok"}'),
        http_answer("404 Not Found", b'{"detail": "Not Found"}'),
        http_answer("500 No", b'{"error": {"message": "internal"}}'),
        http_answer("302 Found", b"", b"location: http://127.0.0.1:1/"),
        b"",
        None,
    ]
    async with contextlib.AsyncExitStack() as stack:
        found = [(await stack.enter_async_context(raw_server(sent))).base_url for sent in there]
        tests = [
            _failed_test(impatient, headers, url) for url in ("http://127.0.0.1:1", "http://nowhere.example", *found)
        ]
        outcomes = await asyncio.gather(*tests)
    message = "NAME did not answer as a model server."
    assert outcomes == [(502, message, True)] * len(outcomes)


async def _failed_test(service: Service, headers: dict[str, str], url: str) -> tuple[int, str, bool]:
    """The status and the message of a provider's test, and whether it took the time that all take."""
    provider = await add_provider(service, headers, url)
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(IMPATIENT_SECONDS * 0.9, passed.set)
    tested = await service.client.post(f"/user/providers/{provider['id']}/test", headers=headers)
    error = tested.json()["error"]
    assert error == {**error, "type": "upstream_error", "code": "upstream_error", "param": None}
    return tested.status_code, error["message"].replace(provider["name"], "NAME"), passed.is_set()


async def test_provider_test_takes_no_chat_admission(own: Own) -> None:
    for _ in range(25):
        assert (await own.service.client.post(f"{own.path}/test", headers=own.headers)).status_code == 200
    answer = await own.service.client.post(
        COMPLETIONS, json={"model": "mine/ok", "messages": HELLO}, headers=own.headers
    )
    assert answer.headers["x-ratelimit-remaining-requests"] == "19"


async def test_deleted_account_cannot_use_its_provider(own: Own) -> None:
    await own.service.client.request("DELETE", "/user/me", json={"password": PASSWORD}, headers=own.headers)
    assert (await own.chat()).status_code == 401 and own.upstream.requests == []


# --- on sockets


async def test_disconnect_ends_the_provider_request(own: Own, tmp_path: Path) -> None:
    async with listening(own.service.app) as address:
        for model, stream in (("drip-100ms", True), ("silent", True), ("silent", False)):
            body = orjson.dumps({"model": f"mine/{model}", "messages": HELLO, "stream": stream})
            head = (
                f"POST {COMPLETIONS} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {own.headers['authorization']}\r\n"
            )
            head += "Content-Type: application/json\r\n"
            _, writer = await asyncio.open_connection(*address)
            own.upstream.requests.clear()
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await until(lambda: own.upstream.requests)
            writer.transport.abort()
            await asyncio.wait_for(own.upstream.requests[-1].gone.wait(), 20)
    assert KEY not in (tmp_path / "log").read_text()
