"""svc/inference/answer/upstream_errors.py: what the caller sees of a model server's faults, and what may be tried again."""

import time
from typing import Any

from svc.errors import UpstreamFault
from svc.inference.answer import upstream_errors
from tests.support.cases import each


def seen(fault: UpstreamFault, byok: bool = False) -> tuple[int, str, str | None]:
    error = upstream_errors.caller_error(fault, provider="here", byok=byok)
    assert error.error.keys() - {"retry_after"} == {"message", "type", "param", "code"}
    assert all(value is None or isinstance(value, str) for name, value in error.error.items() if name != "retry_after")
    assert "here" in error.error["message"] or fault.error
    return error.status, error.error["type"], error.error["code"]


@each(
    ("kind", "expected"),
    [
        ("unreachable", (502, "upstream_error", "upstream_unreachable")),
        ("timeout", (504, "upstream_error", "upstream_timeout")),
        ("invalid", (502, "upstream_error", "upstream_invalid_response")),
        ("cut", (502, "upstream_error", "upstream_error")),
    ],
)
@each("byok", [True, False])
def test_each_kind_of_fault_has_its_error(kind: str, expected: tuple[int, str, str], byok: bool) -> None:
    assert seen(UpstreamFault(kind), byok) == expected


ERROR = {
    "message": "too long",
    "type": "invalid_request_error",
    "param": "messages",
    "code": "context_length_exceeded",
    "x": 1,
}


@each("status", [400, 404, 409, 413, 422, 451])
@each("byok", [True, False])
def test_error_4xx_of_the_model_server_keeps_status_and_error(status: int, byok: bool) -> None:
    error = upstream_errors.caller_error(
        UpstreamFault("status", status=status, error=ERROR), provider="here", byok=byok
    )
    assert error.status == status
    assert error.error == {name: ERROR[name] for name in ("message", "type", "param", "code")}
    assert seen(UpstreamFault("status", status=status), byok)[0] == status


@each("status", [401, 402, 403, 405, 407])
def test_refusal_that_the_caller_did_not_cause_is_502_without_a_quote(status: int) -> None:
    error = upstream_errors.caller_error(
        UpstreamFault("status", status=status, error=ERROR), provider="here", byok=False
    )
    assert (error.status, error.error["code"]) == (502, "upstream_error")
    assert "too long" not in str(error)
    assert "www-authenticate" not in error.headers


@each("status", [401, 402, 403, 429])
def test_refusal_of_an_own_provider_names_it(status: int) -> None:
    error = upstream_errors.caller_error(
        UpstreamFault("status", status=status, error=ERROR), provider="mine", byok=True
    )
    assert error.status == status
    assert error.error["message"] == "mine: too long"


@each(("asked", "told"), [(None, 1), (0.0, 1), (2.2, 3), (59.0, 59), (3600.0, 59)])
def test_retry_after_is_an_integer_from_1_to_59(asked: float | None, told: int) -> None:
    fault = UpstreamFault("status", status=429, error=ERROR, retry_after_seconds=asked)
    theirs = upstream_errors.caller_error(fault, provider="here", byok=False)
    assert (theirs.status, theirs.headers["retry-after"], theirs.error["type"]) == (503, str(told), "upstream_error")
    own = upstream_errors.caller_error(fault, provider="here", byok=True)
    assert (own.status, own.headers["retry-after"], own.error["retry_after"]) == (429, str(told), told)


@each(("status", "told"), [(500, 502), (501, 502), (502, 502), (503, 503), (504, 504), (529, 503), (302, 502)])
def test_errors_5xx_and_redirects_become_our_errors(status: int, told: int) -> None:
    assert seen(UpstreamFault("status", status=status)) == (told, "upstream_error", "upstream_error")


def test_error_5xx_keeps_its_message() -> None:
    error = upstream_errors.caller_error(
        UpstreamFault("status", status=500, error={"message": "no memory"}), provider="here", byok=False
    )
    assert error.error["message"].endswith("failed: no memory")


@each(
    ("kind", "status", "again"),
    [
        ("unreachable", 0, True),
        ("timeout", 0, True),
        ("status", 429, True),
        ("status", 502, True),
        ("status", 503, True),
        ("status", 504, True),
        ("status", 500, False),
        ("status", 400, False),
        ("status", 408, False),
        ("cut", 0, False),
        ("invalid", 0, False),
    ],
)
def test_retryable_errors_are_marked(kind: str, status: int, again: bool) -> None:
    assert upstream_errors.retriable(UpstreamFault(kind, status=status)) is again


def test_error_body_of_many_values_is_parsed_quickly() -> None:
    value: Any = 1
    for _ in range(4):
        value = {name: [value] * 9 for name in ("error", "errors", "detail", "message", "reason")}
    began = time.thread_time()
    assert upstream_errors.error_object(value, None) is None and not upstream_errors.is_error(value)
    deep: Any = {"message": "at the bottom"}
    for _ in range(200):
        deep = {"error": [deep]}
    assert upstream_errors.error_object(deep, None) is None
    assert time.thread_time() - began < 0.3
