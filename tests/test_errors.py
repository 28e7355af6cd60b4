"""The one table of errors, and the headers that go with each of its rows."""

import re

import pytest

from svc.errors import ERRORS, ApiError, describe
from tests.support.cases import each

FAMILIES = {
    "invalid_request_error",
    "authentication_error",
    "insufficient_funds_error",
    "permission_error",
    "not_found_error",
    "conflict_error",
    "rate_limit_error",
    "api_error",
    "upstream_error",
}


@each("code", ERRORS)
def test_each_error_has_a_status_a_type_and_advice(code: str) -> None:
    status, kind, message = ERRORS[code]
    assert 400 <= status < 600 and kind in FAMILIES
    assert re.match(r"[A-Z]", message) and message.endswith(".") and len(message) < 150


@each("code", ERRORS)
def test_errors_have_one_shape(code: str) -> None:
    error = ApiError(code, param="field")
    assert error.body() == {
        "error": {"message": ERRORS[code][2], "type": ERRORS[code][1], "code": code, "param": "field"}
    }
    assert str(error) == ERRORS[code][2] and error.status == ERRORS[code][0]


@each("code", ERRORS)
def test_the_headers_follow_from_the_status(code: str) -> None:
    error = ApiError(code, headers={"x-own": "1"})
    expected = {"x-own": "1"}
    if error.status == 401:
        expected["www-authenticate"] = "Bearer"
    if error.status == 503:
        expected["retry-after"] = "1"
    if error.status in (402, 409):
        expected["x-should-retry"] = "false"
    assert error.headers == expected


def test_retry_after_is_in_the_header_and_on_429_in_the_body() -> None:
    limited = ApiError("rate_limit_exceeded", retry_after_seconds=37)
    assert limited.headers["retry-after"] == "37" and limited.body()["error"]["retry_after"] == 37
    busy = ApiError("overloaded", retry_after_seconds=5)
    assert busy.headers["retry-after"] == "5" and "retry_after" not in busy.body()["error"]


def test_refusal_of_a_model_server_keeps_its_text_and_status() -> None:
    theirs = {"message": "context too long", "type": "invalid_request_error", "code": "context_length", "param": None}
    error = ApiError("upstream_error", status=400, error=theirs)
    assert (error.status, error.body()) == (400, {"error": theirs})


def test_unknown_error_code_is_a_bug() -> None:
    with pytest.raises(KeyError):
        ApiError("no_such_code")


def test_exception_is_described_by_type_and_places_without_its_text() -> None:
    def failing() -> None:
        raise ValueError("hunter2")

    with pytest.raises(ValueError) as caught:
        failing()
    told = describe(caught.value)
    assert re.fullmatch(r"ValueError < test_errors\.py:\d+ < test_errors\.py:\d+", told) and "hunter2" not in told
