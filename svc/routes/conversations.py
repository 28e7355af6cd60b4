"""The caller's conversations and their messages."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svc.checks import Check, fields
from svc.content import conversations, history, projects
from svc.content.conversations import Conversation
from svc.content.history import Message
from svc.server.bodies import read_json
from svc.server.gate import Caller
from svc.server.state import State
from svc.server.web import listing, no_content, page_after, page_limit, reply


async def create_conversation(request: Request[State], caller: Caller) -> Response:
    """`{title?, project_id?}` -> 201."""
    state = request.state
    changes = fields(await read_json(request), _CHECKS)
    conversation = await state.db.write(conversations.add_conversation, caller.id, state.clock(), **changes)
    return reply(conversation.as_json(), 201)


_CHECKS: Mapping[str, Check[Any]] = {"title": conversations.check_title, "project_id": projects.check_project_id}


async def list_conversations(request: Request[State], caller: Caller) -> Response:
    """The last used first, `?q= ?project_id= ?limit= ?after=`; `q` asks for words, all of them in the title or in one message."""
    db, limit, query = request.state.db, page_limit(request), request.query_params
    project_id = query.get("project_id")
    if project_id is not None:
        await db.read(projects.project_by_id, caller.id, project_id, "project_id")
    words = query.get("q") or None
    page = await db.read(conversations.conversations_page, caller.id, limit, page_after(request), project_id, words)
    return listing(page, Conversation.as_json)


async def show_conversation(request: Request[State], caller: Caller) -> Response:
    conversation_id = request.path_params["conversation_id"]
    conversation = await request.state.db.read(conversations.conversation_by_id, caller.id, conversation_id)
    return reply(conversation.as_json())


async def change_conversation(request: Request[State], caller: Caller) -> Response:
    """Any of `{title, project_id}`; an absent field stays, null takes it away."""
    state = request.state
    changes = fields(await read_json(request), _CHECKS)
    conversation = await state.db.write(
        conversations.change_conversation, caller.id, request.path_params["conversation_id"], changes, state.clock()
    )
    return reply(conversation.as_json())


async def delete_conversation(request: Request[State], caller: Caller) -> Response:
    """204; its messages go with it."""
    while await request.state.db.write(conversations.delete_some, caller.id, request.path_params["conversation_id"]):
        pass
    return no_content()


async def list_messages(request: Request[State], caller: Caller) -> Response:
    """Newest first, `?limit= ?after=`; a page of long messages is shorter."""
    db, limit, after = request.state.db, page_limit(request), page_after(request)
    conversation_id = request.path_params["conversation_id"]
    await db.read(conversations.conversation_by_id, caller.id, conversation_id)
    return listing(await db.read(history.messages_page, caller.id, conversation_id, limit, after), Message.as_json)


async def create_message(request: Request[State], caller: Caller) -> Response:
    """`{role, content}` -> 201."""
    state = request.state
    said = conversations.check_message(await read_json(request))
    message = await state.db.write(
        conversations.add_message, caller.id, request.path_params["conversation_id"], now_seconds=state.clock(), **said
    )
    return reply(message.as_json(), 201)
