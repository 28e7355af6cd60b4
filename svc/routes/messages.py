"""Anthropic's Messages: the same models as chat completions, stateless, and an estimate of a request's tokens."""

from typing import Any

from starlette.responses import Response

from svc.inference.formats.messages_request import counted_tokens, translate
from svc.inference.formats.messages_shape import COUNT_REQUEST, MESSAGES_REQUEST
from svc.routes.completion import BODY_BYTES, answer_in_format, make_off_loop
from svc.routes.schemas.common import MODEL_SERVER, NO_FUNDS, NO_MODEL, OWN_ADDRESS
from svc.routes.schemas.messages import COUNT_EXAMPLES, MESSAGES_ANSWER, MESSAGES_EXAMPLES, MESSAGES_TEXT, TOKEN_COUNT
from svc.server.gate import Caller
from svc.server.interface import Answer, Refusal, Section
from svc.server.state import Request
from svc.server.web import reply

describes = Section("Chat").describes
_WRONG_RESULT = Refusal(
    "invalid_value",
    "messages[2].content[0].tool_use_id: there is no tool call with the id toolu_1 before it.",
    when="A tool result has no call, a call has no result, or `tool_choice` demands a tool that does not run here.",
)


@describes(
    "Answer in the Messages format",
    MESSAGES_TEXT,
    body=MESSAGES_REQUEST,
    examples=MESSAGES_EXAMPLES,
    most_bytes=BODY_BYTES,
    answers={200: MESSAGES_ANSWER},
    errors=[_WRONG_RESULT, NO_FUNDS, OWN_ADDRESS, *NO_MODEL, *MODEL_SERVER],
)
async def create_messages_answer(request: Request, caller: Caller, body: dict[str, Any]) -> Response:
    """Return one message, or with `stream: true` its events."""
    return await answer_in_format(request, caller, body, translate)


@describes(
    "Estimate the tokens of a request",
    "The body is that of `POST /v1/messages`; `max_tokens` is not required. No model is asked, nothing is charged, and the "
    "request does not count against the chat limit.\n\n"
    "The number is an estimate of this service: one token for each 4 bytes of text, 16 for each message and tool, and 1,024 for "
    "each image. What a model server counts differs.",
    body=COUNT_REQUEST,
    examples=COUNT_EXAMPLES,
    most_bytes=BODY_BYTES,
    answers={200: Answer("The estimate.", TOKEN_COUNT)},
    errors=[_WRONG_RESULT, *NO_MODEL],
)
async def count_message_tokens(request: Request, caller: Caller, body: dict[str, Any]) -> Response:
    """Return the estimated input tokens of a request."""
    await request.state.models.chosen(caller.id, caller.default_model, body.get("model"), "chat", caller.group)
    return reply({"input_tokens": await make_off_loop(request, caller, lambda heavy: counted_tokens(body))})
