"""JSON requests to identity providers and payment processors, which httpx writes and Outbound sends.

It is imported only where such a request is made: httpx takes a tenth of a start, and most services never need it.
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


async def ask_json(
    client: Outbound, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None, seconds: float
) -> tuple[int, Any]:
    """Post a `form`, or get the URL. Return status and JSON of the answer, None if it is no JSON.

    Redirects are not followed. Raises OutboundError, also if the answer is not complete within `seconds`.
    """
    try:
        request = httpx.Request("POST" if form else "GET", url, data=form, headers=headers)
    except httpx.InvalidURL:
        raise InvalidURL("The URL is not valid.") from None
    target, head = str(request.url), tuple(request.headers.raw)
    try:
        async with asyncio.timeout(seconds):
            reply = await client.send(request.method, target, head, request.content, timeout_seconds=seconds)
            async with contextlib.aclosing(reply):
                answer = await reply.read(_ANSWER_BYTES)
    except TimeoutError:
        raise ReadTimeout("The answer was not complete in time.") from None
    try:
        return reply.status, orjson.loads(answer)
    except orjson.JSONDecodeError:
        return reply.status, None
