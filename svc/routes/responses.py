"""OpenAI's Responses: the same models as chat completions, stateless."""

from functools import partial
from typing import Any

from starlette.responses import Response

from svc.inference.formats.responses_request import translate
from svc.inference.formats.responses_shape import RESPONSE_REQUEST
from svc.routes.completion import BODY_BYTES, answer_in_format
from svc.routes.schemas.common import MODEL_SERVER, NO_FUNDS, NO_MODEL, OWN_ADDRESS
from svc.routes.schemas.responses import RESPONSE_ANSWER, RESPONSE_EXAMPLES, RESPONSE_TEXT
from svc.server.gate import Caller
from svc.server.interface import Refusal, Section
from svc.server.state import Request

describes = Section("Chat").describes


@describes(
    "Answer in the Responses format",
    RESPONSE_TEXT,
    body=RESPONSE_REQUEST,
    examples=RESPONSE_EXAMPLES,
    most_bytes=BODY_BYTES,
    answers={200: RESPONSE_ANSWER},
    errors=[
        NO_FUNDS,
        OWN_ADDRESS,
        *NO_MODEL,
        Refusal("unsupported_value", None, "background", "The request needs what this service does not have."),
        Refusal("previous_response_not_found", None, "previous_response_id", "Responses are not stored."),
        Refusal(
            "not_found", "There is no item with the id 'msg_1'.", "input[0].id", "An `item_reference` names an unknown item."
        ),
        *MODEL_SERVER,
    ],
)
async def create_response(request: Request, caller: Caller, body: dict[str, Any]) -> Response:
    """Return one response object, or with `stream: true` its events."""
    state = request.state
    as_chat = partial(translate, account_id=caller.id, memory=state.item_memory, clock=state.clock)
    return await answer_in_format(request, caller, body, as_chat)
