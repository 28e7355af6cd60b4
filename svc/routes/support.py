"""Live support: what a pro account asks and the operator answers with `svc support`."""

from starlette.requests import Request
from starlette.responses import Response

from svc.checks import optional, required
from svc.content import support
from svc.content.support import SupportConversation
from svc.errors import ApiError
from svc.server.bodies import read_json
from svc.server.gate import Caller
from svc.server.state import State
from svc.server.web import listing, page_after, page_limit, reply


async def create_support(request: Request[State], caller: Caller) -> Response:
    """`{subject?, message?}` -> 201. 403 `pro_required`, 409 `already_active`."""
    state = request.state
    if caller.tier != "pro":
        raise ApiError("pro_required")
    body = await read_json(request)
    subject = support.check_subject(body.get("subject"), "subject")
    content = optional(body, "message", support.check_content, None)
    return reply(await state.db.write(support.add_support, caller.id, subject, content, state.clock()), 201)


async def list_supports(request: Request[State], caller: Caller) -> Response:
    """Newest first, without their messages, `?limit= ?after=`."""
    page = await request.state.db.read(support.support_page, caller.id, page_limit(request), page_after(request))
    return listing(page, SupportConversation.as_json)


async def show_support(request: Request[State], caller: Caller) -> Response:
    """With its messages, the oldest first."""
    return reply(await request.state.db.read(support.shown_whole, caller.id, request.path_params["support_id"]))


async def create_message(request: Request[State], caller: Caller) -> Response:
    """`{content}` -> 201. 409 `already_ended` for a closed one."""
    state = request.state
    content = required(await read_json(request), "content", support.check_content)
    support_id = request.path_params["support_id"]
    message = await state.db.write(support.add_message, caller.id, support_id, "user", content, state.clock())
    return reply(message.as_json(), 201)


async def close_support(request: Request[State], caller: Caller) -> Response:
    """200 with the conversation. 409 `already_ended`."""
    state = request.state
    return reply(await state.db.write(support.close, caller.id, request.path_params["support_id"], state.clock()))
