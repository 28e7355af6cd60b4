"""The support inbox of administrators: all users' support conversations, and the answers."""

from starlette.responses import Response

from svc.admin import support
from svc.content.support import NEW_SUPPORT_MESSAGE, NewSupportMessage
from svc.routes.admin import describes
from svc.routes.schemas.admin import IN_INBOX, INBOX_CONVERSATION
from svc.routes.schemas.content import SUPPORT_MESSAGE, SUPPORT_STATUS
from svc.routes.support import ALREADY_ENDED, FULL
from svc.server.gate import Caller
from svc.server.interface import Answer, Refusal, paged, parameter
from svc.server.state import Request
from svc.server.web import listing, page_after, page_limit, reply


@describes(
    "List the support conversations of all users",
    "The last changed one comes first.",
    parameters=[parameter("status", "query", "Only conversations with this status.", SUPPORT_STATUS)],
    answers=paged("A page of conversations, without messages.", "Inbox", IN_INBOX),
    errors=[Refusal("invalid_value", when="A parameter is wrong.")],
)
async def list_inbox(request: Request, caller: Caller) -> Response:
    sent = request.query_params.get("status")
    status = None if sent is None else SUPPORT_STATUS.check(sent, "status")
    return listing(await request.state.db.read(support.inbox_page, status, page_limit(request), page_after(request)), dict)


@describes(
    "Show a support conversation of a user", answers={200: Answer("The conversation with its messages.", INBOX_CONVERSATION)}
)
async def get_inbox_conversation(request: Request, caller: Caller) -> Response:
    return reply(await request.state.db.read(support.conversation, request.path_params["support_id"]))


@describes(
    "Answer a user",
    "The user sees the message as the operator's.",
    body=NEW_SUPPORT_MESSAGE,
    answers={201: Answer("The message.", SUPPORT_MESSAGE)},
    errors=[ALREADY_ENDED, FULL],
)
async def reply_to_user(request: Request, caller: Caller, body: NewSupportMessage) -> Response:
    state, support_id = request.state, request.path_params["support_id"]
    return reply(await state.db.write(support.reply, caller.id, support_id, body.content, state.clock()), 201)


@describes(
    "Close a support conversation of a user",
    answers={200: Answer("The closed conversation.", INBOX_CONVERSATION)},
    errors=[ALREADY_ENDED],
)
async def close_inbox_conversation(request: Request, caller: Caller) -> Response:
    state = request.state
    return reply(await state.db.write(support.close, caller.id, request.path_params["support_id"], state.clock()))
