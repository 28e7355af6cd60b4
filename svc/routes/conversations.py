"""The caller's conversations and their messages."""

import sqlite3
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import orjson

from svc.content import answers, branches, conversations, file_search, history, search
from svc.content.conversations import Conversation, ConversationFields
from svc.db import Database
from svc.ids import timestamp
from svc.inference.formats.answer import AnswerWriter
from svc.routes.completion import stream_of
from svc.routes.projects import IN_PROJECT, project_filter
from svc.routes.schemas.chat import CITATION, FOLLOWED_ANSWER, SOURCE, STEP
from svc.routes.schemas.common import (
    CACHED_INPUT,
    COUNT,
    NO_ROOM,
    PROJECT_NOT_FOUND,
    TIMES,
    TIMESTAMP,
    example_id,
    id_of,
)
from svc.server.guards import Caller
from svc.server.interface import ERROR_DETAIL, Answer, Content, Operation, Parameter, Refusal, header, paged
from svc.server.sse import Interrupt
from svc.server.streamed import streamed
from svc.server.web import Request, Response, page_after, page_limit, read_page
from svc.shapes import ABSENT, boolean, given, json_object, list_of, nullable, one_of, string, text
from svc.tables import Page

describes = partial(Operation, "Conversations")
SUMMARY = json_object(
    "Summary",
    text="They looked for a train to Zürich.",
    up_to_message_id=string.about("The last message in it.", example_id("msg")),
)
CONVERSATION = json_object(
    "Conversation",
    id=id_of("conv"),
    title=nullable(string).about(example="Trains"),
    project_id=nullable(string),
    pinned=boolean.about("Whether it comes before all that are not pinned.", False),
    archived=conversations.ARCHIVED,
    temperature=conversations.TEMPERATURE,
    max_output_tokens=conversations.MAX_OUTPUT_TOKENS,
    answering=boolean.about("Whether one of its answers is in progress.", False),
    always_allow=conversations.ALWAYS_ALLOW,
    summary=nullable(SUMMARY).about(
        "Sent in place of what is left out. `POST /conversations/{conversation_id}/summarize` makes it.",
        None,
    ),
    **TIMES,
)
_PART = json_object("MatchPart", text=string, found=boolean.about("Whether the search matched this part."))
_MATCH = json_object(
    "ConversationMatch",
    message_id=nullable(string).about("The message that matched. Null means the title."),
    text=string.about("The title or part of the message, without the signs of Markdown."),
    parts=list_of(_PART).about("The text, split into parts."),
)
_FOUND_CONVERSATION = json_object(
    "FoundConversation",
    "",
    CONVERSATION,
    matches=list_of(_MATCH).about("With `q`: the texts that matched.").optional(),
)
_INCOMPLETE = boolean.about(
    "With `q`: whether the search ran out of time. All returned conversations match the words that were searched by "
    "then, but others may be missing. Search for fewer words."
).optional()
_RECALLED_PASSAGE = json_object(
    "RecalledPassage",
    message_id=string.about("The message that holds the passage."),
    role=one_of("user", "assistant"),
    text=string,
    source=string.about("The id of its conversation or run."),
    created_at=TIMESTAMP,
)
_FIRST_SENT = nullable(string).about(
    "The first message of the conversation that the model got. Null means all, or that the message is no answer.", None
)
_MESSAGE_ANSWER = json_object(
    "MessageAnswer",
    "Details of an answer.",
    input_tokens=24,
    output_tokens=6,
    cached_input_tokens=COUNT.about(CACHED_INPUT, 0),
    cost_micros=COUNT.about("The cost in micros. 0 for free models and own providers."),
    saved_micros=COUNT.about("How much more it would have cost without cached input, in micros."),
    duration_ms=COUNT.about("The time from the request to the end of the answer.", 412),
    finish_reason=nullable(string).about(
        "Why the answer ended, for example `stop` or `length`. Null means that it was cut off or the client "
        "disconnected.",
        "stop",
    ),
    reasoning=nullable(string).about(
        "The model's reasoning, if the model server sends it: the first 200,000 characters."
    ),
    memory=list_of(_RECALLED_PASSAGE).about("The passages of earlier messages that the model received.", []),
    first_sent_message_id=_FIRST_SENT,
)
_MESSAGE = json_object(
    "Message",
    id=id_of("msg"),
    conversation_id=id_of("conv"),
    role=one_of("system", "user", "assistant").about(example="user"),
    content="When does it leave?",
    model=nullable(string).about("The model that wrote the message. Null means that no model did."),
    created_at=TIMESTAMP,
    status=one_of(*history.STATUSES, "waiting").about(
        "Of an answer. `waiting`: calls wait for `POST /conversations/{conversation_id}/approve`. `stopped`: the "
        "person stopped it, or the client disconnected. `interrupted`: the server ended. `failed`: see `error`.",
        "complete",
    ),
    finish_reason=nullable(string).about("Of an answer, as in `answer`."),
    error=nullable(ERROR_DETAIL).about("Why the answer has failed, with the `request_id` for the operator."),
    answer=nullable(_MESSAGE_ANSWER).about("Before the end of an answer, its numbers are 0."),
    steps=list_of(STEP).about("What tools did for an answer, in this order. Results are cut to 4,000 characters.", []),
    sources=list_of(SOURCE).about("What tools have found, those first that the text cites as `[1]`.", []),
    citations=list_of(CITATION).about("The passages of files that the text cites, in its order.", []),
    memories=list_of(string).about("The ids of the messages that were recalled for an answer.", []),
    first_sent_message_id=_FIRST_SENT,
    versions=list_of(string).about("The ids of all versions of the message, oldest first; empty if it has one.", []),
)
_ANSWER_MESSAGE = {
    **_MESSAGE.example,
    "role": "assistant",
    "content": "At 7:12.",
    "model": "builtin/assistant",
    "answer": _MESSAGE_ANSWER.example,
}
_ARCHIVED = Parameter(
    "archived",
    "`true`: only archived conversations. `false`: only others, which is the default without `q`.",
    one_of("true", "false"),
)
_WORDS = Parameter(
    "q",
    "Only conversations that contain all of these words in their messages or title. The last word may be a prefix. "
    "Equal titles come first, then texts with the words side by side, then texts with all words.",
    text(search.QUERY_LENGTH),
)
_ENDED = Refusal("already_ended", "No answer is in progress in this conversation.", when="No answer is in progress.")
_NO_ANSWER = Refusal("not_found", _ENDED.message)


@describes(
    "Create a conversation",
    answer=Answer("The conversation.", CONVERSATION, 201),
    errors=[PROJECT_NOT_FOUND, NO_ROOM],
)
async def create_conversation(request: Request, caller: Caller, body: ConversationFields) -> object:
    add = partial(conversations.add_conversation, **given(body._replace(current_message_id=ABSENT, summary=ABSENT)))
    return await request.state.db.write(add, caller.id, request.state.clock())


@describes(
    "List the conversations",
    parameters=[_WORDS, IN_PROJECT, _ARCHIVED],
    answer=paged("A page of conversations.", "ConversationList", _FOUND_CONVERSATION, incomplete=_INCOMPLETE),
)
async def list_conversations(request: Request, caller: Caller) -> object:
    project_id = await project_filter(request, caller)
    archived = _ARCHIVED.of(request) == "true" if "archived" in request.query_params else None
    if not request.query_params.get("q"):
        narrowed = {"project_id": project_id, "archived": bool(archived)}
        return await read_page(request, conversations.TABLE.page, caller.id, **narrowed)
    limit, after, words = page_limit(request), page_after(request), _WORDS.of(request)
    return await request.state.db.heavy_read(search.search, caller.id, words, limit, after, project_id, archived)


@describes("Show a conversation", answer=Answer("The conversation.", CONVERSATION))
async def get_conversation(request: Request, caller: Caller, conversation_id: str) -> object:
    return await request.state.db.read(conversations.TABLE.by_id, caller.id, conversation_id)


@describes(
    "Change a conversation",
    examples={
        "title": {"title": "Trains to Zürich"},
        "version": {"current_message_id": "msg_01m3250v3vn4qvxnatpwzmywwn"},
    },
    answer=Answer("The changed conversation.", CONVERSATION),
    errors=[
        PROJECT_NOT_FOUND,
        Refusal("not_found", "There is no such message in this conversation.", "current_message_id"),
        Refusal("not_found", "This conversation has no summary yet.", "summary"),
        Refusal("already_active", when="`current_message_id` is sent while the conversation is being answered."),
    ],
)
async def update_conversation(
    request: Request, caller: Caller, conversation_id: str, body: ConversationFields
) -> object:
    change = conversations.change_conversation
    return await request.state.db.write(change, caller.id, conversation_id, given(body), request.state.clock())


@describes("Delete a conversation", answer=Answer("The conversation and its messages are deleted."))
async def delete_conversation(request: Request, caller: Caller, conversation_id: str) -> None:
    while await request.state.db.write_as("alone", conversations.delete_conversation, caller.id, conversation_id):
        pass
    if answer := request.state.open_answers.get(conversation_id):
        answer.stop("conversation_deleted")


@describes(
    "Stop the answer in progress",
    "Its text so far stays, with the status `stopped`.",
    answer=Answer(
        "The answer is being stopped.", CONVERSATION.about(example={**CONVERSATION.example, "answering": True}), 202
    ),
    errors=[_ENDED],
)
async def stop_answer(request: Request, caller: Caller, conversation_id: str) -> object:
    conversation = await request.state.db.read(conversations.TABLE.by_id, caller.id, conversation_id)
    answer = request.state.open_answers.get(conversation_id)
    if answer is None or not answer.stop("requested"):
        raise _ENDED.error()
    return conversation


@describes("Follow the answer in progress", answer=FOLLOWED_ANSWER, errors=[_NO_ANSWER])
async def follow_answer(request: Request, caller: Caller, conversation_id: str) -> Response:
    await request.state.db.read(conversations.TABLE.by_id, caller.id, conversation_id)
    answer = request.state.open_answers.get(conversation_id)
    if answer is None or not answer.in_progress:
        raise _NO_ANSWER.error()
    interrupt = Interrupt()
    return stream_of(request, answer.follow(interrupt), interrupt, {}, AnswerWriter())


@describes(
    "Export a conversation as Markdown",
    answer=Answer(
        "The Markdown text.",
        contents={"text/markdown": Content(string.about("The text.", "# Trains\n"))},
        headers={
            "content-disposition": header(
                "A download.", string, 'attachment; filename="conv_01m3250v3vn4qvxnatpwzmywwn.md"'
            )
        },
    ),
)
async def export_conversation(request: Request, caller: Caller, conversation_id: str) -> Response:
    """Send the messages while they are read, about a million characters at a time."""
    db = request.state.db
    conversation = await db.read(conversations.TABLE.by_id, caller.id, conversation_id)
    name = f"{conversation.id}.md"
    return await streamed(request, _markdown(db, conversation), "text/markdown; charset=utf-8", name)


async def _markdown(db: Database, conversation: Conversation) -> AsyncGenerator[bytes, None]:
    yield f"# {conversation.title or 'Untitled'}\n".encode()
    for current in (True, False):
        number, heading = 0, b"" if current else b"\n# Other versions\n"
        while read := await db.heavy_read(_markdown_after, conversation, number, current):
            written, number = read
            yield heading + written
            heading = b""


def _markdown_after(
    conn: sqlite3.Connection, conversation: Conversation, number: int, current: bool
) -> tuple[bytes, int] | None:
    """Return the next messages after `number` as Markdown and the number of the last one, or None after the last."""
    several = branches.versions_of(conn, conversation.account_id, conversation.id)
    if not several and not current:
        return None
    messages = history.messages_after(conn, conversation.account_id, conversation.id, number, current=current)
    parts = []
    for message in messages:
        ids = several.get(message.id, [])
        version = f"version {ids.index(message.id) + 1} of {len(ids)}" if ids else None
        status = None if message.status == "complete" else message.status
        said = (message.role.capitalize(), message.model, timestamp(message.created_at), version, status)
        heading = ", ".join(filter(None, said))
        content = message.content.strip() or (orjson.loads(message.error)["message"] if message.error else "")
        parts.append(f"\n## {heading}\n\n{content}\n".encode())
    return (b"".join(parts), messages[-1].number) if messages else None


@describes(
    "List the messages",
    answer=paged(
        "A page of messages. It is shorter if they are long.", "MessageList", _MESSAGE.about(example=_ANSWER_MESSAGE)
    ),
)
async def list_messages(request: Request, caller: Caller, conversation_id: str) -> object:
    return await read_page(request, _messages_page, caller.id, conversation_id)


def _messages_page(
    conn: sqlite3.Connection, account_id: str, conversation_id: str, limit: int, after: str | None
) -> Page[dict[str, Any]]:
    conversations.TABLE.by_id(conn, account_id, conversation_id)
    page = history.CURRENT.page(conn, account_id, limit, after, conversation_id=conversation_id)
    return _shown(conn, account_id, conversation_id, page)


def _shown(
    conn: sqlite3.Connection, account_id: str, conversation_id: str, page: Page[history.Message]
) -> Page[dict[str, Any]]:
    found = answers.by_message(conn, account_id, [message.id for message in page.items])
    several = branches.versions_of(conn, account_id, conversation_id)
    return page.of(lambda message: _message(message, found.get(message.id), several.get(message.id, [])))


@describes(
    "List the versions of a message",
    "The newest first, with those that the conversation does not show.",
    answer=paged(
        "A page of messages. It is shorter if they are long.", "MessageList", _MESSAGE.about(example=_ANSWER_MESSAGE)
    ),
)
async def list_versions(request: Request, caller: Caller, conversation_id: str, message_id: str) -> object:
    return await read_page(request, _versions_page, caller.id, conversation_id, message_id)


def _versions_page(
    conn: sqlite3.Connection, account_id: str, conversation_id: str, message_id: str, limit: int, after: str | None
) -> Page[dict[str, Any]]:
    conversations.TABLE.by_id(conn, account_id, conversation_id)
    ids = branches.versions_of(conn, account_id, conversation_id).get(message_id, [message_id])
    numbers = history.numbers_of(conn, account_id, conversation_id, ids)
    return _shown(conn, account_id, conversation_id, history.ALL.page(conn, account_id, limit, after, number=numbers))


@describes("Add a message", answer=Answer("The message.", _MESSAGE, 201), errors=[NO_ROOM])
async def create_message(request: Request, caller: Caller, conversation_id: str, body: history.NewMessage) -> object:
    add = partial(conversations.add_message, role=body.role, content=body.content, now_seconds=request.state.clock())
    return _message(await request.state.db.write(add, caller.id, conversation_id), None, [])


def _message(message: history.Message, answer: dict[str, Any] | None, versions: list[str]) -> dict[str, Any]:
    further: dict[str, Any] = {"steps": [], "sources": [], "finish_reason": None}
    if answer is not None:
        answer, by_tools = dict(answer), {name: answer[name] for name in ("steps", "sources", "waiting")}
        for name in by_tools:
            del answer[name]
        further = {**by_tools, "finish_reason": answer["finish_reason"]}
        if further.pop("waiting"):
            further["status"] = "waiting"
    citations = file_search.citations_of(message.content, further["sources"])
    memories = [passage["message_id"] for passage in answer["memory"]] if answer else []
    first = answer and answer["first_sent_message_id"]
    shown = {"answer": answer, "citations": citations, "memories": memories, "versions": versions}
    return {**message.as_json(), **further, **shown, "first_sent_message_id": first}
