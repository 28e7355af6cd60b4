"""The table "Formats" of OPERATING.md: what of a caller's request a server of another format gets."""

import base64
import dataclasses
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from svc.config import Config
from tests.conftest import Service, bearer
from tests.support.byok import Names
from tests.support.cases import each
from tests.support.format_events import APIS, PATHS, Said
from tests.support.format_server import FormatServer
from tests.support.pdfs import needs_pypdf, with_texts
from tests.support.sdk_types import checked_request

Json = dict[str, Any]
LETTERS = dict(zip(APIS, "CRM", strict=True))
MARKER = "marker0123"
PDF = base64.b64encode(with_texts(b"marker0123")).decode()
FILE = {"file_data": f"data:application/pdf;base64,{PDF}", "filename": "a.pdf"}
PNG = "data:image/png;base64,marker0123"
SCHEMA = {"type": "object", "properties": {MARKER: {"type": "string"}}, "additionalProperties": False}
SEALS = {
    "responses": {"type": "reasoning.encrypted", "data": "sealed0123", "format": "openai-responses-v1", "id": "rs_1"},
    "messages": {"type": "reasoning.encrypted", "data": "sealed0123", "format": "anthropic-claude-v1", "text": "Hm."},
}


def table() -> dict[str, dict[tuple[str, str], str]]:
    """Return what the page says for each feature, by the formats of the caller and of the server."""
    page = (Path(__file__).parents[2] / "svc" / "OPERATING.md").read_text()
    head, _, *lines = re.split(r"\n", page.partition("<!-- formats -->\n\n")[2].partition("\n\n")[0])
    letters = {letter: api for api, letter in LETTERS.items()}
    cells = [tuple(letters[letter] for letter in cell.split(" → ")) for cell in _cells(head)[1:]]
    return {name: dict(zip(cells, words, strict=True)) for name, *words in map(_cells, lines)}  # type: ignore[misc]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


# --- a request with the feature in each format of callers, and what a server of each format gets of it


@dataclasses.dataclass
class Feature:
    """`asks` are the fields of a request by the caller's format. `got` are words of the body that a server gets; the
    default is MARKER.
    """

    asks: dict[str, Json]
    got: dict[str, str] = dataclasses.field(default_factory=dict)


def conversation(caller: str, text: str = "Hi", *, parts: list[Json] | None = None, turn: Json | None = None) -> Json:
    """Return a question, its `parts`, and an earlier `turn` of the assistant with calls of f."""
    role = {"role": "user", "content": parts or text}
    if turn is None:
        return {"input" if caller == "responses" else "messages": [role]}
    ids = turn.get("ids", [])
    results = [{"role": "tool", "tool_call_id": one, "content": f"{MARKER} {one}"} for one in ids]
    if caller == "responses":
        calls = [{"type": "function_call", "call_id": one, "name": "f", "arguments": "{}"} for one in ids]
        outputs = [{"type": "function_call_output", "call_id": one, "output": f"{MARKER} {one}"} for one in ids]
        return {"input": [role, *turn.get("items", []), *calls, *outputs, *([] if ids else [role])]}
    if caller == "messages":
        uses = [{"type": "tool_use", "id": one, "name": "f", "input": {}} for one in ids]
        found = [{"type": "tool_result", "tool_use_id": one, "content": f"{MARKER} {one}"} for one in ids]
        said = {"role": "assistant", "content": [*turn.get("blocks", []), *uses]}
        return {"messages": [role, said, {"role": "user", "content": found or text}]}
    calls = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ids]
    said = {"role": "assistant", "content": None if ids else "So", "tool_calls": calls, **turn.get("fields", {})}
    return {"messages": [role, said if ids else {**said, "tool_calls": None}, *results, *([] if ids else [role])]}


def of_all(**asks: Json) -> dict[str, Json]:
    return asks


def tools(name: str = "f", **fields: Json) -> dict[str, Json]:
    """Return fields by format, each with a tool of that name."""
    schema: Json = {"type": "object", "properties": {}}
    offered: dict[str, Json] = {
        "chat": {"type": "function", "function": {"name": name, "parameters": schema}},
        "responses": {"type": "function", "name": name, "parameters": schema},
        "messages": {"name": name, "input_schema": schema},
    }
    return {api: {"tools": [offered[api]], **fields[api]} for api in fields}


def sealed(caller: str, server: str) -> Json:
    """Return a conversation in which the caller returns reasoning that the server has sealed."""
    from svc.inference.server_formats.seals import encoded  # the text is opaque to callers

    seal = SEALS.get(server, SEALS["responses"])
    item = {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": encoded(seal)}
    blocks = [{"type": "thinking", "thinking": "Hm.", "signature": encoded(seal)}]
    return conversation(
        caller, turn={"ids": ["a"], "fields": {"reasoning_details": [seal]}, "items": [item], "blocks": blocks}
    )


REASONED = {
    "fields": {"reasoning_content": MARKER},
    "items": [
        {"type": "reasoning", "id": "rs_0", "summary": [], "content": [{"type": "reasoning_text", "text": MARKER}]},
        {"role": "assistant", "content": "So"},
    ],
    "blocks": [{"type": "thinking", "thinking": MARKER, "signature": ""}, {"type": "text", "text": "So"}],
}
CACHED = {"cache_control": {"type": "ephemeral"}}
FEATURES = {
    "texts, system texts": Feature(
        of_all(
            chat={"messages": [{"role": "system", "content": MARKER}, {"role": "user", "content": "Hi"}]},
            responses={"instructions": MARKER, "input": "Hi"},
            messages={"system": MARKER, **conversation("messages")},
        )
    ),
    "parallel tool calls and results": Feature(
        {
            api: {**fields, **conversation(api, turn={"ids": ["a", "b"]})}
            for api, fields in tools(chat={}, responses={}, messages={}).items()
        },
        dict.fromkeys(APIS, f"{MARKER} b"),
    ),
    "images: data and addresses": Feature(
        of_all(
            chat=conversation("chat", parts=[{"type": "image_url", "image_url": {"url": PNG}}]),
            responses=conversation("responses", parts=[{"type": "input_image", "image_url": PNG}]),
            messages=conversation(
                "messages",
                parts=[{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": MARKER}}],
            ),
        )
    ),
    "PDF documents": Feature(
        of_all(
            chat=conversation("chat", parts=[{"type": "file", "file": FILE}]),
            responses=conversation("responses", parts=[{"type": "input_file", **FILE}]),
            messages=conversation(
                "messages",
                parts=[
                    {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}}
                ],
            ),
        ),
        {"responses": PDF, "messages": PDF},
    ),
    "text of earlier reasoning": Feature({api: conversation(api, turn=REASONED) for api in APIS}),
    "reasoning effort": Feature(
        of_all(
            chat={"reasoning_effort": "high", "max_tokens": 32000},
            responses={"reasoning": {"effort": "high"}, "max_output_tokens": 32000},
            messages={"output_config": {"effort": "high"}, "max_tokens": 32000},
        ),
        {"chat": '"reasoning_effort": "high"', "responses": '"effort": "high"', "messages": '"budget_tokens": 16384'},
    ),
    "JSON schema of the answer": Feature(
        of_all(
            chat={"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}},
            responses={"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}},
            messages={"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        )
    ),
    "any JSON object": Feature(
        of_all(
            chat={"response_format": {"type": "json_object"}},
            responses={"text": {"format": {"type": "json_object"}}},
        ),
        dict.fromkeys(APIS, "json_object"),
    ),
    "forced function": Feature(
        tools(
            MARKER,
            chat={"tool_choice": {"type": "function", "function": {"name": MARKER}}},
            responses={"tool_choice": {"type": "function", "name": MARKER}},
            messages={"tool_choice": {"type": "tool", "name": MARKER}},
        ),
        {
            "chat": '"tool_choice": {"type": "function"',
            "responses": '"tool_choice": {"type": "function"',
            "messages": '"tool_choice": {"type": "tool"',
        },
    ),
    "no parallel tool calls": Feature(
        tools(
            chat={"parallel_tool_calls": False},
            responses={"parallel_tool_calls": False},
            messages={"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        ),
        {
            "chat": '"parallel_tool_calls": false',
            "responses": '"parallel_tool_calls": false',
            "messages": '"disable_parallel_tool_use": true',
        },
    ),
    "custom tools": Feature(
        of_all(
            chat={"tools": [{"type": "custom", "custom": {"name": MARKER}}]},
            responses={"tools": [{"type": "custom", "name": MARKER}]},
        )
    ),
    "hosted tools": Feature(
        of_all(
            chat={"tools": [{"type": "web_search"}]},
            responses={"tools": [{"type": "web_search"}]},
            messages={"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        ),
        dict.fromkeys(APIS, "web_search"),
    ),
    "stop sequences": Feature(of_all(chat={"stop": [MARKER]}, messages={"stop_sequences": [MARKER]})),
    "log probabilities": Feature(
        of_all(chat={"logprobs": True, "top_logprobs": 2}, responses={"top_logprobs": 2}),
        dict.fromkeys(APIS, '"top_logprobs": 2'),
    ),
    "temperature, `top_p`": Feature(
        {api: {"temperature": 0.25, "top_p": 0.5} for api in APIS}, dict.fromkeys(APIS, '"temperature": 0.25')
    ),
    "`top_k`": Feature({api: {"top_k": 7} for api in ("chat", "messages")}, dict.fromkeys(APIS, '"top_k": 7')),
    "`n` above 1, `logit_bias`": Feature(of_all(chat={"n": 2}), dict.fromkeys(APIS, '"n": 2')),
    "`seed`": Feature(of_all(chat={"seed": 7}), dict.fromkeys(APIS, '"seed": 7')),
    "penalties": Feature(
        {api: {"presence_penalty": 0.5} for api in ("chat", "responses")},
        dict.fromkeys(APIS, '"presence_penalty": 0.5'),
    ),
    "marks of prompt caches": Feature(
        {api: conversation(api, parts=[{"type": "text", "text": "Hi", **CACHED}]) for api in ("chat", "messages")},
        dict.fromkeys(APIS, "ephemeral"),
    ),
}


# --- tests


@pytest.fixture
async def upstream() -> AsyncIterator[FormatServer]:
    async with FormatServer() as upstream:
        yield upstream


@pytest.fixture
def config(config: Config, upstream: FormatServer, tmp_path: Path) -> Config:
    models = "".join(f'[[providers.models]]\nid = "ok+{api}"\napi = "{api}"\naliases = ["{api}"]\n' for api in APIS)
    models += '[[providers.models]]\nid = "said-one"\napi = "responses"\naliases = ["counts"]\n'
    provider = f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\napi_key = "sk-of-the-operator-0123"\n'
    (tmp_path / "catalog.toml").write_text(provider + models)
    return dataclasses.replace(config, catalog=tmp_path / "catalog.toml", resolve=Names())


async def ask(service: Service, headers: dict[str, str], caller: str, model: str, fields: Json) -> Any:
    service.clocks.advance(60)  # for the rate limit
    limits = {"max_tokens": 100} if caller == "messages" else {}
    body = {"model": model, **limits, **conversation(caller), **fields}
    return await service.client.post(f"/v1{PATHS[caller]}", json=body, headers=headers)


@needs_pypdf
async def test_table_says_what_each_cell_carries(service: Service, upstream: FormatServer) -> None:
    """That a server of the caller's own format gets all is the business of tests of the passed request."""
    headers = bearer((await service.make_key(await service.bearer()))["key"])
    told = table()
    assert told.keys() == {*FEATURES, "sealed reasoning"}
    for name, cells in told.items():
        for (caller, server), word in cells.items():
            feature = FEATURES.get(name) or Feature(
                {api: sealed(api, server) for api in APIS}, dict.fromkeys(APIS, "sealed0123")
            )
            assert (caller in feature.asks) == (word != "-"), (name, caller)
            if caller == server or word == "-":
                continue
            upstream.requests.clear()
            answer = await ask(service, headers, caller, server, feature.asks[caller])
            place = (name, caller, server, answer.text[:300])
            assert answer.status_code == (400 if word == "400" else 200), place
            if word == "400":
                assert upstream.requests == [], place
                continue
            (seen,) = upstream.requests
            if server != "chat":
                checked_request(server, seen.body)
            got = feature.got.get(server, MARKER) in json.dumps(seen.body)
            assert got == (word in ("yes", "function", "text")), place


@each("caller, field", [("chat", "stop"), ("messages", "stop_sequences")])
@each("stream", [False, True])
async def test_service_ends_the_answer_of_a_responses_server(
    service: Service, upstream: FormatServer, caller: str, field: str, stream: bool
) -> None:
    upstream.said["one"] = Said([{"text": "one, two, three"}], piece=2)
    headers = bearer((await service.make_key(await service.bearer()))["key"])
    answer = await ask(service, headers, caller, "counts", {field: ["three", "four"], "stream": stream})
    assert answer.status_code == 200
    assert "".join(re.findall(r'"(?:content|text)":"([^"]*)"', answer.text)) == "one, two, "
    if caller == "messages":
        assert '"stop_reason":"stop_sequence"' in answer.text if stream else answer.json()["stop_sequence"] == "three"
