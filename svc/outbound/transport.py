"""An httpx transport over Outbound, for code that is written against httpx.

It is imported only where a client is made: httpx takes a tenth of a start, and most services never need it.
"""

import contextlib

import httpx

from svc.outbound import errors
from svc.outbound.client import Outbound

LONGEST_TIMEOUT_SECONDS = 600.0
_ANSWER_BYTES = 256 * 1024


def httpx_client(outbound: Outbound) -> httpx.AsyncClient:
    """Return an httpx client that closes `outbound` with itself. Its requests need a deadline of the caller."""
    return httpx.AsyncClient(transport=Transport(outbound), trust_env=False, timeout=None)  # noqa: S113 - see above


class Transport(httpx.AsyncBaseTransport):
    """Sends httpx requests through an `Outbound`. The `read` timeout of httpx applies to every wait."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and read the whole answer. `set-cookie` is dropped, because accounts share the client.

        Raises what httpx raises, and TooLarge.
        """
        read_seconds = request.extensions.get("timeout", {}).get("read")
        timeout_seconds = min(read_seconds or LONGEST_TIMEOUT_SECONDS, LONGEST_TIMEOUT_SECONDS)
        body, url = await request.aread(), str(request.url)
        try:
            reply = await self._outbound.send(
                request.method, url, tuple(request.headers.raw), body, timeout_seconds=timeout_seconds
            )
            async with contextlib.aclosing(reply):
                content = await reply.read(_ANSWER_BYTES)
        except errors.TooLarge:
            raise
        except (errors.ConnectTimeout, errors.ReadTimeout) as error:
            raise httpx.TimeoutException(str(error)) from error
        except errors.ProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from error
        except errors.OutboundError as error:
            raise httpx.TransportError(str(error)) from error
        headers = [header for header in reply.raw_headers if header[0] != b"set-cookie"]
        return httpx.Response(reply.status, headers=headers, content=content)

    async def aclose(self) -> None:
        await self._outbound.aclose()
