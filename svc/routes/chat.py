"""Chat completions and the list of models, in OpenAI's wire format (contract 4, wire.md)."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svc import wire
from svc.catalog import Model
from svc.chat_request import check_chat
from svc.engines import Payer
from svc.errors import ApiError, describe
from svc.gate import Caller
from svc.sse import EventStream, Interrupt, attended
from svc.web import MIB, note, read_json, reply
from svc.work import ChatCall

_BODY_BYTES = 16 * MIB


async def create(request: Request, caller: Caller) -> Response:
    """A chat completion: one JSON answer, or with `stream: true` server-sent chunks that end with `[DONE]`."""
    state = request.state
    body = await read_json(request, _BODY_BYTES)
    check_chat(body)
    model = await state.models.chosen(caller.account, body.get("model"), "chat")
    call = ChatCall(model, body, state.engines, Payer(caller.id, request.scope["svc.request_id"], caller.key_id))
    interrupt = Interrupt()
    if body.get("stream"):
        return EventStream(
            _events(request, call),
            drain=state.drain,
            owner=caller.id,
            interrupt=interrupt,
            closing=lambda error: wire.error_event(error.error) + wire.DONE,
            on_fault=lambda fault: note(request, level="error", error=describe(fault)),
        )
    async with _settled(request, call), attended(request.receive, state.drain, caller.id, interrupt):
        await call.reserve()
        answer = await call.complete()
    return reply(answer, headers={"x-service-cost-micros": str(call.cost_micros)} if call.paid else None)


async def _events(request: Request, call: ChatCall) -> AsyncGenerator[bytes, None]:
    async with _settled(request, call):
        await call.reserve()
        async with contextlib.aclosing(call.stream()) as chunks:
            async for chunk in chunks:
                yield wire.event(chunk)
    yield wire.DONE


@contextlib.asynccontextmanager
async def _settled(request: Request, call: ChatCall) -> AsyncGenerator[None, None]:
    """Settles the call however the block ends: before `[DONE]`, after a fault, when the caller has left (contract 6)."""
    try:
        yield
    finally:
        try:
            await call.settle()
        finally:
            note(request, **call.facts)


async def list_models(request: Request, caller: Caller) -> Response:
    """Every model that the caller can use, in one page, as OpenAI's clients expect (wire.md 21)."""
    models = request.state.models
    shown: list[dict[str, Any]] = [model.shown(models.catalog.created) for model in await models.of(caller.id)]
    return reply({"object": "list", "data": shown, "has_more": False})


async def show_model(request: Request, caller: Caller) -> Response:
    """One model; its id holds slashes."""
    models = request.state.models
    model: Model | None = await models.find(caller.id, request.path_params["model_id"])
    if model is None:
        raise ApiError("model_not_found", param="model")
    return reply(model.shown(models.catalog.created))
