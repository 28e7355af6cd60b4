"""A model outside an account's group does not exist for it: on every route of the interface document that names a
model.
"""

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from svc.auth import accounts
from svc.config import Config
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.agent_runs import RUN
from tests.support.model_server import ModelServer

CATALOG = """
default_model = "outside/ok"
[[groups]]
name = "narrow"
models = ["inside/*", "builtin/echo", "builtin/script"]
chats_per_minute = 10_000
[[groups]]
name = "artists"
models = ["builtin/script", "builtin/[pv]*", "*gpt*mini*"]
allowance_micros = 1_000_000
[[providers]]
name = "outside"
base_url = "{url}"
models = [{{id = "ok", aliases = ["secret"]}}, {{id = "paint", kind = "image"}}, {{id = "voice", kind = "speech"}},
  {{id = "ears", kind = "transcription"}}]
[[providers]]
name = "listing"
base_url = "{url}"
[[providers]]
name = "silent"
base_url = "http://127.0.0.1:9/v1"
[[providers]]
name = "inside"
base_url = "{url}"
[[providers.models]]
id = "ok"
aliases = ["inside"]
[[providers.models]]
id = "status-503"
fallback = "secret"
"""
CHAT = ("outside/ok", "secret", "listing/ok", "silent/anything", "builtin/assistant", "builtin/assistant-paid")
IMAGE, SPEECH = ("outside/paint", "builtin/paint"), ("outside/voice", "builtin/voice")
HEARING = ("outside/ears", "builtin/whisper-tiny")
FORM = "POST /v1/audio/transcriptions"
MESSAGES = [{"role": "user", "content": "hi"}]
# Each operation that names a model: its fields beside it, the field that names the model, and models outside. None: a
# default.
PLACES: dict[str, tuple[dict[str, Any], str, tuple[str | None, ...]]] = {
    "POST /v1/chat/completions": ({"messages": MESSAGES}, "model", (*CHAT, None)),
    "POST /v1/responses": ({"input": "hi"}, "model", (*CHAT, None)),
    "POST /v1/messages": ({"messages": MESSAGES, "max_tokens": 9}, "model", CHAT),
    "POST /v1/messages/count_tokens": ({"messages": MESSAGES}, "model", CHAT),
    "POST /v1/agents/run": ({"goal": "hi"}, "model", (*CHAT, None)),
    "POST /v1/images/generations": ({"prompt": "a circle"}, "model", (*IMAGE, None)),
    "POST /v1/audio/generate": ({"input": "hi"}, "model", (*SPEECH, None)),
    "POST /v1/audio/speech": ({"input": "hi", "voice": "alloy"}, "model", (*SPEECH, None)),
    FORM: ({}, "model", (*HEARING, None)),
    "GET /v1/models/{model_id}": ({}, "model_id", CHAT + IMAGE + SPEECH + HEARING),
    "PATCH /user/settings": ({}, "default_model", CHAT),
}
OWN = {"POST /user/providers", "PATCH /user/providers/{provider_id}"}  # the models of users' own servers


@pytest.fixture
async def models() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def service(models: ModelServer, config: Config, clocks: Clocks) -> AsyncIterator[Service]:
    async with serving(config, clocks, CATALOG.format(url=models.base_url)) as service:
        yield service


async def member(service: Service, group: str) -> list[dict[str, str]]:
    """A new account of the group: the headers of its session and of a key."""
    session = await service.sign_up()
    await service.state["db"].write(
        accounts.set_group, session["user"]["id"], group, service.state["models"].catalog.groups
    )
    headers = bearer(session["access_token"])
    return [headers, bearer((await service.make_key(headers))["key"])]


def naming_a_model(document: dict[str, Any]) -> Iterator[str]:
    """The operations with a field or parameter whose name has the word `model`."""

    def properties(schema: dict[str, Any]) -> Iterator[str]:
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        yield from schema.get("properties", ())
        for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
            yield from properties(part)

    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            contents = (
                operation.get("requestBody", {}).get("content", {}).values() if isinstance(operation, dict) else ()
            )
            names = [name for content in contents for name in properties(content["schema"])]
            names += [one["name"] for one in operation.get("parameters", ()) if "name" in one]
            if any("model" in name for name in names):
                yield f"{method.upper()} {path}"


async def send(service: Service, where: str, model: str | None, headers: dict[str, str]) -> httpx.Response:
    body, field, _ = PLACES[where]
    method, path = where.split()
    if method == "GET":
        return await service.client.get(path.replace("{model_id}", model or ""), headers=headers)
    fields = {**body, **({} if model is None else {field: model})}
    sent: dict[str, Any] = {"data": fields, "files": {"file": ("a.wav", b"")}} if where == FORM else {"json": fields}
    return await service.client.request(method, path, **sent, headers=headers)


async def test_every_operation_that_names_a_model_is_walked(service: Service) -> None:
    document = (await service.client.get("/openapi.json")).json()
    assert set(naming_a_model(document)) == set(PLACES) | OWN


async def test_model_outside_the_group_is_unknown_on_every_route(service: Service, models: ModelServer) -> None:
    tokens = await member(service, "narrow")
    everything = await member(service, "artists")
    await service.state["db"].write(lambda tx: tx.execute("UPDATE accounts SET default_model = 'secret'").rowcount)
    walked = 0
    for where, (_, field, outside) in PLACES.items():
        for model in outside:
            for headers in tokens:
                answer = await send(service, where, model, headers)
                error = answer.json()["error"]
                unknown = await send(service, where, "nobody/nothing", headers)
                assert (answer.status_code, unknown.status_code) == (404, 404), f"{where}, {model}: {answer.text}"
                if where.startswith("POST /v1/messages"):  # Anthropic's errors
                    assert error["type"] == "not_found_error"
                else:
                    param = "default_model" if field == "default_model" else "model"
                    assert (error["code"], error["param"]) == ("model_not_found", param)
                if model is not None:
                    assert error["message"].replace(model, "x") == unknown.json()["error"]["message"].replace(
                        "nobody/nothing", "x"
                    )
                walked += 1
    assert [seen.path for seen in models.requests if seen.method == "POST"] == [], "no model server was asked"
    assert walked == 2 * sum(len(outside) for _, _, outside in PLACES.values()) == 126
    assert (await send(service, "GET /v1/models/{model_id}", "builtin/paint", everything[1])).status_code == 200


async def test_only_models_of_the_group_are_listed(service: Service) -> None:
    _, headers = await member(service, "narrow")
    listed = (await service.client.get("/v1/models", headers=headers)).json()["data"]
    assert {model["id"] for model in listed} == {
        "inside/ok",
        "inside",
        "inside/status-503",
        "builtin/echo",
        "builtin/script",
        "echo",
        "script",
    }


async def test_models_inside_the_group_answer(service: Service) -> None:
    for headers in await member(service, "narrow"):
        for where in ("POST /v1/chat/completions", "POST /v1/responses", "POST /v1/messages", "POST /v1/agents/run"):
            assert (await send(service, where, "inside/ok", headers)).status_code == 200, where
        assert (await send(service, "PATCH /user/settings", "inside/ok", headers)).status_code == 200
        assert (await send(service, "POST /v1/chat/completions", None, headers)).status_code == 200, (
            "the account's default"
        )


async def test_alias_that_is_the_name_of_its_provider_is_inside_with_its_model(service: Service) -> None:
    for headers in await member(service, "narrow"):
        assert (await send(service, "POST /v1/chat/completions", "inside", headers)).status_code == 200


async def test_long_name_of_a_model_holds_up_nobody(service: Service) -> None:
    _, headers = await member(service, "artists")
    began = time.thread_time()
    await send(service, "POST /v1/chat/completions", f"nobody/{'gptmin' * 2_000_000}", headers)
    other = time.thread_time() - began
    began = time.thread_time()
    refused = await send(service, "POST /v1/chat/completions", f"outside/{'gptmin' * 2_000_000}", headers)
    assert refused.status_code == 404 and time.thread_time() - began < other + 0.05


async def test_fallback_outside_the_group_is_not_asked(service: Service, models: ModelServer) -> None:
    for group, status in (("narrow", 503), (None, 200)):
        headers = await service.bearer() if group is None else (await member(service, group))[1]
        models.requests.clear()
        answer = await send(service, "POST /v1/chat/completions", "inside/status-503", headers)
        assert answer.status_code == status
        assert [seen.model for seen in models.requests] == [
            "status-503",
            "status-503",
            *(["ok"] if group is None else []),
        ]


async def test_tools_of_agents_choose_models_of_the_group(service: Service) -> None:
    goal = 'tool generate_image {"prompt": "a circle"}'
    for group, offered in (("narrow", False), ("artists", True)):
        session, _ = await member(service, group)
        run = await service.client.post(RUN, json={"model": "builtin/script", "goal": goal}, headers=session)
        assert ('"generate_image"' in run.text.partition("\n")[0], '"ok":true' in run.text) == (offered, offered), (
            run.text
        )
        refused = await service.client.post(
            RUN, json={"model": "builtin/script", "goal": "hi", "tools": ["generate_audio"]}, headers=session
        )
        assert refused.status_code == (200 if offered else 400)


async def test_long_list_of_models_holds_up_nobody(config: Config, clocks: Clocks) -> None:
    async with ModelServer(models=tuple(f"model-{number}" for number in range(5_000))) as models:
        catalog = f"[access]\nmodels = {[f'b/model-{number}5' for number in range(1_000)]}\n"
        for name in "abcd":
            catalog += f"[[providers]]\nname = '{name}'\nbase_url = '{models.base_url}'\n"
        async with serving(config, clocks, catalog) as service:  # the watchdog measures each step
            listed = await service.client.get("/v1/models", headers=await service.bearer())
            assert len(listed.json()["data"]) == 499
