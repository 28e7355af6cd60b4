"""The guard that answers a repeated request with an `Idempotency-Key` as the first one, without a model.

no such header -> the handler
first request -> a claim in this process -> the handler, which runs to its end even if its client disconnects
repeat while it runs -> its answer so far, then live -- repeat after it -> the kept answer in one burst
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from hashlib import sha256

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from svc.content import idempotency
from svc.content.idempotency import Kept, Place
from svc.errors import ApiError, describe
from svc.inference.claim import Claim
from svc.server.bodies import read_chunks
from svc.server.forms import boundary_of
from svc.server.guards import Caller, Handler
from svc.server.interface import Implied, Parameter, Refusal, named_header, operation_of
from svc.server.sse import NOTHING, EventStream, Interrupt
from svc.server.streamed import Download
from svc.server.web import Request, Response, add_log_fields
from svc.shapes import matching, one_of

HEADER, REPLAYED = "Idempotency-Key", "x-service-replayed"
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
# A stream without a first part after so long is begun for its repeats, because proxies end silent connections.
QUIET_SECONDS = 10.0
_LONG_BYTES = 256 * 1024
_OF_STREAMS = {"cache-control": "no-cache, no-store", "x-accel-buffering": "no"}
_WRONG_KEY = Refusal("invalid_value", f"{HEADER} must be 1 to 255 visible ASCII characters, sent once.", HEADER)
_REPLAYED_HEADER = {
    REPLAYED: named_header(
        "Replayed", "Sent if this is the answer to an earlier request with this key.", one_of("true"), required=False
    )
}
_PARAMETER = Parameter(
    HEADER,
    "Of your choice, for one request. A repeat with the same body within 24 hours gets the same answer, and costs "
    "nothing. An agent run is not started again. Other requests run to their end even if the connection is lost.",
    matching(_KEY, "1 to 255 visible ASCII characters", 255),
    "6f1c1c1e-7a39-4b0a-9d0c-5f6f6a1f7b52",
    where="header",
    refusal=_WRONG_KEY,
)


@Implied(
    [Refusal("idempotency_mismatch", when="The `Idempotency-Key` was used for another body.")],
    headers=_REPLAYED_HEADER,
    parameters=[_PARAMETER],
)
def idempotent(handler: Handler) -> Handler:
    """Answer a repeat with the answer of the first request that had its key and body."""

    def guarded(request: Request, caller: Caller) -> Awaitable[Response | None]:
        sent = request.context.headers.get(b"idempotency-key")
        return handler(request, caller) if sent is None else _once(handler, request, caller, sent.decode("latin-1"))

    return guarded


async def _once(handler: Handler, request: Request, caller: Caller, key: str) -> Response | None:
    if not _KEY.fullmatch(key):
        request.receive = _refuse  # where the body is read, after the rate limit
        return await handler(request, caller)
    state = request.state
    place = idempotency.place_of(caller.id, request.scope["path"], key)
    if (running := state.claims.running.get(place)) is not None:
        with contextlib.ExitStack() as held:
            held.enter_context(running)
            return await _follow(request, running, await _body_sha256(request, handler), held)
    kept = state.db.look_up(idempotency.kept, place, state.clock())
    if kept is not None:
        return await _replay(request, place, kept, await _body_sha256(request, handler))
    claim = request.context.claim = state.claims.begin(place, state.db, state.clock)
    request.receive = hashing_receive(request, claim.body_arrived)
    try:
        if (operation := operation_of(handler)) is not None and operation.body is None:
            await read_chunks(request, operation.most_bytes)  # no handler reads it
        answer = await handler(request, caller)
    except BaseException as error:
        claim.fail(_fault(error))
        raise
    return answer and _Claimed(answer, claim)


class _Claimed(Response):
    """The answer to a first request. At its end the claim is over."""

    def __init__(self, answer: Response, claim: Claim) -> None:
        self._answer, self._claim = answer, claim

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        error: BaseException | None = None
        try:
            await self._answer(scope, receive, send)
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._claim.fail(_fault(error))


def _fault(error: BaseException | None) -> ApiError:
    """Return the error of a first request for its repeats."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ClientDisconnect):
        return ApiError("overloaded", "The first request with this Idempotency-Key was incomplete. Try again.")
    return ApiError("shutting_down" if isinstance(error, asyncio.CancelledError) else "internal_error")


async def _refuse() -> Message:
    raise _WRONG_KEY.error()


def hashing_receive(request: Request, arrived: Callable[[bytes], None]) -> Receive:
    """Return a `receive` that calls `arrived` with the SHA-256 of the whole body.

    It does not depend on the boundary of a form, which differs in each attempt.
    """
    receive, hashed, rest = request.receive, sha256(), b""
    boundary = boundary_of(request.context.headers.get(b"content-type", b""))
    kept = max(len(boundary) - 1, 0)  # bytes that may begin a boundary

    async def receive_and_hash() -> Message:
        nonlocal rest
        message = await receive()
        if message["type"] == "http.request":
            body = rest + message["body"]
            if boundary:
                body = body.replace(boundary, b"")
            end = max(len(body) - kept, 0) if message["more_body"] else len(body)
            hashed.update(body[:end])
            rest = body[end:]
            if not message["more_body"]:
                arrived(hashed.digest())
        return message

    return receive_and_hash


async def _body_sha256(request: Request, handler: Handler) -> bytes:
    """Read the body and return its SHA-256. Raises what `read_chunks` does."""
    operation, found = operation_of(handler), [b""]
    request.receive = hashing_receive(request, found.append)
    await read_chunks(request, operation.most_bytes if operation else 0)
    return found[-1]


def _check_same(first: bytes, repeated: bytes) -> None:
    if first != repeated:
        raise ApiError("idempotency_mismatch")


def _already_started(run_id: str) -> ApiError:
    error = ApiError("already_started")
    error.error["run_id"] = run_id
    return error


# --- a repeat while the first request runs


async def _follow(request: Request, claim: Claim, body_sha256: bytes, held: contextlib.ExitStack) -> Response:
    interrupt = Interrupt()
    with interrupt.over(request.context, request.state.drain):
        while not (claim.body_sha256 or claim.over):
            await claim.next_news()
        if claim.body_sha256:
            _check_same(claim.body_sha256, body_sha256)
        await _begun(claim)
    if claim.run_id is not None:
        raise _already_started(claim.run_id)
    if claim.over and (answer := claim.answer):
        if claim.too_large:
            raise ApiError("answer_not_kept")
        return _replayed(request, answer.status, answer.headers(), claim.size, claim.whole(), held.pop_all())
    stream = claim.stream
    if stream is None or (claim.fault and not claim.begun):
        raise claim.fault or ApiError("internal_error")
    add_log_fields(request, replayed=True)
    return EventStream(
        claim.follow(lambda: interrupt.reason == "shutdown"),
        drain=request.state.drain,
        interrupt=interrupt,
        closing=lambda error: stream.fault(error, claim.events),
        on_fault=lambda fault: add_log_fields(request, level="error", error=describe(fault)),
        extra_headers={**stream.headers, REPLAYED: "true"},
        ping=stream.ping,
        held=held.pop_all(),
    )


async def _begun(claim: Claim) -> None:
    """Wait until the answer is complete, or until a stream is sent."""
    while not (claim.over or claim.begun):
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                await claim.next_news()
        except TimeoutError:
            if claim.stream is not None:
                return


# --- a repeat after it


async def _replay(request: Request, place: Place, kept: Kept, body_sha256: bytes) -> Response:
    _check_same(kept.body_sha256, body_sha256)
    if kept.run_id is not None:
        raise _already_started(kept.run_id)
    if kept.size is None:
        raise ApiError("answer_not_kept")
    chunks = _chunks(request, place.account_id, kept)
    slot = request.state.long_answers.taken(place.account_id) if kept.size > _LONG_BYTES else NOTHING
    return _replayed(request, kept.status, kept.headers, kept.size, chunks, slot)


async def _chunks(request: Request, account_id: str, kept: Kept) -> AsyncGenerator[bytes, None]:
    for number in range(-(-(kept.size or 0) // idempotency.CHUNK_BYTES)):
        chunk = await request.state.db.read(idempotency.chunk, account_id, kept.id, number)
        if chunk is None:  # the kept answer has expired
            raise ApiError("not_found")
        yield chunk


def _replayed(
    request: Request,
    status: int,
    headers: Mapping[str, str],
    size: int,
    chunks: AsyncGenerator[bytes, None],
    held: contextlib.AbstractContextManager[object],
) -> Response:
    """Return an answer as the first request got it. It occupies `held` until it is sent."""
    add_log_fields(request, replayed=True)
    streamed = headers["content-type"].startswith("text/event-stream")
    own = _OF_STREAMS if streamed else {"cache-control": "no-store", "content-length": str(size)}
    return Download(request.state.drain, chunks, {**headers, **own, REPLAYED: "true"}, status_code=status, held=held)
