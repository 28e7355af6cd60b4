"""One chat call for a request, answered in the format of its route: chat completions, Responses or Messages.

answer_in_format(): model (404) -> the request as a chat request -> ChatCall -> respond()
respond(): hold (402) -> JSON answer, or EventStream -> settlement, on disk -> the end of the stream
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, ParamSpec, TypeVar

from svc.content import memory
from svc.content.history import Message
from svc.content.memory import Exchange
from svc.errors import ApiError, describe
from svc.inference.answer.events import event
from svc.inference.answering import Answering
from svc.inference.catalog import Model
from svc.inference.chat_call import ChatCall
from svc.inference.chat_request import Ignored, without_place
from svc.inference.chat_shape import check_for_builtin
from svc.inference.formats import hosted_search
from svc.inference.formats.answer import AnswerWriter
from svc.inference.formats.request import ADDED, Translated
from svc.inference.model_call import ModelCall, Payer
from svc.routes.kept import JSON, KeptWriter, keep_early_end, recorded
from svc.routes.passed import passed_call
from svc.routes.pdfs import make_call
from svc.routes.tool_answers import AnswerMaker, body_of_rounds, offered_search
from svc.server.guards import Caller
from svc.server.limits import KIB, MIB
from svc.server.session_answer import SessionAnswer
from svc.server.sse import NOTHING, PING, EventStream, Interrupt, LastBlock
from svc.server.web import JsonResponse, Request, Response, add_log_fields, reply
from svc.shapes import one_of

P = ParamSpec("P")
T = TypeVar("T")
BODY_BYTES = 16 * MIB
_HEAVY_BYTES = 64 * KIB
_HEADER_CHARACTERS = 1000
CONTINUE, TEMPORARY, BOOLEAN = "x-service-continue", "x-service-temporary", one_of("true", "false")


async def answer_in_format(
    request: Request,
    caller: Caller,
    body: dict[str, Any],
    api: str,
    translate: Callable[..., Translated],
) -> Response:
    """Answer a request of the format `api`, without conversations and memory.

    A server of this format gets it as it came, unless the service runs a search for it. Another server gets the chat
    request that `translate` returns.
    """
    state = request.state
    searches = state.models.catalog.search is not None
    model = await state.models.chosen(caller.id, caller.default_model, body.get("model"), "chat", caller.group)
    payer = payer_of(request, caller)

    def make(heavy: bool) -> tuple[ChatCall, AnswerWriter, AnswerMaker | None]:
        has_format = model.api == api and model.provider is not None
        if has_format and (not searches or _searches_itself(model) or not hosted_search.is_wanted(body)):
            return (*passed_call(request, payer, model, api, body, translate, heavy), None)
        request.context.drop_body()
        translated = translate(body, model, reads_pdfs=True, searches=searches)
        if model.provider is None:
            check_for_builtin(translated.chat, translated.format.names)
        added = ADDED.intersection(translated.chat) | {"reasoning_content"}
        chat = translated.chat
        names: tuple[str, ...] = ()
        if model.paid and model.provider is not None:
            extra, names = without_place(translated.without_place, model)
            chat = {**extra, **chat}
        maker = None
        if translated.search is not None:
            search, chat = offered_search(translated.search), body_of_rounds(chat)
            maker = AnswerMaker(request, payer, model, search, added, chat, format=translated.format)
            call = maker.call(chat, heavy)
        else:
            call = ChatCall(model, chat, state.engines, payer, added=added, heavy=heavy, format=translated.format)
        if names or translated.ignored_tools:
            call.ignored = Ignored((*names, *call.ignored.fields), (*translated.ignored_tools, *call.ignored.tools))
        writer = translated.writer(call)
        writer.search = translated.search
        return call, writer, maker

    call, writer, maker = await make_call(request, caller.id, make, is_heavy(request))
    if maker is None:
        return await respond(request, call, writer, headers=ignored_of(call))
    answer = maker.answer(call, request.context.claim, body)
    writer.call = answer
    return await respond(request, answer, writer, headers=ignored_of(call))


def _searches_itself(model: Model) -> bool:
    """Return whether the server of a model gets hosted web search: at its user's cost, or at a price."""
    return model.byok or "tools" in model.extra_fields or hosted_search.NAME in model.hosted_tools


def ignored_of(call: ChatCall) -> dict[str, str]:
    """Return the headers that name what was left out of the request to the model server."""
    if not any(call.ignored):
        return {}
    named = (("x-service-ignored-fields", call.ignored.fields), ("x-service-ignored-tools", call.ignored.tools))
    return {header: _listing(names) for header, names in named if names}


def _listing(names: Sequence[str]) -> str:
    listing = ", ".join(name[:_HEADER_CHARACTERS] for name in names[:_HEADER_CHARACTERS])
    return re.sub(r"[^ -~]", "?", listing[:_HEADER_CHARACTERS])


def is_heavy(request: Request) -> bool:
    """Return whether code that walks the whole body must run off the event loop."""
    return int(request.context.headers.get(b"content-length", BODY_BYTES)) > _HEAVY_BYTES


def payer_of(request: Request, caller: Caller) -> Payer:
    context = request.context
    return Payer(caller.id, context.request_id, caller.key_id, caller.group, context.claim)


async def respond(
    request: Request,
    call: Answering,
    writer: AnswerWriter,
    *,
    headers: dict[str, str],
    session_answer: SessionAnswer | None = None,
) -> Response:
    """Return the answer of `call` as `writer` writes it. `session_answer` stores that of a session."""
    interrupt = session_answer.interrupt if session_answer else Interrupt()
    claim = request.context.claim
    if call.streams:
        keeping: AbstractAsyncContextManager[None] = NOTHING
        if claim is not None:
            writer = kept_writer = KeptWriter(writer, claim, headers)
            keeping = kept_writer.keeping(request, interrupt, session_answer, partial(_end, request, call))
        events = _events(request, call, writer, interrupt, session_answer, keeping)
        events = events if claim is None else recorded(request.context, claim, events)
        return stream_of(request, events, interrupt, headers, writer)

    try:
        async with session_answer or call:
            try:
                with interrupt.over(request.context, request.state.drain):
                    completion, written = await call.complete()
            except ApiError as error:
                if claim is not None:
                    await keep_early_end(request, claim, error, session_answer, partial(_json_headers, call, headers))
                raise
            if call.text_bytes <= writer.long_bytes:
                written = writer.answer(completion, written)
            else:
                written = await _off_loop(request, writer.answer, completion, written)
            if claim is not None:
                claim.add(written)
                await claim.keep(200, partial(_json_headers, call, headers))
    finally:
        request.context.log_fields.update(call.log_fields)
    return JsonResponse(written, headers={**headers, **cost_of(call)} if call.paid else headers)


async def answer_in_session(
    request: Request,
    call: Answering,
    exchange: Exchange,
    continues: bool,
    usage: bool,
    ignored: dict[str, str],
    ask: Callable[..., Message] = memory.ask,
    then: Callable[[str], None] | None = None,
    sources: Callable[[str], list[dict[str, Any]]] | None = None,
) -> Response:
    """Return the answer to a session. One that `continues` is generated whether or not the client reads it, and so is
    each one with an Idempotency-Key. `ask`, `then` and `sources` are those of SessionAnswer.
    """
    state, headers = request.state, exchange.headers | ignored
    answer = SessionAnswer(state.db, state.clock, state.open_answers, call, exchange, ask, then, sources)
    call.interrupt = answer.interrupt
    if continues and request.context.claim is None:
        interrupt = Interrupt()
        answer.start(state.drain, state.continued_answers, state.log)
        blocks = answer.follow(interrupt, own=True, usage=usage)
        return stream_of(request, blocks, interrupt, headers, AnswerWriter())
    try:
        return await respond(request, call, AnswerWriter(), headers=headers, session_answer=answer)
    except ApiError:
        if not answer.was_stopped:
            raise
        return reply(answer.cut_short(), headers={**headers, **cost_of(call)})


def _json_headers(call: Answering, headers: dict[str, str]) -> dict[str, str]:
    return {**JSON, **headers, **cost_of(call)}


def cost_of(call: Answering | ModelCall) -> dict[str, str]:
    """Return the header with the cost of a call that has been settled, if its model has a price."""
    return {"x-service-cost-micros": str(call.cost_micros)} if call.paid else {}


def stream_of(
    request: Request,
    events: AsyncGenerator[bytes, None],
    interrupt: Interrupt,
    headers: dict[str, str],
    writer: AnswerWriter | None = None,
) -> EventStream:
    """Return a stream. An error ends it with the last events of `writer`, or without one with the error as an event."""
    return EventStream(
        events,
        drain=request.state.drain,
        interrupt=interrupt,
        closing=writer.fault if writer else lambda error: event(error.body()),
        on_fault=lambda fault: add_log_fields(request, level="error", error=describe(fault)),
        extra_headers=headers,
        ping=writer.ping if writer else PING,
    )


async def _events(
    request: Request,
    call: Answering,
    writer: AnswerWriter,
    interrupt: Interrupt,
    session_answer: SessionAnswer | None,
    keeping: AbstractAsyncContextManager[None],
) -> AsyncGenerator[bytes, None]:
    """Yield the blocks of the answer, and the last ones after its settlement."""
    stopped, whole = error_of(interrupt), False
    # They end in the reverse order: the stream is closed, its end is kept in the claim, and the call is settled last.
    try:
        async with session_answer or call, keeping, stopped, contextlib.aclosing(call.stream()) as chunks:
            async for together in chunks:
                if session_answer is not None:
                    session_answer.wake()
                short, write = call.text_bytes <= writer.long_bytes, writer.events
                for block in write(together) if short else await _off_loop(request, write, together):
                    yield block
            whole = True
    except asyncio.CancelledError:
        # The settlement is last and completes in any case, so a shutdown during it finds the answer whole.
        if not whole or interrupt.reason is None:
            raise
    except ApiError as error:
        if session_answer is None:
            raise
        yield LastBlock(session_answer.end_after(error))
        return
    finally:
        request.context.log_fields.update(call.log_fields)
    yield await _end(request, call, writer)


@contextlib.asynccontextmanager
async def error_of(interrupt: Interrupt) -> AsyncIterator[None]:
    """Raise the error of the interrupt in place of its cancellation."""
    try:
        yield
    except asyncio.CancelledError:
        if interrupt.reason is None:
            raise
        raise interrupt.error() from None


async def _end(request: Request, call: Answering, writer: AnswerWriter) -> LastBlock:
    def last() -> LastBlock:
        return LastBlock(b"".join([*writer.events(call.chunk_writer.closing), writer.end()]))

    return last() if call.text_bytes <= writer.long_bytes else await _off_loop(request, last)


async def _off_loop(request: Request, write: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await request.state.offload.run(request.context.account_id or "", write, *args, **kwargs)
