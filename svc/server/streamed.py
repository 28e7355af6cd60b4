"""Answers of any length, generated while they are sent, so that a slow client costs no memory.

handler -> streamed(chunks) -> a short one is one answer with its length
        -> a long one is a Download; the number of these that an account has open is limited
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, suppress
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from svc.errors import ClientGone
from svc.server.sse import NOTHING, Drain, Interrupt
from svc.server.state import Request
from svc.spreadsheet import csv_text

_SHORT_BYTES = 256 * 1024
CSV = "text/csv; charset=utf-8"


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


async def csv_table(
    columns: Sequence[str], pages: AsyncIterable[Sequence[Mapping[str, Any]]]
) -> AsyncGenerator[bytes, None]:
    """Yield a header and the rows of all `pages` as CSV, one chunk for each page."""
    yield csv_text([columns]).encode()
    async for page in pages:
        lines = [[row[column] for column in columns] for row in page]
        yield (await asyncio.to_thread(csv_text, lines)).encode()


async def streamed(
    request: Request, chunks: AsyncGenerator[bytes, None], media_type: str = "application/json", file_name: str = ""
) -> Response:
    """Return an answer to the caller from `chunks`, which a browser stores if it has a `file_name`. It holds at most
    256 KiB and one chunk in memory.

    What `chunks` raises within the first 256 KiB becomes an ordinary error answer. A later exception closes the
    connection. The answer raises ApiError `rate_limit_exceeded` if the account has too many long answers open.
    """
    headers = {"content-type": media_type, "cache-control": "no-store"}
    if file_name:
        headers["content-disposition"] = f'attachment; filename="{file_name}"'
    if request.scope["method"] == "HEAD":  # nothing is generated, so its length is not known
        answer = Response(headers=headers)
        del answer.headers["content-length"]
        return answer
    begun, size_bytes = [], 0
    async for chunk in chunks:
        begun.append(chunk)
        size_bytes += len(chunk)
        if size_bytes > _SHORT_BYTES:
            held = request.state.long_answers.taken(request.context.account_id or "")
            return Download(request.state.drain, chunks, headers, first=b"".join(begun), held=held)
    return Response(b"".join(begun), headers=headers)


@dataclass(eq=False)
class Download(Response):
    """A long answer: `first`, and the other `chunks`. It occupies `held` until it is sent.

    It is also sent during a shutdown, because it may have been paid for. The deletion or suspension of the account
    closes the connection.
    """

    drain: Drain
    chunks: AsyncGenerator[bytes, None]
    own_headers: Mapping[str, str]
    status_code: int = 200
    first: bytes = b""
    held: AbstractContextManager[Any] = NOTHING

    def __post_init__(self) -> None:
        self.init_headers(self.own_headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self.chunks):
            with self.held, suppress(ClientGone), Interrupt().over(scope["svc"], self.drain, is_made=True):
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                if self.first:
                    await send({"type": "http.response.body", "body": self.first, "more_body": True})
                    self.first = b""
                async for chunk in self.chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
