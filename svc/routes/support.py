"""Live support: conversations of a pro account with the operator, and their inbox for administrators.

The operator may also answer with `svc support`.
"""

from functools import partial

from svc.auth.emails import EMAIL
from svc.content import support
from svc.routes.schemas.common import NO_ROOM, TIMES, TIMESTAMP, WRONG_PARAMETER, id_of
from svc.server.guards import Caller
from svc.server.interface import Answer, Operation, Parameter, Refusal, paged
from svc.server.web import Request, read_page
from svc.shapes import boolean, json_object, list_of, nullable, one_of, string

describes = partial(Operation, "Support")
describes_inbox = partial(Operation, "Administration")
_MESSAGE = json_object(
    "SupportMessage",
    id=id_of("msg"),
    role=one_of("user", "operator"),
    content="Where is my invoice?",
    created_at=TIMESTAMP,
)
_STATUS = Parameter("status", "Only conversations with this status.", one_of("active", "closed"))
_CONVERSATION = json_object(
    "SupportConversation",
    id=id_of("sup"),
    status=_STATUS.shape,
    subject=nullable(string).about(example="My invoice"),
    **TIMES,
    closed_at=nullable(TIMESTAMP),
)
_MESSAGES = list_of(_MESSAGE, most=200).about("Oldest first.")
_WITH_MESSAGES = json_object("SupportConversationWithMessages", "", _CONVERSATION, messages=_MESSAGES)
_IN_INBOX = json_object(
    "InboxConversation",
    "A support conversation with its user.",
    _CONVERSATION,
    account_id=id_of("user"),
    email=EMAIL.about(example="ada@example.com"),
    waiting=boolean.about("Whether the last message is not the operator's."),
)
_INBOX_CONVERSATION = json_object("InboxConversationWithMessages", "", _IN_INBOX, messages=_MESSAGES)
_CLOSED = _WITH_MESSAGES.about(example={**_WITH_MESSAGES.example, "status": "closed", "closed_at": TIMESTAMP.example})
_ALREADY_ENDED = Refusal("already_ended", "This support conversation is closed. Open a new one.", when="It is closed.")
_FULL = Refusal(
    "PAYLOAD_TOO_LARGE",
    "This support conversation is full. Close it and open a new one.",
    "content",
    "The conversation has 200 messages.",
)


@describes(
    "Contact the operator",
    "For pro accounts. An account has at most one active support conversation.",
    answer=Answer("The conversation.", _WITH_MESSAGES, 201),
    errors=[
        NO_ROOM,
        Refusal(
            "already_active",
            "A support conversation is already active. Continue there, or close it first.",
            when="One is already active.",
        ),
    ],
)
async def create_support_conversation(request: Request, caller: Caller, body: support.NewSupport) -> object:
    return await request.state.db.write(support.add_support, caller.id, body, request.state.clock())


@describes(
    "List the support conversations",
    answer=paged("A page of conversations, without messages.", "SupportConversationList", _CONVERSATION),
)
async def list_support_conversations(request: Request, caller: Caller) -> object:
    return await read_page(request, support.TABLE.page, caller.id)


@describes("Show a support conversation", answer=Answer("The conversation with its messages.", _WITH_MESSAGES))
async def get_support_conversation(request: Request, caller: Caller, support_id: str) -> object:
    return await request.state.db.read(support.support_with_messages, caller.id, support_id)


@describes(
    "Add a message to a support conversation",
    answer=Answer("The message.", _MESSAGE, 201),
    errors=[_ALREADY_ENDED, NO_ROOM, _FULL],
)
async def create_support_message(
    request: Request, caller: Caller, support_id: str, body: support.NewSupportMessage
) -> object:
    add = support.add_message
    return await request.state.db.write(add, caller.id, support_id, "user", body.content, request.state.clock())


@describes(
    "Close a support conversation",
    answer=Answer("The closed conversation.", _CLOSED),
    errors=[_ALREADY_ENDED],
)
async def close_support_conversation(request: Request, caller: Caller, support_id: str) -> object:
    return await request.state.db.write(support.close, caller.id, support_id, request.state.clock())


@describes_inbox(
    "List the support conversations of all users",
    "The last changed one comes first.",
    parameters=[_STATUS],
    answer=paged("A page of conversations, without messages.", "Inbox", _IN_INBOX),
    errors=[WRONG_PARAMETER],
)
async def list_inbox(request: Request, caller: Caller) -> object:
    return await read_page(request, support.inbox_page, _STATUS.of(request))


@describes_inbox(
    "Show a support conversation of a user",
    answer=Answer("The conversation with its messages.", _INBOX_CONVERSATION),
)
async def get_inbox_conversation(request: Request, caller: Caller, support_id: str) -> object:
    return await request.state.db.read(support.in_inbox, support_id)


@describes_inbox(
    "Answer a user",
    "The user sees the message as the operator's.",
    answer=Answer("The message.", _MESSAGE, 201),
    errors=[_ALREADY_ENDED, _FULL],
)
async def reply_to_user(request: Request, caller: Caller, support_id: str, body: support.NewSupportMessage) -> object:
    return await request.state.db.write(support.reply, caller.id, support_id, body.content, request.state.clock())


@describes_inbox(
    "Close a support conversation of a user",
    answer=Answer("The closed conversation.", _INBOX_CONVERSATION),
    errors=[_ALREADY_ENDED],
)
async def close_inbox_conversation(request: Request, caller: Caller, support_id: str) -> object:
    return await request.state.db.write(support.close_in_inbox, caller.id, support_id, request.state.clock())
