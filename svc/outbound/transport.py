"""The client under httpx: for what is written against httpx, with httpx's exceptions, and without what httpx adds by itself.

It is imported where a client is made: httpx and what it brings are a tenth of a start, which most services never need.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator

import httpx

from svc.outbound import errors
from svc.outbound.client import Outbound
from svc.outbound.connection import Reply

LONGEST_TIMEOUT_SECONDS = 600.0

# The first that an error is an instance of.
_TRANSLATED: tuple[tuple[type[errors.OutboundError], type[httpx.TransportError]], ...] = (
    (errors.InvalidRequest, httpx.LocalProtocolError),
    (errors.ConnectTimeout, httpx.ConnectTimeout),
    (errors.ConnectError, httpx.ConnectError),
    (errors.AddressNotAllowed, httpx.ConnectError),
    (errors.ReadTimeout, httpx.ReadTimeout),
    (errors.ReadError, httpx.ReadError),
    (errors.ProtocolError, httpx.RemoteProtocolError),
    (errors.OutboundError, httpx.TransportError),
)


def httpx_client(outbound: Outbound) -> httpx.AsyncClient:
    """An httpx client over `outbound`, which it closes with itself. Its requests need a deadline of their caller's."""
    return httpx.AsyncClient(transport=Transport(outbound), trust_env=False, timeout=None)  # noqa: S113 - see above


class Transport(httpx.AsyncBaseTransport):
    """httpx's way to an `Outbound`. The client's `read` timeout holds for every wait."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """`set-cookie` is dropped: clients are shared between accounts."""
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
        raise next(theirs for ours, theirs in _TRANSLATED if isinstance(error, ours))(str(error)) from error
