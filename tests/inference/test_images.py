"""Images for models that are known not to read any, and PDFs by address for servers of chat completions. They are
refused at once, or replaced in the results of tools.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from svc.config import Config
from svc.inference.catalog import Model
from svc.inference.images import check_images
from tests.conftest import JSON, Clocks, Service, bearer, serving
from tests.support.cases import each
from tests.support.format_server import FormatServer

URL = "data:image/png;base64,iVBORw0KGgo="
SOURCE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
CHAT = {"type": "image_url", "image_url": {"url": URL}}
RESPONSES = {"type": "input_image", "image_url": URL}
MESSAGES = {"type": "image", "source": SOURCE}
PDF = "JVBERi0xLjcK"
FILE = {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}
DOCUMENT = {
    "type": "document",
    "title": "a.pdf",
    "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
}
FILE_ADDRESS = {"type": "input_file", "file_url": "https://a.example/a.pdf"}
DOCUMENT_ADDRESS = {"type": "document", "source": {"type": "url", "url": "https://a.example/a.pdf"}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
# Requests with an image of the person, and its place.
OWN: list[tuple[str, dict[str, Any], str]] = [
    (
        "/v1/chat/completions",
        {"messages": [{"role": "system", "content": "Hi"}, {"role": "user", "content": [CHAT]}]},
        "messages[1].content[0].image_url",
    ),
    (
        "/v1/responses",
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}, RESPONSES]}]},
        "input[0].content[1].image_url",
    ),
    (
        "/v1/messages",
        {"max_tokens": 9, "messages": [{"role": "user", "content": [MESSAGES]}]},
        "messages[0].content[0].source",
    ),
    (
        "/v1/messages",
        {
            "max_tokens": 9,
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "document", "source": {"type": "content", "content": [MESSAGES]}}],
                }
            ],
        },
        "messages[0].content[0].source.content[0].source",
    ),
]
# Requests with an image in the result of a tool.
RESULTS: list[tuple[str, dict[str, Any]]] = [
    (
        "/v1/chat/completions",
        {
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "call_1", "content": [CHAT]},
            ]
        },
    ),
    (
        "/v1/responses",
        {
            "input": [
                {"role": "user", "content": "Hi"},
                {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_1", "output": [RESPONSES]},
            ]
        },
    ),
    (
        "/v1/messages",
        {
            "max_tokens": 9,
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}]},
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [MESSAGES]}],
                },
            ],
        },
    ),
]


def _with_pdf(value: Any, file: dict[str, Any] = FILE, document: dict[str, Any] = DOCUMENT) -> Any:
    """Return a request with a PDF in the place of each image."""
    if isinstance(value, dict):
        found = {RESPONSES["type"]: file, MESSAGES["type"]: document}.get(value.get("type"))
        return found or {name: _with_pdf(item, file, document) for name, item in value.items()}
    return [_with_pdf(item, file, document) for item in value] if isinstance(value, list) else value


CATALOG = """
[[providers]]
name = "lab"
base_url = "{base_url}"
models = [
  {{ id = "ok" }},
  {{ id = "blind", capabilities = ["tools"] }},
  {{ id = "none", capabilities = [] }},
  {{ id = "sees", capabilities = ["vision"] }},
  {{ id = "responses+ok", api = "responses" }},
  {{ id = "messages+ok", api = "messages" }},
]
"""
# The same requests with a PDF, or with its address.
_BODIES = [*OWN[1:3], *((path, body, "") for path, body in RESULTS[1:])]
PDFS = [(path, _with_pdf(body), place) for path, body, place in _BODIES]
ADDRESSES = [(path, _with_pdf(body, FILE_ADDRESS, DOCUMENT_ADDRESS), place) for path, body, place in _BODIES]


@pytest.fixture
async def upstream() -> AsyncIterator[FormatServer]:
    async with FormatServer() as upstream:
        yield upstream


@pytest.fixture
async def service(config: Config, clocks: Clocks, upstream: FormatServer) -> AsyncIterator[Service]:
    async with serving(config, clocks, CATALOG.format(base_url=upstream.base_url)) as service:
        yield service


@pytest.fixture
async def headers(service: Service) -> dict[str, str]:
    return {**JSON, **bearer((await service.make_key(await service.bearer()))["key"])}


@each("model", ["lab/blind", "lab/none", "builtin/echo", "builtin/assistant", "builtin/assistant-paid"])
async def test_image_is_refused_at_once_by_a_model_without_vision(
    service: Service, headers: dict[str, str], upstream: FormatServer, model: str
) -> None:
    for path, body, place in OWN:
        service.clocks.advance(60)
        answer = await service.client.post(path, json={**body, "model": model}, headers=headers)
        error = answer.json()["error"]
        assert answer.status_code == 400 and error["message"].startswith(f"{model} cannot read images."), answer.text
        if path != "/v1/messages":
            assert (error["code"], error["param"]) == ("invalid_value", place)
    assert upstream.requests == []


async def test_session_gets_the_place_of_the_image_in_its_own_messages(service: Service) -> None:
    path, body, place = OWN[0]
    session = await service.bearer()
    answer = await service.client.post(path, json={**body, "model": "builtin/echo"}, headers=session)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == place
    listed = await service.client.get("/conversations", headers=session)
    assert listed.json()["data"] == []


@each("model", ["lab/ok", "lab/sees"])
async def test_image_reaches_a_model_with_vision_or_unknown_capabilities(
    service: Service, headers: dict[str, str], upstream: FormatServer, model: str
) -> None:
    for path, body, _ in OWN:
        service.clocks.advance(60)
        answer = await service.client.post(path, json={**body, "model": model}, headers=headers)
        assert answer.status_code == 200
        assert "image_url" in str(upstream.requests[-1].body)


async def test_parts_of_unknown_types_are_not_searched_for_images(service: Service, headers: dict[str, str]) -> None:
    for inner in (1, "x", None, {"type": []}, {"type": 1}, {}):
        part = {"type": "other", "content": [inner], "source": inner, "file": inner}
        for kind in ("other", "document", "file", "tool_result"):
            body = {"model": "builtin/echo", "messages": [{"role": "user", "content": [{**part, "type": kind}]}]}
            service.clocks.advance(60)
            answer = await service.client.post("/v1/chat/completions", json=body, headers=headers)
            assert answer.status_code == 200, (kind, inner, answer.text)


def test_text_in_place_of_an_image_keeps_the_mark_of_what_to_cache() -> None:
    blind = Model("lab/blind", "blind", None, "chat", {}, capabilities=())
    mark = {"cache_control": {"type": "ephemeral"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{**MESSAGES, **mark}]}
    check_images(blind, [{"role": "user", "content": [result]}], "messages")
    assert result["content"] == [{"type": "text", "text": "[An image, which this model cannot read.]", **mark}]


@each(("path", "body"), RESULTS)
async def test_image_in_the_result_of_a_tool_becomes_a_text(
    service: Service, headers: dict[str, str], upstream: FormatServer, path: str, body: dict[str, Any]
) -> None:
    for model, kept in (("lab/blind", False), ("lab/sees", True)):
        answer = await service.client.post(path, json={**body, "model": model}, headers=headers)
        assert answer.status_code == 200, answer.text
        asked = str(upstream.requests[-1].body["messages"])
        assert ("image_url" in asked, "this model cannot read" in asked) == (kept, not kept)


@each(("path", "body", "place"), PDFS)
async def test_pdf_reaches_a_server_of_another_format_than_chat(
    service: Service, headers: dict[str, str], upstream: FormatServer, path: str, body: dict[str, Any], place: str
) -> None:
    for model in ("responses+ok", "messages+ok"):
        answer = await service.client.post(path, json={**body, "model": f"lab/{model}"}, headers=headers)
        assert answer.status_code == 200, answer.text
        kind = "input_file" if model == "responses+ok" else "document"
        assert f"'type': '{kind}'" in str(upstream.requests[-1].body) and PDF in str(upstream.requests[-1].body)


@each(("path", "body", "place"), ADDRESSES)
async def test_pdf_by_address_for_a_server_of_chat_is_refused_or_a_text_in_the_result_of_a_tool(
    service: Service, headers: dict[str, str], upstream: FormatServer, path: str, body: dict[str, Any], place: str
) -> None:
    for model in ("lab/ok", "builtin/echo"):
        answer = await service.client.post(path, json={**body, "model": model}, headers=headers)
        if not place:
            assert answer.status_code == 200, answer.text
            continue
        assert answer.status_code == 400 and "reads texts, and PDFs as base64. Send" in answer.text
        if path == "/v1/responses":
            assert answer.json()["error"]["param"] == place.removesuffix(".image_url")
    asked = [str(seen.body["messages"]) for seen in upstream.requests]
    assert asked == [] if place else "[A document, which this model cannot read.]" in asked[-1]
    upstream.requests.clear()
