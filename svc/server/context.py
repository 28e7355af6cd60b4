"""The context of one request: what the layers around a handler know of it, in one typed object at `scope["svc"]`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request


@dataclass(slots=True, eq=False)
class Context:
    """The state of a request, from its head to its log line.

    `headers` are the request's, joined by name in lower case. `answer_headers` are added to whatever the answer is. `log_fields`
    is the line of the log. `client_ip` is known once the host was accepted, `account_id` once the caller is.
    """

    headers: Mapping[bytes, bytes]
    answer_headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    log_fields: dict[str, Any] = field(default_factory=dict)
    request_id: str = ""
    client_ip: str = ""
    account_id: str | None = None
    linked_account_id: str | None = None  # the account of the signed link that the request has
    counted_body: tuple[int, list[bytes]] | None = None  # its bytes, and the budgets that they count against


def context_of(request: Request[Any]) -> Context:
    """Return the context of a request."""
    context: Context = request.scope["svc"]
    return context
