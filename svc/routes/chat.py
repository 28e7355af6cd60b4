"""Chat completions and the list of models, in OpenAI's wire format (contract 4, wire.md)."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svc import wire
from svc.catalog import BUILTIN, Model
from svc.chat_request import check_chat
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
    model = await _model_for(request, caller, body.get("model"))
    call = ChatCall(model, body, catalog=state.catalog, outbound=state.outbound, clock=state.clock)
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
    try:
        async with attended(request.receive, state.drain, caller.id, interrupt):
            answer = await call.complete()
    finally:
        note(request, **call.facts)
    return reply(answer)


async def _events(request: Request, call: ChatCall) -> AsyncGenerator[bytes, None]:
    try:
        async with contextlib.aclosing(call.stream()) as chunks:
            async for chunk in chunks:
                yield wire.event(chunk)
        yield wire.DONE
    finally:
        note(request, **call.facts)


async def _model_for(request: Request, caller: Caller, wanted: str | None) -> Model:
    """The model that the request names, else the account's default, the operator's, or the built-in assistant (contract 4)."""
    catalog = request.state.catalog
    model_id = wanted or caller.account["default_model"] or catalog.default_model or f"{BUILTIN}/assistant"
    model: Model | None = await catalog.find(model_id)
    if model is None:
        raise ApiError("model_not_found", f"There is no model {model_id!r} here. GET /v1/models lists them.", param="model")
    if model.kind != "chat":
        raise ApiError("invalid_value", f"{model_id!r} is no chat model but one for {model.kind}.", param="model")
    return model


async def list_models(request: Request, caller: Caller) -> Response:
    """Every model that the caller can use, in one page, as OpenAI's clients expect (wire.md 21)."""
    catalog = request.state.catalog
    models: list[dict[str, Any]] = [model.shown(catalog.created) for model in await catalog.models()]
    return reply({"object": "list", "data": models, "has_more": False})


async def show_model(request: Request, caller: Caller) -> Response:
    """One model; its id holds slashes."""
    catalog = request.state.catalog
    model: Model | None = await catalog.find(request.path_params["model_id"])
    if model is None:
        raise ApiError("model_not_found", param="model")
    return reply(model.shown(catalog.created))
