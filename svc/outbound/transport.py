"""JSON requests by httpx, over Outbound.

It is imported only where a client is made or used: httpx takes a tenth of a start, and most services never need it.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import httpx
import orjson

from svc.outbound.client import Outbound
from svc.outbound.errors import InvalidURL, ReadTimeout

_ANSWER_BYTES = 256 * 1024
_READ_SECONDS = 600.0


def httpx_client(outbound: Outbound) -> httpx.AsyncClient:
    """Return an httpx client that closes `outbound` with itself. Its requests need a deadline of the caller."""
    return httpx.AsyncClient(transport=Transport(outbound), trust_env=False, timeout=None)  # noqa: S113 - see above


async def ask_json(
    client: httpx.AsyncClient, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None, seconds: float
) -> tuple[int, Any]:
    """Post a `form`, or get the URL. Return status and JSON of the answer, None if it is no JSON.

    Redirects are not followed. Raises OutboundError, also if the answer is not complete within `seconds`.
    """
    try:
        async with asyncio.timeout(seconds):
            response = await client.request("POST" if form else "GET", url, data=form, headers=headers)
    except TimeoutError:
        raise ReadTimeout("The answer was not complete in time.") from None
    except httpx.InvalidURL:
        raise InvalidURL("The URL is not valid.") from None
    try:
        return response.status_code, orjson.loads(response.content)
    except orjson.JSONDecodeError:
        return response.status_code, None


class Transport(httpx.AsyncBaseTransport):
    """Sends httpx requests through an `Outbound`."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and read the whole answer. Its headers are dropped: accounts share cookies of the client.

        Raises OutboundError.
        """
        body, headers = await request.aread(), tuple(request.headers.raw)
        reply = await self._outbound.send(
            request.method, str(request.url), headers, body, timeout_seconds=_READ_SECONDS
        )
        async with contextlib.aclosing(reply):
            return httpx.Response(reply.status, content=await reply.read(_ANSWER_BYTES))

    async def aclose(self) -> None:
        await self._outbound.aclose()
