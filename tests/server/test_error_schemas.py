"""Errors under /v1/messages have Anthropic's shape, whatever part of the server answers them."""

from typing import get_args

from svc.errors import ERRORS, ApiError, anthropic_error
from svc.server.interface import error_content
from svc.shapes import Component
from tests.conftest import Service
from tests.support.late_imports import import_late
from tests.support.openapi import DOCUMENT, faults, resolved

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    502: "api_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def test_errors_have_types_of_the_anthropic_sdk() -> None:
    import_late("anthropic")
    from anthropic.types.shared.error_response import ErrorResponse
    from anthropic.types.shared.error_type import ErrorType

    for code in ERRORS:
        error = ApiError(code, retry_after_seconds=7)
        body = anthropic_error(error, "req_1")
        assert body["error"]["type"] == TYPES.get(error.status, "invalid_request_error"), code
        assert body["error"]["message"] == ERRORS[code][2] and body["request_id"] == "req_1", code
        assert body["error"].get("retry_after") == (7 if error.status == 429 else None), code
        if error.status != 413:  # documented by Anthropic, but missing in the SDK's types
            assert body["error"]["type"] in get_args(ErrorType), code
            assert ErrorResponse.model_validate(body).error.type == body["error"]["type"], code


def test_the_document_shows_the_shape_of_each_path() -> None:
    shown = [error_content(path, "429", []).shape.schema for path in ("/v1/messages/count_tokens", "/v1/messagesque")]
    assert [schema.name for schema in shown if isinstance(schema, Component)] == ["MessagesError", "RateLimitError"]


async def test_unknown_paths_hosts_and_methods_have_the_error_shape(service: Service) -> None:
    for method, path, headers, status in (
        ("POST", "/v1/messages/batches", {}, 404),
        ("GET", "/v1/messages", {}, 405),
        ("PUT", "/v1/messages/count_tokens", {}, 405),
        ("POST", "/v1/messages", {"host": "evil.example"}, 421),
        ("GET", "/v1/messages/batches", {}, 404),
        ("POST", "/v1/messages/batches", {"host": "evil.example"}, 421),
    ):
        answer = await service.client.request(method, path, headers={**headers, "x-request-id": "mine"})
        assert answer.status_code == status
        body = answer.json()
        assert body["type"] == "error" and body["request_id"] == answer.headers["request-id"] == "mine"
        assert body["error"]["type"] == TYPES.get(status, "invalid_request_error") and set(body["error"]) == {
            "type",
            "message",
        }
    assert "request-id" not in (await service.client.get("/v1/models")).headers


def test_documented_errors_have_the_type_of_their_status() -> None:
    seen = set()
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        for status, answer in DOCUMENT["paths"][path]["post"]["responses"].items():
            content = resolved(answer)["content"].get("application/json", {})
            for example in content["examples"].values() if status >= "400" else ():
                assert not faults(example["value"], "components", "schemas", "MessagesError")
                code = 400 if status == "4XX" else int(status)
                assert example["value"]["error"]["type"] == TYPES.get(code, "invalid_request_error")
                seen.add(code)
    assert seen >= {400, 401, 402, 403, 404, 413, 415, 429, 500, 502, 503, 504}
