"""The context of one request, at `scope["svc"]`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, eq=False)
class Context:
    """What the layers around a handler know of a request."""

    headers: Mapping[bytes, bytes]  # joined by name in lower case
    answer_headers: list[tuple[bytes, bytes]] = field(init=False)  # added to the answer, an error too
    log_fields: dict[str, Any] = field(init=False)  # of the request's line in the log, beside those of every request
    request_id: str = field(init=False)
    status: int = 0  # of the answer, when it has begun
    client_ip: str = ""  # set when the host is accepted
    account_id: str | None = None  # set when the caller is authenticated
    linked_account_id: str | None = None  # the account whose signed link the request has
    counted_body: tuple[int, list[bytes]] | None = None  # its bytes, and the shares that they count in
    disconnected: bool = False
    interrupt: Callable[[str], None] | None = None  # ends the open answer

    def disconnect(self) -> None:
        """Note that the client has disconnected, and end the open answer."""
        self.disconnected = True
        if self.interrupt is not None:
            self.interrupt("client_disconnected")
