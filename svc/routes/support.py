"""Live support: conversations of a pro account with the operator, who answers with `svc support`."""

from starlette.responses import Response

from svc.content import support
from svc.content.support import NEW_SUPPORT, NEW_SUPPORT_MESSAGE, NewSupport, NewSupportMessage, SupportConversation
from svc.routes.schemas.common import NO_ROOM, TIMES, TIMESTAMP, id_of
from svc.server.gate import Caller
from svc.server.interface import Answer, Refusal, Section, paged
from svc.server.state import Request
from svc.server.web import listing, read_page, reply
from svc.shapes import json_object, list_of, nullable, one_of, string

describes = Section("Support").describes
SUPPORT_MESSAGE = json_object(
    "SupportMessage",
    id=id_of("msg"),
    role=one_of("user", "operator"),
    content=string.about(example="Where is my invoice?"),
    created_at=TIMESTAMP,
)
SUPPORT_STATUS = one_of("active", "closed")
SUPPORT_CONVERSATION = json_object(
    "SupportConversation",
    id=id_of("sup"),
    status=SUPPORT_STATUS,
    subject=nullable(string).about(example="My invoice"),
    **TIMES,
    closed_at=nullable(TIMESTAMP),
)
SUPPORT_MESSAGES = list_of(SUPPORT_MESSAGE, most=200).about("Oldest first.")
_SUPPORT_CONVERSATION_WITH_MESSAGES = json_object(
    "SupportConversationWithMessages", "", SUPPORT_CONVERSATION, messages=SUPPORT_MESSAGES
)
_CLOSED = {**_SUPPORT_CONVERSATION_WITH_MESSAGES.example, "status": "closed", "closed_at": TIMESTAMP.example}
ALREADY_ENDED = Refusal("already_ended", "This support conversation is closed. Open a new one.", when="It is closed.")
FULL = Refusal(
    "PAYLOAD_TOO_LARGE",
    "This support conversation is full. Close it and open a new one.",
    "content",
    "The conversation has 200 messages.",
)


@describes(
    "Contact the operator",
    "For pro accounts. An account has at most one active support conversation.",
    body=NEW_SUPPORT,
    answers={201: Answer("The conversation.", _SUPPORT_CONVERSATION_WITH_MESSAGES)},
    errors=[
        NO_ROOM,
        Refusal(
            "already_active",
            "A support conversation is active. Continue or close it first.",
            when="One is already active.",
        ),
    ],
)
async def create_support_conversation(request: Request, caller: Caller, body: NewSupport) -> Response:
    state = request.state
    return reply(await state.db.write(support.add_support, caller.id, body, state.clock()), 201)


@describes(
    "List the support conversations",
    answers=paged("A page of conversations, without messages.", "SupportConversationList", SUPPORT_CONVERSATION),
)
async def list_support_conversations(request: Request, caller: Caller) -> Response:
    return listing(await read_page(request, caller.id, support.TABLE.page), SupportConversation.as_json)


@describes(
    "Show a support conversation",
    answers={200: Answer("The conversation with its messages.", _SUPPORT_CONVERSATION_WITH_MESSAGES)},
)
async def get_support_conversation(request: Request, caller: Caller) -> Response:
    return reply(
        await request.state.db.read(support.support_with_messages, caller.id, request.path_params["support_id"])
    )


@describes(
    "Add a message to a support conversation",
    body=NEW_SUPPORT_MESSAGE,
    answers={201: Answer("The message.", SUPPORT_MESSAGE)},
    errors=[ALREADY_ENDED, NO_ROOM, FULL],
)
async def create_support_message(request: Request, caller: Caller, body: NewSupportMessage) -> Response:
    state, support_id = request.state, request.path_params["support_id"]
    message = await state.db.write(support.add_message, caller.id, support_id, "user", body.content, state.clock())
    return reply(message.as_json(), 201)


@describes(
    "Close a support conversation",
    answers={200: Answer("The closed conversation.", _SUPPORT_CONVERSATION_WITH_MESSAGES, _CLOSED)},
    errors=[ALREADY_ENDED],
)
async def close_support_conversation(request: Request, caller: Caller) -> Response:
    state = request.state
    return reply(await state.db.write(support.close, caller.id, request.path_params["support_id"], state.clock()))
