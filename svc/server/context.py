"""The context of one request: what the layers around a handler know of it, in one typed object at `scope["svc"]`."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request


class Context:
    """What is known of a request, from its head to its log line.

    `headers` are the request's, joined by name in lower case. `answer_headers` are added to whatever the answer is. `log_fields`
    is the line of the log. `client_ip` is known once the host was accepted, `account_id` once the caller is.
    """

    # Slots without defaults: an attribute that has one in the class, too, is slower to read.
    __slots__ = (
        *("account_id", "answer_headers", "client_ip", "counted_body", "headers", "linked_account_id", "log_fields"),
        "request_id",
    )

    def __init__(self, headers: Mapping[bytes, bytes]) -> None:
        self.headers = headers
        self.answer_headers: list[tuple[bytes, bytes]] = []
        self.log_fields: dict[str, Any] = {}
        self.request_id = ""
        self.client_ip = ""
        self.account_id: str | None = None
        self.linked_account_id: str | None = None  # the account whose signed link the request has
        self.counted_body: tuple[int, list[bytes]] | None = None  # its bytes, and the shares that they count in


def context_of(request: Request[Any]) -> Context:
    """Return the context of a request."""
    context: Context = request.scope["svc"]
    return context
