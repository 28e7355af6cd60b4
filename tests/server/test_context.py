"""The context of a request: every layer writes to it, and the handler, the log and the answer agree on it."""

from typing import Any

import pytest

from svc.server.context import Context
from svc.server.state import Request


async def unused(*message: Any) -> Any:
    raise NotImplementedError


def test_a_request_has_the_context_of_its_scope() -> None:
    context = Context({b"host": b"127.0.0.1"})
    scope: Any = {"type": "http", "svc": context}
    state: Any = None
    assert Request(scope, unused, state).context is context
    assert (
        context.headers,
        context.account_id,
        context.linked_account_id,
        context.client_ip,
        context.counted_body,
    ) == (
        {b"host": b"127.0.0.1"},
        None,
        None,
        "",
        None,
    )


def test_a_misspelt_field_of_a_context_fails() -> None:
    context = Context({})
    with pytest.raises(AttributeError):
        context.client_id = "192.0.2.1"  # type: ignore[attr-defined]
