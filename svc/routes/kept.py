"""What an answer to a request with an `Idempotency-Key` leaves in its claim, before the call is settled."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence

import orjson

from svc.errors import ApiError, ClientGone, UpstreamFault
from svc.inference.answer.events import Chunk, TextChunks
from svc.inference.claim import Claim, Headers, Stream
from svc.inference.formats.answer import AnswerWriter
from svc.server.http.head import Context
from svc.server.session_answer import SessionAnswer
from svc.server.sse import Interrupt, LastBlock
from svc.server.web import Request, refusal

JSON = {"content-type": "application/json"}


async def keep_refusal(request: Request, error: ApiError) -> None:
    """Keep a model server's own refusal like an answer, but not a 429 or a fault, after which a repeat may succeed."""
    claim = request.context.claim
    if claim is not None and isinstance(error.__cause__, UpstreamFault) and error.status < 500 and error.status != 429:
        body = refusal(error, request.scope["path"], request.context.request_id).body
        await claim.keep_refusal(error, {**JSON, **error.headers}, bytes(body))


async def keep_early_end(
    request: Request, claim: Claim, error: ApiError, session_answer: SessionAnswer | None, headers: Headers
) -> None:
    """Keep the JSON answer of a session that a person stops, or a model server's own refusal."""
    if session_answer is not None and session_answer.stop_requested:
        claim.keep_stopped(headers, lambda: orjson.dumps(session_answer.cut_short()))
    await keep_refusal(request, error)


async def recorded(context: Context, claim: Claim, blocks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Yield `blocks`, and add all but the last one to the claim. A cancellation is theirs, as in an EventStream.

    An answer that is too large to be kept ends with its client.
    """
    async with contextlib.aclosing(blocks):
        step = blocks.__anext__()
        while True:
            try:
                block = await step
            except StopAsyncIteration:
                return
            if type(block) is not LastBlock:
                claim.add(block)
            if claim.too_large and context.disconnected:
                context.disconnect()
            try:
                yield block
            except asyncio.CancelledError as cancelled:
                step = blocks.athrow(cancelled)
            else:
                step = blocks.__anext__()


class KeptWriter(AnswerWriter):
    """Writes a stream as `writer` does, and keeps its end in a claim."""

    def __init__(self, writer: AnswerWriter, claim: Claim, headers: dict[str, str]) -> None:
        self.ping, self.long_bytes = writer.ping, writer.long_bytes
        self._writer, self._claim = writer, claim
        self._headers = {"content-type": "text/event-stream", **headers}
        claim.stream = Stream(headers, writer.ping, writer.late_fault)

    def events(self, chunks: Sequence[Chunk | TextChunks]) -> list[bytes]:
        return [] if self._claim.last is not None else self._writer.events(chunks)

    def end(self) -> bytes:
        return self._claim.last or self._writer.end()

    def fault(self, error: ApiError) -> bytes:
        if self._claim.last is None:
            self._claim.fail(error)
        return self._claim.last or self._writer.fault(error)

    @contextlib.asynccontextmanager
    async def keeping(
        self,
        request: Request,
        interrupt: Interrupt,
        session_answer: SessionAnswer | None,
        end: Callable[[AnswerWriter], Awaitable[bytes]],
    ) -> AsyncIterator[None]:
        """Keep how the stream ends, with `end(writer)` or with an error, before its settlement. A shutdown releases
        it.
        """
        claim = self._claim
        try:
            yield
        except ApiError as error:
            if session_answer is not None and session_answer.stop_requested:
                fault, stopped = error, session_answer
                claim.keep_stopped(lambda: self._headers, lambda: stopped.end_after(fault))
            elif not claim.begun:
                await keep_refusal(request, error)
            elif interrupt.reason is None:
                await self._keep(self._writer.fault(error))
            raise
        except ClientGone:  # the answer is too large to be kept
            await self._keep(b"")
            raise
        last = await end(self._writer)
        try:
            await self._keep(last)
        except asyncio.CancelledError:  # a shutdown finds the answer whole: it is sent and paid
            if interrupt.reason is None:
                raise

    async def _keep(self, last: bytes) -> None:
        await self._claim.keep(200, lambda: self._headers, last)
