"""An httpx transport over Outbound, for code that is written against httpx.

It is imported only where a client is made: httpx takes a tenth of a start, and most services never need it.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator

import httpx

from svc.outbound import errors
from svc.outbound.client import Outbound
from svc.outbound.connection import Reply

LONGEST_TIMEOUT_SECONDS = 600.0


def httpx_client(outbound: Outbound) -> httpx.AsyncClient:
    """Return an httpx client that closes `outbound` with itself. Its requests need a deadline of the caller."""
    return httpx.AsyncClient(transport=Transport(outbound), trust_env=False, timeout=None)  # noqa: S113 - see above


class Transport(httpx.AsyncBaseTransport):
    """Sends httpx requests through an `Outbound`. The `read` timeout of httpx applies to every wait."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. `set-cookie` is dropped, because accounts share the client."""
        read_seconds = request.extensions.get("timeout", {}).get("read")
        timeout_seconds = min(read_seconds or LONGEST_TIMEOUT_SECONDS, LONGEST_TIMEOUT_SECONDS)
        body, url = await request.aread(), str(request.url)
        with _translated():
            reply = await self._outbound.send(request.method, url, request.headers.raw, body, timeout_seconds=timeout_seconds)
        headers = [header for header in reply.raw_headers if header[0] != b"set-cookie"]
        return httpx.Response(reply.status, headers=headers, stream=_Body(reply))

    async def aclose(self) -> None:
        await self._outbound.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated():
            async for chunk in self._reply:
                yield chunk

    async def aclose(self) -> None:
        await self._reply.aclose()


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except errors.OutboundError as error:
        kind: type[httpx.TransportError] = httpx.TransportError
        if isinstance(error, errors.ConnectTimeout | errors.ReadTimeout):
            kind = httpx.TimeoutException
        elif isinstance(error, errors.ProtocolError):
            kind = httpx.RemoteProtocolError
        raise kind(str(error)) from error
