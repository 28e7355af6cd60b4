"""Answers of any length, generated while they are sent, so that a slow client costs no memory.

handler -> Streamed(chunks) -> a short one is one answer with its length
        -> a long one is sent chunk by chunk; the number of these that an account has open is limited
"""

from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping
from contextlib import aclosing, suppress
from typing import Any

import orjson
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from svc.errors import ClientGone
from svc.server.sse import Interrupt
from svc.server.state import Request, State

_SHORT_BYTES = 256 * 1024


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


class Streamed(Response):
    """An answer to the account `owner` from `chunks`. It holds at most 256 KiB and one chunk in memory.

    What `chunks` raises within the first 256 KiB becomes an ordinary error answer. A later exception closes the
    connection. Raises ApiError `rate_limit_exceeded` if the account has too many long answers open.
    """

    def __init__(
        self,
        request: Request,
        owner: str,
        chunks: AsyncGenerator[bytes, None],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(headers={"content-type": "application/json", "cache-control": "no-store", **(headers or {})})
        del self.headers["content-length"]
        self._state: State = request.state
        self._owner = owner
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._chunks):
            if scope["method"] == "HEAD":
                await self._begin(send, b"", more_body=False)
                return
            begun, whole = await self._beginning()
            if whole:
                self.headers["content-length"] = str(len(begun))
                await self._begin(send, begun, more_body=False)
                return
            with self._state.long_answers.taken(self._owner):
                await self._begin(send, begun, more_body=True)
                del begun
                try:
                    with Interrupt().over(scope["svc"], self._state.drain, self._owner):
                        async for chunk in self._chunks:
                            await send({"type": "http.response.body", "body": chunk, "more_body": True})
                except ClientGone:
                    return
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _beginning(self) -> tuple[bytes, bool]:
        begun, size_bytes = [], 0
        async for chunk in self._chunks:
            begun.append(chunk)
            size_bytes += len(chunk)
            if size_bytes > _SHORT_BYTES:
                return b"".join(begun), False
        return b"".join(begun), True

    async def _begin(self, send: Send, body: bytes, *, more_body: bool) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": body, "more_body": more_body})


class Download(StreamingResponse):
    """A file for the account `owner`, of a length that is known. Its deletion or suspension closes the connection."""

    def __init__(
        self,
        request: Request,
        owner: str,
        chunks: AsyncGenerator[bytes, None],
        headers: Mapping[str, str],
        status: int = 200,
    ) -> None:
        super().__init__(chunks, status, headers)
        self._drain = request.state.drain
        self._owner = owner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(ClientGone), Interrupt().over(scope["svc"], self._drain, self._owner):
            await self.stream_response(send)
