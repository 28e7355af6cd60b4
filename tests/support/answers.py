"""Judging an answer of the service."""

from typing import Any

import httpx

from svc.errors import ERRORS


def assert_error(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The `error` of an answer; fails unless it has the shape of all errors, this status and this code."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert set(error) - {"retry_after"} == {"message", "type", "code", "param"}
    assert error["code"] == code and error["type"] == ERRORS[code][1] and error["message"]
    return error
