"""Answers of any length, generated while they are sent, so that a slow client costs no memory.

handler -> streamed(chunks) -> a short one is one answer with its length
        -> a long one is a Download; the number of these that an account has open is limited
"""

from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping
from contextlib import AbstractContextManager, aclosing, nullcontext, suppress
from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from svc.errors import ClientGone
from svc.server.sse import Interrupt
from svc.server.state import Request

_SHORT_BYTES = 256 * 1024
_NOTHING = nullcontext()


async def json_array(
    pages: AsyncIterable[Iterable[Any]], before: bytes = b"[", after: bytes = b"]"
) -> AsyncGenerator[bytes, None]:
    """Yield the items of all `pages` as one JSON array between `before` and `after`, one chunk for each page."""
    start = before
    async for page in pages:
        items = b",".join(orjson.dumps(item) for item in page)
        if items:
            yield start + items
            start = b","
    yield (after if start == b"," else before + after)


async def streamed(
    request: Request, owner: str, chunks: AsyncGenerator[bytes, None], headers: Mapping[str, str] | None = None
) -> Response:
    """Return an answer to the account `owner` from `chunks`. It holds at most 256 KiB and one chunk in memory.

    What `chunks` raises within the first 256 KiB becomes an ordinary error answer. A later exception closes the
    connection. The answer raises ApiError `rate_limit_exceeded` if the account has too many long answers open.
    """
    headers = {"content-type": "application/json", "cache-control": "no-store", **(headers or {})}
    if request.scope["method"] == "HEAD":  # nothing is generated, so its length is not known
        answer = Response(headers=headers)
        del answer.headers["content-length"]
        return answer
    begun, size_bytes = [], 0
    async for chunk in chunks:
        begun.append(chunk)
        size_bytes += len(chunk)
        if size_bytes > _SHORT_BYTES:
            held = request.state.long_answers.taken(owner)
            return Download(request, owner, chunks, headers, first=b"".join(begun), held=held)
    return Response(b"".join(begun), headers=headers)


class Download(Response):
    """A long answer to the account `owner`: `first`, and the other `chunks`. It occupies `held` until it is sent.

    The deletion or suspension of the account closes the connection.
    """

    def __init__(
        self,
        request: Request,
        owner: str,
        chunks: AsyncGenerator[bytes, None],
        headers: Mapping[str, str],
        status: int = 200,
        *,
        first: bytes = b"",
        held: AbstractContextManager[Any] = _NOTHING,
    ) -> None:
        self.status_code = status
        self.init_headers(headers)
        self._drain = request.state.drain
        self._owner = owner
        self._chunks = chunks
        self._first = first
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        interrupt = Interrupt().over(scope["svc"], self._drain, self._owner)
        async with aclosing(self._chunks):
            with self._held, suppress(ClientGone), interrupt:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                if self._first:
                    await send({"type": "http.response.body", "body": self._first, "more_body": True})
                    self._first = b""
                async for chunk in self._chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
