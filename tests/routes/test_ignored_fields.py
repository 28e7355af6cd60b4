"""Fields that a model with a price does not get are named or refused. The tests use all formats, JSON and streams, keys
and sessions.
"""

import dataclasses
from pathlib import Path
from typing import Any

import httpx
import pytest

from svc.config import Config
from tests.conftest import Service
from tests.inference.test_model_call import Lab, Person, lab, upstream  # noqa: F401 - fixtures
from tests.support.cases import each
from tests.support.model_server import ModelServer

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
FIELDS, TOOLS = "x-service-ignored-fields", "x-service-ignored-tools"


@pytest.fixture
def config(config: Config, upstream: ModelServer, tmp_path: Path) -> Config:  # noqa: F811 - a fixture
    prices = "input_micros_per_million_tokens = 1_000_000\noutput_micros_per_million_tokens = 2_000_000\n"
    models = (
        ("ok", prices),
        ("free", ""),
        ("extra", f'{prices}extra_fields = ["service_tier", "plugins", "provider", "tools"]\n'),
        ("status-503", f'{prices}extra_fields = ["service_tier"]\nfallback = "lab/ok"\n'),
    )
    entries = "".join(f'[[providers.models]]\nid = "{name}"\n{lines}' for name, lines in models)
    (tmp_path / "catalog.toml").write_text(f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\n{entries}')
    return dataclasses.replace(config, catalog=tmp_path / "catalog.toml")


def asking(format: str, model: str, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "hello"}]
    own: dict[str, dict[str, Any]] = {
        "chat": {"messages": messages},
        "responses": {"input": "hello"},
        "messages": {"messages": messages, "max_tokens": 100},
    }
    return {"model": f"lab/{model}", **own[format], **fields}


async def ask(lab: Lab, headers: dict[str, str], format: str, model: str, **fields: Any) -> httpx.Response:  # noqa: F811 - a fixture
    lab.upstream.requests.clear()
    body = asking(format, model, **fields)
    return await lab.service.client.post(PATHS[format], json=body, headers=headers)


@pytest.fixture
async def person(lab: Lab) -> Person:  # noqa: F811 - a fixture
    return await lab.person(10_000_000)


@each("stream", [False, True])
@each("format", [*PATHS])
async def test_ignored_fields_are_named_in_all_formats(lab: Lab, person: Person, format: str, stream: bool) -> None:  # noqa: F811 - a fixture
    fields = {"service_tier": "priority", "x unknown é": 1, "nothing": None}
    answer = await ask(lab, person.headers, format, "ok", stream=stream, **fields)
    assert answer.status_code == 200 and answer.headers[FIELDS] == "service_tier, x unknown ?"
    assert not fields.keys() & lab.upstream.requests[-1].body.keys()
    passed = await ask(lab, person.headers, format, "extra", stream=stream, **fields)
    assert passed.headers[FIELDS] == "x unknown ?"
    assert lab.upstream.requests[-1].body["service_tier"] == "priority"
    plain = await ask(lab, person.headers, format, "ok", stream=stream)
    assert FIELDS not in plain.headers and TOOLS not in plain.headers


@each("stream", [False, True])
async def test_ignored_fields_are_named_in_a_session(lab: Lab, person: Person, stream: bool) -> None:  # noqa: F811 - a fixture
    for more in ({}, {"x-service-continue": "true"}):
        answer = await ask(lab, {**person.session, **more}, "chat", "ok", stream=stream, service_tier="priority")
        assert answer.status_code == 200 and answer.headers["x-service-conversation"]
        assert answer.headers[FIELDS] == "service_tier"


async def test_header_is_cut_however_many_fields_there_are(lab: Lab, person: Person) -> None:  # noqa: F811 - a fixture
    answer = await ask(lab, person.headers, "chat", "ok", **{f"x{number}": 1 for number in range(20_000)})
    assert len(answer.headers[FIELDS]) == 1000
    answer = await ask(lab, person.headers, "chat", "ok", **{"\r\n" * 100_000: 1})
    assert answer.headers[FIELDS] == "?" * 1000


async def test_free_model_gets_all_but_fields_that_aim_a_proxy_elsewhere(lab: Lab, person: Person) -> None:  # noqa: F811 - a fixture
    fields = {
        "service_tier": "priority",
        "plugins": [],
        "store": True,
        "tools": [{"type": "web_search"}],
        "n_predict": 9,
    }
    answer = await ask(lab, person.headers, "chat", "free", **fields, api_base="http://x", metadata={"api_key": "x"})
    assert answer.headers[FIELDS] == "api_base, metadata.api_key" and TOOLS not in answer.headers
    body = lab.upstream.requests[-1].body
    assert {name: body[name] for name in fields} == fields and "api_base" not in body and body["metadata"] == {}


@each("format", [*PATHS])
@each("field", ["web_search_options", "plugins", "search_parameters"])
async def test_what_demands_another_price_is_400_before_the_hold(
    lab: Lab,  # noqa: F811 - a fixture
    person: Person,
    format: str,
    field: str,
) -> None:
    answer = await ask(lab, person.headers, format, "ok", **{field: {}})
    error = answer.json()["error"]
    assert answer.status_code == 400 and field in error["message"]
    if format != "messages":
        assert (error["code"], error["param"]) == ("unsupported_value", field)
    assert lab.upstream.requests == [] and lab.holds(person) == []


async def test_demands_of_a_session_store_nothing(lab: Lab, person: Person) -> None:  # noqa: F811 - a fixture
    answer = await ask(lab, person.session, "chat", "ok", modalities=["text", "audio"])
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "modalities"
    assert (await lab.service.client.get("/conversations", headers=person.session)).json()["data"] == []


@each("stream", [False, True])
async def test_hosted_tools_of_chat_are_named_or_refused(lab: Lab, person: Person, stream: bool) -> None:  # noqa: F811 - a fixture
    function = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    tools = [{"type": "web_search"}, function, {"type": "mcp"}]
    answer = await ask(lab, person.headers, "chat", "ok", stream=stream, tools=tools)
    assert answer.headers[TOOLS] == "web_search, mcp" and lab.upstream.requests[-1].body["tools"] == [function]
    passed = await ask(lab, person.headers, "chat", "extra", stream=stream, tools=tools, tool_choice={"type": "mcp"})
    assert TOOLS not in passed.headers and lab.upstream.requests[-1].body["tools"] == tools
    for choice, sent in (({"type": "mcp"}, tools), ("required", [{"type": "mcp"}])):
        refused = await ask(lab, person.headers, "chat", "ok", stream=stream, tools=sent, tool_choice=choice)
        assert refused.status_code == 400 and refused.json()["error"]["param"] == "tool_choice"


async def test_fallback_gets_no_field_that_only_the_asked_model_passes(lab: Lab, person: Person) -> None:  # noqa: F811 - a fixture
    answer = await ask(lab, person.headers, "chat", "status-503", service_tier="priority", top_k=5)
    first, *_, last = lab.upstream.requests
    assert answer.status_code == 200 and (first.body["service_tier"], last.body["model"]) == ("priority", "ok")
    assert "service_tier" not in last.body and last.body["top_k"] == 5


@each("stream", [False, True])
async def test_another_name_of_the_limit_is_the_limit_if_it_is_alone(lab: Lab, person: Person, stream: bool) -> None:  # noqa: F811 - a fixture
    answer = await ask(lab, person.headers, "chat", "ok", stream=stream, n_predict=20)
    body = lab.upstream.requests[-1].body
    assert body["max_tokens"] == 20 and "n_predict" not in body and FIELDS not in answer.headers
    answer = await ask(lab, person.headers, "chat", "ok", stream=stream, n_predict=20, max_tokens=30)
    assert lab.upstream.requests[-1].body["max_tokens"] == 30 and answer.headers[FIELDS] == "n_predict"
    poor = await lab.person(lab.holds(person)[-2] - 2)
    await ask(lab, poor.headers, "chat", "ok", stream=stream, n_predict=20)
    assert lab.upstream.requests[-1].body["max_tokens"] == 19


async def test_built_in_model_with_a_price_honours_the_other_name_of_the_limit(service: Service, lab: Lab) -> None:  # noqa: F811 - a fixture
    person = await lab.person(10_000_000)
    body = {**asking("chat", "ok"), "model": "builtin/assistant-paid", "n_predict": 2}
    answer = await service.client.post(PATHS["chat"], json=body, headers=person.headers)
    assert answer.json()["choices"][0]["finish_reason"] == "length"
