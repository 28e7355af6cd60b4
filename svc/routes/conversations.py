"""The caller's conversations and their messages."""

import sqlite3
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svc.content import answers, conversations, history, projects, search
from svc.content.conversations import CONVERSATION_FIELDS, NEW_MESSAGE, Conversation, ConversationFields, NewMessage
from svc.content.history import Message
from svc.db import Page
from svc.routes.schemas.content import (
    CONVERSATION,
    CONVERSATION_LIST,
    MESSAGE,
    MESSAGE_LIST,
)
from svc.routes.schemas.refusals import NO_ROOM, PROJECT_NOT_FOUND
from svc.server.gate import Caller
from svc.server.interface import Answer, Refusal, describes, parameter, path_id
from svc.server.state import State
from svc.server.web import listing, no_content, page_after, page_limit, reply
from svc.shapes import given, string, text

_CONVERSATION_ID = path_id("conversation_id", "The conversation's id.", "conv_01m3250v3vn4qvxnatpwzmywwn")
_NOT_FOUND = Refusal("not_found", "There is no such conversation.", when="The account has no such conversation.")


@describes(
    "Conversations",
    "createConversation",
    "Begin a conversation",
    body=CONVERSATION_FIELDS,
    answers={201: Answer("The conversation.", CONVERSATION)},
    errors=[PROJECT_NOT_FOUND, NO_ROOM],
)
async def create_conversation(request: Request[State], caller: Caller, body: ConversationFields) -> Response:
    state = request.state
    conversation = await state.db.write(conversations.add_conversation, caller.id, state.clock(), **given(body))
    return reply(conversation.as_json(), 201)


@describes(
    "Conversations",
    "listConversations",
    "List the conversations",
    parameters=[
        parameter(
            "q",
            "query",
            "Words: only conversations with all of them somewhere in a message or the title, the last one as a beginning. Each "
            "then has `matches`: texts in parts, of which those that were found are told.",
            string.about(maxLength=500),
        ),
        parameter("project_id", "query", "Only those of this project.", string),
    ],
    answers={200: Answer("A page of conversations.", CONVERSATION_LIST)},
    errors=[PROJECT_NOT_FOUND],
    paged=True,
)
async def list_conversations(request: Request[State], caller: Caller) -> Response:
    """The last used first, `?q= ?project_id= ?limit= ?after=`; `q` asks for words, all of them in the conversation or its title,
    the last one as a beginning."""
    db, limit, query = request.state.db, page_limit(request), request.query_params
    project_id = query.get("project_id")
    if project_id is not None:
        await db.read(projects.project_by_id, caller.id, project_id, "project_id")
    words = query.get("q")
    if not words:
        page = await db.read(conversations.conversations_page, caller.id, limit, page_after(request), project_id)
        return listing(page, Conversation.as_json)
    text(search.QUERY_LENGTH).check(words, "q")
    found = await db.heavy_read(search.search, caller.id, words, limit, page_after(request), project_id)
    data = [match.as_json() for match in found.page.items]
    return reply({"object": "list", "data": data, "has_more": found.page.has_more, "incomplete": found.incomplete})


@describes(
    "Conversations",
    "getConversation",
    "Show one conversation",
    parameters=[_CONVERSATION_ID],
    answers={200: Answer("The conversation.", CONVERSATION)},
    errors=[_NOT_FOUND],
)
async def show_conversation(request: Request[State], caller: Caller) -> Response:
    conversation_id = request.path_params["conversation_id"]
    conversation = await request.state.db.read(conversations.conversation_by_id, caller.id, conversation_id)
    return reply(conversation.as_json())


@describes(
    "Conversations",
    "updateConversation",
    "Change a conversation",
    body=CONVERSATION_FIELDS,
    examples={"title": {"title": "Trains to Zürich"}},
    parameters=[_CONVERSATION_ID],
    answers={200: Answer("The conversation as it is now.", CONVERSATION, {**CONVERSATION.example, "title": "Trains to Zürich"})},
    errors=[
        Refusal(
            "not_found",
            "There is no such project.",
            "project_id",
            when="The account has no such conversation, or no such project.",
        ),
    ],
)
async def change_conversation(request: Request[State], caller: Caller, body: ConversationFields) -> Response:
    """An absent field stays; null removes title and project."""
    state, conversation_id = request.state, request.path_params["conversation_id"]
    conversation = await state.db.write(conversations.change_conversation, caller.id, conversation_id, given(body), state.clock())
    return reply(conversation.as_json())


@describes(
    "Conversations",
    "deleteConversation",
    "Delete a conversation",
    parameters=[_CONVERSATION_ID],
    answers={204: Answer("The conversation and its messages are gone.")},
    errors=[_NOT_FOUND],
)
async def delete_conversation(request: Request[State], caller: Caller) -> Response:
    """204; its messages go with it."""
    while await request.state.db.write_as(
        "alone", conversations.delete_conversation, caller.id, request.path_params["conversation_id"]
    ):
        pass
    return no_content()


@describes(
    "Conversations",
    "listMessages",
    "List the messages",
    parameters=[_CONVERSATION_ID],
    answers={200: Answer("A page of messages. It is shorter if they are long.", MESSAGE_LIST)},
    errors=[_NOT_FOUND],
    paged=True,
)
async def list_messages(request: Request[State], caller: Caller) -> Response:
    """Newest first, `?limit= ?after=`; a page of long messages is shorter."""
    db, limit, after = request.state.db, page_limit(request), page_after(request)
    conversation_id = request.path_params["conversation_id"]
    await db.read(conversations.conversation_by_id, caller.id, conversation_id)
    page, told = await db.read(_messages_and_answers, caller.id, conversation_id, limit, after)
    return listing(page, lambda message: {**message.as_json(), "answer": told.get(message.id)})


def _messages_and_answers(
    conn: sqlite3.Connection, account_id: str, conversation_id: str, limit: int, after: str | None
) -> tuple[Page[Message], dict[str, dict[str, Any]]]:
    page = history.messages_page(conn, account_id, conversation_id, limit, after)
    told = answers.by_message(conn, account_id, [message.id for message in page.items])
    return page, {message_id: answer.as_json() for message_id, answer in told.items()}


@describes(
    "Conversations",
    "createMessage",
    "Add a message",
    body=NEW_MESSAGE,
    parameters=[_CONVERSATION_ID],
    answers={201: Answer("The message.", MESSAGE)},
    errors=[_NOT_FOUND, NO_ROOM],
)
async def create_message(request: Request[State], caller: Caller, body: NewMessage) -> Response:
    state = request.state
    add = partial(conversations.add_message, role=body.role, content=body.content, now_seconds=state.clock())
    message = await state.db.write(add, caller.id, request.path_params["conversation_id"])
    return reply({**message.as_json(), "answer": None}, 201)
