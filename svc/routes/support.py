"""Live support: what a pro account asks and the operator answers with `svc support`."""

from starlette.requests import Request
from starlette.responses import Response

from svc.content import support
from svc.content.support import NEW_SUPPORT, NEW_SUPPORT_MESSAGE, NewSupport, NewSupportMessage, SupportConversation
from svc.routes.schemas.content import (
    SUPPORT_CONVERSATION_LIST,
    SUPPORT_CONVERSATION_WITH_MESSAGES,
    SUPPORT_MESSAGE,
)
from svc.routes.schemas.refusals import NO_ROOM
from svc.server.gate import Caller
from svc.server.interface import Answer, Refusal, describes, path_id
from svc.server.state import State
from svc.server.web import listing, page_after, page_limit, reply

_SUPPORT_ID = path_id("support_id", "The support conversation's id.", "sup_01m3250v3vn4qvxnatpwzmywwn")
_NOT_FOUND = Refusal("not_found", "There is no such support conversation.", when="The account has no such support conversation.")
_ALREADY_ENDED = Refusal("already_ended", "This support conversation is closed. Open a new one.", when="It is closed.")


@describes(
    "Support",
    "createSupportConversation",
    "Ask the operator",
    "For pro accounts; one at a time.",
    body=NEW_SUPPORT,
    answers={201: Answer("The conversation.", SUPPORT_CONVERSATION_WITH_MESSAGES)},
    errors=[
        NO_ROOM,
        Refusal(
            "already_active",
            "One support conversation is active already. Go on there, or close it first.",
            when="One is active already.",
        ),
    ],
)
async def create_support(request: Request[State], caller: Caller, body: NewSupport) -> Response:
    state = request.state
    return reply(await state.db.write(support.add_support, caller.id, body, state.clock()), 201)


@describes(
    "Support",
    "listSupportConversations",
    "List the support conversations",
    answers={200: Answer("A page, without the messages.", SUPPORT_CONVERSATION_LIST)},
    paged=True,
)
async def list_supports(request: Request[State], caller: Caller) -> Response:
    """Newest first, without their messages, `?limit= ?after=`."""
    page = await request.state.db.read(support.support_page, caller.id, page_limit(request), page_after(request))
    return listing(page, SupportConversation.as_json)


@describes(
    "Support",
    "getSupportConversation",
    "Show one with its messages",
    parameters=[_SUPPORT_ID],
    answers={200: Answer("The conversation.", SUPPORT_CONVERSATION_WITH_MESSAGES)},
    errors=[_NOT_FOUND],
)
async def show_support(request: Request[State], caller: Caller) -> Response:
    """With its messages, the oldest first."""
    return reply(await request.state.db.read(support.shown_whole, caller.id, request.path_params["support_id"]))


@describes(
    "Support",
    "createSupportMessage",
    "Go on",
    body=NEW_SUPPORT_MESSAGE,
    parameters=[_SUPPORT_ID],
    answers={201: Answer("The message.", SUPPORT_MESSAGE)},
    errors=[
        _NOT_FOUND,
        _ALREADY_ENDED,
        NO_ROOM,
        Refusal(
            "PAYLOAD_TOO_LARGE",
            "This support conversation is full. Close it and open a new one.",
            "content",
            when="The conversation has 200 messages.",
        ),
    ],
)
async def create_message(request: Request[State], caller: Caller, body: NewSupportMessage) -> Response:
    state, support_id = request.state, request.path_params["support_id"]
    message = await state.db.write(support.add_message, caller.id, support_id, "user", body.content, state.clock())
    return reply(message.as_json(), 201)


@describes(
    "Support",
    "closeSupportConversation",
    "Close it",
    parameters=[_SUPPORT_ID],
    answers={
        200: Answer(
            "The conversation, closed.",
            SUPPORT_CONVERSATION_WITH_MESSAGES,
            {**SUPPORT_CONVERSATION_WITH_MESSAGES.example, "status": "closed", "closed_at": "2026-09-21T14:13:20.123Z"},
        )
    },
    errors=[_NOT_FOUND, _ALREADY_ENDED],
)
async def close_support(request: Request[State], caller: Caller) -> Response:
    """200 with the conversation. 409 `already_ended`."""
    state = request.state
    return reply(await state.db.write(support.close, caller.id, request.path_params["support_id"], state.clock()))
