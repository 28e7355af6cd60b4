"""svc/inference/server_formats/probe.py: what the answer to an empty request says about a model server."""

from typing import Any

import orjson
import pytest

from svc.inference.catalog import APIS, Provider
from svc.inference.server_formats import probe
from svc.outbound.client import Outbound
from tests.support.byok import http_answer, raw_server
from tests.support.cases import each

# The answers of real servers to an empty request.
LACKS = {
    "OpenAI, chat": (400, {"error": {"message": "Missing required parameter: 'messages'.", "param": "messages"}}),
    "OpenAI, Responses": (400, {"error": {"message": "Missing required parameter: 'model'.", "param": "model"}}),
    "Anthropic": (
        400,
        {"type": "error", "error": {"type": "invalid_request_error", "message": "model: Field required"}},
    ),
    "vLLM": (400, {"error": {"message": "[{'type': 'missing', 'loc': ('body', 'messages')}]", "code": 400}}),
    "FastAPI": (422, {"detail": [{"type": "missing", "loc": ["body", "input"], "msg": "Field required"}]}),
    "llama.cpp": (500, {"error": {"code": 500, "message": "'messages' is required", "type": "server_error"}}),
    "Ollama": (404, {"error": {"message": "model '' not found", "type": "not_found_error"}}),
}
NO_PATH: dict[str, tuple[int, Any]] = {
    "OpenAI": (404, {"error": {"message": "Invalid URL (POST /v1/messages)", "type": "invalid_request_error"}}),
    "Anthropic": (404, {"type": "error", "error": {"type": "not_found_error", "message": "Not Found"}}),
    "llama.cpp": (404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}),
    "vLLM": (404, {"detail": "Not Found"}),
    "Go": (404, "404 page not found"),
    "Express": (404, "<pre>Cannot POST /v1/responses</pre>"),
    "LM Studio": (200, {"error": "Unexpected endpoint or method. (POST /v1/messages)"}),
    "nginx": (405, "<html>Not Allowed</html>"),
}
UNTOLD: dict[str, tuple[int, Any]] = {
    "wrong key": (401, {"error": {"message": "Missing API key for this model"}}),
    "too many": (429, {"error": {"message": "Too many requests for this model"}}),
    "busy": (503, {"error": {"message": "Loading model"}}),
    "something else": (400, {"error": {"message": "Bad Request"}}),
    "an answer": (200, {"choices": []}),
    "a page": (200, "<html>"),
}


@each(
    ("answer", "expected"),
    [(answer, told) for cases, told in ((LACKS, True), (NO_PATH, False), (UNTOLD, None)) for answer in cases.values()],
)
async def test_refusal_of_an_empty_request_tells_the_format(answer: tuple[int, Any], expected: bool | None) -> None:
    status, value = answer
    body = value.encode() if isinstance(value, str) else orjson.dumps(value)
    async with raw_server(http_answer(f"{status} X", body)) as raw:
        client = Outbound()
        found = await probe.formats(client, Provider("lab", f"{raw.base_url}/v1"), 5.0)
        await client.aclose()
    assert found == dict.fromkeys(APIS, expected)


@pytest.mark.parametrize("sent", [b"", None])
async def test_server_that_hangs_up_or_is_silent_tells_nothing(sent: bytes | None) -> None:
    async with raw_server(sent) as raw:
        client = Outbound()
        assert await probe.formats(client, Provider("lab", raw.base_url), 0.2) == dict.fromkeys(APIS)
        await client.aclose()
