"""Judging an answer of the service."""

from typing import Any

import httpx

from svc.errors import ERRORS, ApiError, anthropic_error
from svc.server.web import in_anthropic_format


def assert_error(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The `error` of an answer; fails unless it has the shape of its path, this status and this code."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    if in_anthropic_format(answer.request.url.path):
        assert body["request_id"] == answer.headers["request-id"] == answer.headers["x-request-id"]
        expected = anthropic_error(ApiError(code), body["request_id"])
        assert (body["type"], body["error"]["type"]) == ("error", expected["error"]["type"]) and body["error"][
            "message"
        ]
        found: dict[str, Any] = body["error"]
        return found
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert set(error) - {"retry_after"} == {"message", "type", "code", "param"}
    assert error["code"] == code and error["type"] == ERRORS[code][1] and error["message"]
    return error
