"""Requests in the format of their model server: the call gets the caller's bytes, and the caller gets the server's."""

import copy
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from svc.errors import invalid_value
from svc.inference.catalog import Model
from svc.inference.chat_call import ChatCall
from svc.inference.formats.answer import AnswerWriter
from svc.inference.formats.passed_answer import PassedMessage, PassedResponse
from svc.inference.formats.request import Translated
from svc.inference.images import check_images, reads_images
from svc.inference.model_call import Payer
from svc.inference.passed_request import PassedRequest
from svc.outbound.client import Headers
from svc.server.web import Request

_MESSAGES_OF = {"responses": "input", "messages": "messages"}
# The version of Anthropic's format, and what of it is tried out, which a caller may choose.
_VERSION, _BETA = b"anthropic-version", b"anthropic-beta"
_VALUE = re.compile(rb"[!-~](?:[ -~]{0,998}[!-~])?")
# These change the price of a token: https://platform.claude.com/docs/en/about-claude/pricing
_PRICED_BETAS = (b"context-1m", b"fast-mode")


def passed_call(
    request: Request,
    payer: Payer,
    model: Model,
    api: str,
    body: dict[str, Any],
    translate: Callable[[dict[str, Any], Model], Translated],
    heavy: bool,
) -> tuple[ChatCall, AnswerWriter]:
    """Return the call of a `model` whose server has the format `api`, and the writer of its answer.

    A fallback in another format gets what `translate` returns. Raises ApiError.
    """
    state, account_id = request.state, payer.account_id
    field = _MESSAGES_OF[api]
    wanted = body if reads_images(model) else copy.deepcopy(body)
    check_images(model, wanted.get(field), field)

    def translated(other: Model) -> Translated:
        return translate(copy.deepcopy(body), other)

    caller_request = PassedRequest(
        api,
        request.context.taken_body(),
        body,
        model,
        wanted=wanted,
        referenced=partial(state.item_memory.json, account_id),
        as_chat=lambda fallback: translated(fallback).chat,
        headers=_headers(request, model) if api == "messages" else (),
    )
    call = ChatCall(model, None, state.engines, payer, heavy=heavy, caller_request=caller_request)

    def other() -> AnswerWriter:
        return translated(model).writer(call)

    if api == "messages":
        return call, PassedMessage(call, other)
    return call, PassedResponse(call, other, partial(state.item_memory.add, account_id))


def _headers(request: Request, model: Model) -> Headers:
    """Return the caller's headers of Anthropic's API. Raises ApiError `invalid_value`."""
    sent = request.context.headers
    found = {name: sent[name].strip() for name in (_VERSION, _BETA) if sent.get(name)}
    for name, value in found.items():
        if not _VALUE.fullmatch(value):
            raise invalid_value("It must be at most 1,000 characters of printable ASCII.", name.decode())
    if _BETA in found and model.paid and _BETA.decode() not in model.extra_fields:
        betas = [beta.strip() for beta in found[_BETA].split(b",")]
        found[_BETA] = b",".join(beta for beta in betas if not beta.startswith(_PRICED_BETAS))
    return tuple((name, value) for name, value in found.items() if value)
