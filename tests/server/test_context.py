"""The context of a request: every layer writes to it, and the handler, the log and the answer agree on it."""

from typing import Any

import pytest
from starlette.requests import Request

from svc.server.context import Context, context_of


def test_a_request_has_the_context_of_its_scope() -> None:
    context = Context({b"host": b"127.0.0.1"})
    request: Request[Any] = Request({"type": "http", "svc": context})
    assert context_of(request) is context
    assert (context.headers, context.answer_headers, context.log_fields) == ({b"host": b"127.0.0.1"}, [], {})
    assert (context.account_id, context.linked_account_id, context.client_ip, context.counted_body) == (None, None, "", None)


def test_a_misspelt_field_of_a_context_fails() -> None:
    context = Context({})
    with pytest.raises(AttributeError):
        context.client_id = "192.0.2.1"  # type: ignore[attr-defined]
