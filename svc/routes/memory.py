"""The caller's memory: what recall finds, and messages that it leaves out."""

from functools import partial

from svc.content import remembered
from svc.routes.schemas.common import TIMESTAMP, id_of
from svc.server.guards import Caller
from svc.server.interface import Answer, Operation, Parameter, paged
from svc.server.web import Request, page_limit, read_page
from svc.shapes import boolean, json_object, nullable, one_of, string, text
from svc.tables import Page

describes = partial(Operation, "Account")
_MEMORY = json_object(
    "Memory",
    id=id_of("msg"),
    conversation_id=nullable(string).about("Its conversation. Null for the goal or the output of an agent run."),
    role=one_of("system", "user", "assistant").about(example="user"),
    text=string.about("The message, or with `q` the passage: at most 2,000 characters.", "My zebra is called Zora."),
    created_at=TIMESTAMP,
    forgotten=boolean.about("Whether recall leaves the message out.", False),
)
_QUESTION = Parameter("q", "List what recall finds for this text, best first.", text(remembered.QUERY_LENGTH))
_FORGOTTEN = Parameter("forgotten", "`true`: only forgotten messages, else only others.", one_of("true", "false"))


@describes(
    "List the memory",
    "The messages that chats of a session may recall, newest first. With `q`, what they recall for that text.",
    parameters=[_QUESTION, _FORGOTTEN],
    answer=paged("A page of messages.", "MemoryList", _MEMORY),
)
async def list_memory(request: Request, caller: Caller) -> object:
    forgotten = "forgotten" in request.query_params and _FORGOTTEN.of(request) == "true"
    if not request.query_params.get("q"):
        return await read_page(request, partial(remembered.newest, forgotten=forgotten), caller.id)
    found = await request.state.db.heavy_read(remembered.recalled, caller.id, _QUESTION.of(request), forgotten)
    return Page(found.items[: page_limit(request)], has_more=False)


@describes("Forget a message", "It stays in its conversation.", answer=Answer("Recall leaves the message out."))
async def forget_message(request: Request, caller: Caller, message_id: str) -> None:
    await request.state.db.write(remembered.forget, caller.id, message_id, request.state.clock())


@describes("Remember a message", "Recall finds a forgotten message again.", answer=Answer("The message.", _MEMORY))
async def remember_message(request: Request, caller: Caller, message_id: str) -> object:
    return await request.state.db.write(remembered.remember, caller.id, message_id)
