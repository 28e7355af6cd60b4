"""The servers of one provider of the catalog, if it has several addresses: which one a call asks.

ranked() -> by rendezvous hash of the call's key, so that a conversation finds its cached prefix again
         -> a server that has failed is skipped for 15 s: it is the last to be asked
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from svc.errors import UpstreamFault
from svc.metrics import Metrics

_SKIPPED_SECONDS = 15.0
_HASHED_MESSAGES = 2
_HASHED_ROLES = ("system", "developer", "user")
BILLING_HEADER = "x-anthropic-billing-header:"  # Claude Code's; it changes with every prompt and spoils prefix caches
# Of a message's text. Prefixes that are the same so far are hardly ever different conversations.
_HASHED_CHARACTERS = 65_536
_HASHED_PARTS = 1_000


class AtOneAddress(Protocol):
    """A provider with one address."""

    @property
    def name(self) -> str: ...

    @property
    def base_url(self) -> str: ...


S = TypeVar("S", bound=AtOneAddress)
_S = TypeVar("_S", bound=AtOneAddress, covariant=True)


class OnDemand(Protocol[_S]):
    """A server that runs only while it is needed, and answers few calls at once."""

    @property
    def state(self) -> str: ...

    async def take(self, account_id: str) -> tuple[_S, Callable[[], None]]:
        """Wait for a turn. Return the server, and the function to call after the answer."""
        ...


class Servers(Generic[S]):
    """The servers of a provider, each as a provider with its own address."""

    def __init__(self, servers: Iterable[S]) -> None:
        self._servers = tuple(servers)
        self._failed_at: dict[str, float] = {}

    def __iter__(self) -> Iterator[S]:
        return iter(self._servers)

    def ranked(self, key: bytes, now_seconds: float) -> list[S]:
        """Return all servers in the order in which a call with this key asks them."""

        def place(server: S) -> tuple[bool, bytes]:
            rank = hashlib.blake2b(server.base_url.encode(), key=key, digest_size=16).digest()
            return self.is_skipped(server, now_seconds), rank

        return sorted(self._servers, key=place)

    def is_skipped(self, server: S, now_seconds: float) -> bool:
        # A clock that goes back ends the pause.
        return 0 <= now_seconds - self._failed_at.get(server.base_url, float("-inf")) < _SKIPPED_SECONDS

    def skip(self, server: S, now_seconds: float) -> None:
        self._failed_at[server.base_url] = now_seconds

    def states(self, metrics: Metrics, now_seconds: float) -> list[dict[str, Any]]:
        """Return the calls and failures of each server since the start, and whether it is skipped."""
        return [
            {
                "provider": server.name,
                "server": server.base_url,
                "calls": metrics.server_calls.sums[server.name, server.base_url],
                "failures": metrics.server_failures.sums[server.name, server.base_url],
                "skipped": self.is_skipped(server, now_seconds),
            }
            for server in self._servers
        ]


class Choice(Generic[S]):
    """The servers that one call may still ask. Each is asked until it is down."""

    def __init__(self, servers: Servers[S], key: bytes, now_seconds: float, metrics: Metrics) -> None:
        self._servers = servers
        self._untried = servers.ranked(key, now_seconds)
        self._metrics = metrics

    @property
    def is_over(self) -> bool:
        """Whether all servers are down."""
        return not self._untried

    def server(self) -> S:
        """Return the server to ask now, and count the attempt."""
        server = self._untried[0]
        self._metrics.server_calls.add(server.name, server.base_url)
        return server

    def has_other(self, fault: UpstreamFault, now_seconds: float) -> bool:
        """Skip the server that was asked if the fault says that it is down. Return whether to ask another one."""
        status_down = fault.kind == "status" and fault.status in (502, 503, 504)
        if fault.kind not in ("unreachable", "timeout") and not status_down:
            return False
        server = self._untried.pop(0)
        self._servers.skip(server, now_seconds)
        self._metrics.server_failures.add(server.name, server.base_url)
        return bool(self._untried)


def key_of(account_id: str, messages: Iterable[Mapping[str, Any]] = ()) -> bytes:
    """Return the key of a call, which is the same for all calls of a conversation.

    It depends on the texts of the first two messages without those of the model, which the first call does not have.
    """
    hashed = hashlib.blake2b(account_id.encode(), digest_size=32)
    for number, message in enumerate(messages):
        if number == _HASHED_MESSAGES:
            break
        if message.get("role") in _HASHED_ROLES:
            hashed.update(b"\0" + _text(message.get("content")).encode("utf-8", "replace"))
    return hashed.digest()


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content[:_HASHED_CHARACTERS]
    text = ""
    for part in content[:_HASHED_PARTS] if isinstance(content, list) else ():
        found = part.get("text") if isinstance(part, dict) else None
        if isinstance(found, str) and not found.startswith(BILLING_HEADER):
            text += found[: _HASHED_CHARACTERS - len(text)]
    return text
