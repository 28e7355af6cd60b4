"""The files of a project in its chats and runs: whole, or by tools, or the passages that match the question."""

from typing import NamedTuple

from svc.agents.tools.offered import Offered
from svc.content import given_files, memory, project_files
from svc.content.given_files import GivenFiles
from svc.content.memory import Exchange
from svc.content.project_files import ReadyText
from svc.inference.catalog import Model
from svc.server.guards import Caller
from svc.server.state import State
from svc.server.web import Request

FIND = "find_in_files"


class ChatFiles(NamedTuple):
    """How a model gets the files of a project: `whole`, and `by_tools` if it can call tools."""

    project_id: str
    whole: bool
    by_tools: bool


def files_for(state: State, account_id: str, model: Model, text: ReadyText | None) -> ChatFiles | None:
    """Return how `model` gets a project's files, or None if there are none.

    A model may refuse tools if it is not known to call them. It gets them only if the files do not fit.
    """
    if text is None:
        return None
    whole = given_files.fit_whole(text, state.engines.context_lengths.tokens_of(model, account_id))
    by_tools = not whole if model.capabilities is None else "tools" in model.capabilities
    return ChatFiles(text.project_id, whole, by_tools)


def text_of_chat(request: Request, caller: Caller) -> ReadyText | None:
    """Return how much text the project of a session's conversation has, or None without files."""
    conversation_id = request.headers.get(memory.HEADER)
    if conversation_id is None:
        return None
    return request.state.db.look_up(project_files.files_of_chat, caller.id, conversation_id)


async def given_to_model(
    state: State, account_id: str, files: ChatFiles, question: str, *, by_tools: bool
) -> GivenFiles | None:
    """Return what the model gets without asking. `by_tools` is whether it can search the files itself."""
    if files.whole:
        return await state.db.heavy_read(given_files.whole_files, account_id, files.project_id)
    if by_tools:
        return None
    return await state.db.heavy_read(given_files.best_passages, account_id, files.project_id, question)


async def with_files(state: State, exchange: Exchange, files: ChatFiles | None, tools: Offered | None) -> Exchange:
    """Return the exchange with what the model gets of the files."""
    if files is None:
        return exchange
    by_tools = tools is not None and FIND in tools.tools
    given = await given_to_model(state, exchange.account_id, files, exchange.question, by_tools=by_tools)
    return exchange._replace(given=given, messages=given.among(exchange.messages)) if given else exchange
