"""Answers of any length: made piece by piece while they are sent, so that a slow reader holds up their making, not the memory.

handler -> Streamed(pieces) -> what is short is sent as one answer with its length
        -> what is long is sent piece by piece; an account has a bounded number of these open
"""

from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping
from contextlib import aclosing
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from svc.errors import ClientGone
from svc.server.sse import Interrupt, attended
from svc.server.state import State

_SHORT_BYTES = 256 * 1024


async def json_array(
    pages: AsyncIterable[Iterable[Any]], before: bytes = b"[", after: bytes = b"]"
) -> AsyncGenerator[bytes, None]:
    """The items of all `pages` as one JSON array, a piece for each page, between `before` and `after`."""
    start = before
    async for page in pages:
        items = b",".join(orjson.dumps(item) for item in page)
        if items:
            yield start + items
            start = b","
    yield (after if start == b"," else before + after)


class Streamed(Response):
    """An answer to the account `owner` out of `pieces`, of which it never holds more than 256 KiB and one piece.

    What `pieces` raises before so much has come becomes an ordinary error answer; later only a connection that is cut can tell
    that the answer is not whole. Raises ApiError `rate_limit_exceeded` when the account has too many long answers open.
    """

    def __init__(
        self,
        request: Request[State],
        owner: str,
        pieces: AsyncGenerator[bytes, None],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(headers={"content-type": "application/json", "cache-control": "no-store", **(headers or {})})
        del self.headers["content-length"]
        self._state: State = request.state
        self._owner = owner
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._pieces):
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
                    with attended(receive, self._state.drain, self._owner, Interrupt()):
                        async for piece in self._pieces:
                            await send({"type": "http.response.body", "body": piece, "more_body": True})
                except ClientGone:
                    return
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _beginning(self) -> tuple[bytes, bool]:
        """What comes first, over 256 KiB of it or all, and whether it is all."""
        begun, size_bytes = [], 0
        async for piece in self._pieces:
            begun.append(piece)
            size_bytes += len(piece)
            if size_bytes > _SHORT_BYTES:
                return b"".join(begun), False
        return b"".join(begun), True

    async def _begin(self, send: Send, body: bytes, *, more_body: bool) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": body, "more_body": more_body})
