"""Tools in the chats of a session: which there are, answers that use them, and the approval of calls."""

from functools import partial
from typing import Annotated, Any, NamedTuple

import orjson

from svc.agents import loop
from svc.agents.tool_answer import Resumed
from svc.agents.tools.offered import Offered, offered_to
from svc.agents.tools.registry import AgentTool
from svc.agents.tools.sources import Sources
from svc.content import answers, conversations, memory, model_view, project_files
from svc.content.model_view import View
from svc.errors import invalid_value
from svc.inference.context_fit import ContextFit
from svc.inference.model_call import Bill
from svc.routes.chat_files import ChatFiles
from svc.routes.completion import BOOLEAN, CONTINUE, answer_in_session, payer_of
from svc.routes.schemas.chat import CHAT_ANSWER
from svc.routes.schemas.common import COUNT, MODEL_CALL, TEXTS
from svc.routes.tool_answers import AnswerMaker, body_of_rounds
from svc.server.guards import Caller
from svc.server.interface import Answer, Operation, Parameter, Refusal
from svc.server.web import Request, Response
from svc.shapes import boolean, json_object, list_of, mapping, one_of, record, string

describes = partial(Operation, "Chat")
HEADER = "x-service-tools"
TOOLS_HEADER = Parameter(HEADER, TEXTS / "x-service-tools.md", string, "search_web,fetch_url", where="header")
_TOOL = json_object(
    "Tool",
    name="search_web",
    description=string.about("What the tool does, as the model reads it.", "Searches the web."),
    ask=boolean.about("Whether each call waits for the approval of a person.", False),
    price_micros=COUNT.about("The price of a call in micros.", 5000),
    source=string.about("`service`, or the name of the tool server that has it.", "service"),
)
_TOOL_LIST = json_object(
    "ToolList", object=one_of("list"), data=list_of(_TOOL), has_more=boolean.about("Always false.", False)
)
_WITH_TOOLS = Refusal("invalid_value", "Send x-service-tools, or tools in the body, not both.", "tools")
UNKNOWN_TOOL = Refusal("invalid_value", "There is no tool 'search'.", HEADER, "An unknown name.")
TOOL_REFUSALS = [_WITH_TOOLS, UNKNOWN_TOOL]
_DECIDED = Refusal("already_decided", when="No call waits: it was decided before, or a question has come since.")


@record("ApproveRequest", example={"calls": {"call_01m3250v3vfsgzezy8ak224fj9": True}})
class Decisions(NamedTuple):
    calls: Annotated[
        dict[str, Any], mapping.about("For each call that waits, by its id: whether it may run, a boolean.")
    ]


@describes("List the tools", answer=Answer("What the caller may use, in runs and in chats.", _TOOL_LIST))
async def list_tools(request: Request, caller: Caller) -> object:
    offered = await offered_to(request.state, caller)
    return {"object": "list", "data": [_shown(tool) for tool in offered.tools.values()], "has_more": False}


def _shown(tool: AgentTool) -> dict[str, Any]:
    return {name: getattr(tool, name) for name in ("name", "description", "ask", "price_micros", "source")}


async def tools_of(
    request: Request, caller: Caller, body: dict[str, Any], temporary: bool, files: ChatFiles | None
) -> Offered | None:
    """Return the tools that the header of a session chat names, and those for its project's files.

    None is none of them. A request with tools has those only. Raises ApiError.
    A `temporary` chat has none that ask: their calls would wait in a conversation.
    """
    names = dict.fromkeys(filter(None, (name.strip() for name in request.headers.get(HEADER, "").split(","))))
    if not names and (files is None or not files.by_tools or body.get("tools") or (body.get("n") or 1) > 1):
        return None
    if body.get("tools"):
        raise _WITH_TOOLS.error()
    if (body.get("n") or 1) > 1:
        raise invalid_value("An answer with tools has one choice.", "n")
    offered = await offered_to(request.state, caller, with_files=files is not None)
    for name in names:
        if name not in offered.tools:
            known = ", ".join(offered.tools)
            raise invalid_value(f"There is no tool {name[:100]!r}. There are: {known}.", HEADER)
    tools = {name: tool for name, tool in offered.tools.items() if name in names or tool.needs == "files"}
    tools = {name: tool for name, tool in tools.items() if not (temporary and tool.ask)}
    return offered._replace(tools=tools) if tools else None


def body_with(tools: Offered, body: dict[str, Any]) -> dict[str, Any]:
    """Return the request for a model that may call `tools`."""
    return body_of_rounds(body, tools=[tool.as_function for tool in tools.tools.values()])


@describes(
    "Decide about the calls of an answer",
    "The answer continues as the stream of a chat. A denied call is a result that the model sees.",
    answer=CHAT_ANSWER,
    parameters=[Parameter(CONTINUE, TEXTS / "x-service-continue.md", BOOLEAN, where="header")],
    errors=[
        *MODEL_CALL,
        _DECIDED,
        Refusal("already_active", when="The conversation is being answered."),
        Refusal("invalid_value", "Decide about all calls: call_1 is missing.", "calls", "A decision is missing."),
    ],
)
async def approve_calls(request: Request, caller: Caller, conversation_id: str, body: Decisions) -> Response:
    state = request.state
    continues = BOOLEAN.check(request.headers.get(CONTINUE, "false"), CONTINUE) == "true"
    conversation = await state.db.read(conversations.TABLE.by_id, caller.id, conversation_id)
    row = await state.db.read(answers.waiting_in, caller.id, conversation_id)
    if row is None:
        raise _DECIDED.error()
    waiting = orjson.loads(row["waiting"])
    calls = [loop.WaitingCall(*call) for call in waiting["calls"]]
    _check(body.calls, [call.id for call in calls])
    request_before = waiting["request"]
    model = await state.models.chosen(caller.id, caller.default_model, request_before["model"], "chat", caller.group)
    files = state.db.look_up(project_files.files_of_chat, caller.id, conversation_id)
    offered = await offered_to(state, caller, with_files=files is not None)
    found = [(offered.tools.get(name), version) for name, version in request_before["tools"].items()]
    tools = {tool.name: tool for tool, version in found if tool is not None and tool.version == version}
    offered = offered._replace(tools=tools)
    asked = {**request_before["body"], "stream": True}
    exchange = memory.exchange_of(conversation, state.clock())
    bill = Bill(row["input_tokens"], row["output_tokens"], row["cost_micros"], None, row["cached_input_tokens"])
    steps = orjson.loads(row["steps"] or "[]")
    resumed = Resumed(row["content"], steps, bill, waiting["rounds"], calls, body.calls)
    sent = body_with(offered, {**asked, "messages": []}) | {"messages": request_before["messages"]}
    added = conversation.chat_fields().keys()
    summary = await state.db.read(model_view.current_summary, conversation)
    fit = ContextFit(state.engines.context_lengths, caller.id, View(summary=summary))
    payer = payer_of(request, caller)
    maker = AnswerMaker(request, payer, model, offered, added, sent, exchange=exchange, fit=fit)
    sources = Sources(orjson.loads(row["sources"] or "[]"), request_before.get("given", 0))
    answer = maker.answer(None, request.context.claim, asked, resumed=resumed, sources=sources)
    ask = partial(memory.ask_again, message_id=row["message_id"])
    usage = bool((asked.get("stream_options") or {}).get("include_usage"))
    return await answer_in_session(request, answer, exchange, continues, usage, {}, ask)


def _check(decisions: dict[str, Any], waiting: list[str]) -> None:
    for call_id in waiting:
        if call_id not in decisions:
            raise invalid_value(f"Decide about all calls: {call_id} is missing.", "calls")
    for call_id, decision in decisions.items():
        if call_id not in waiting:
            raise invalid_value(f"No call {call_id[:100]!r} waits for a decision.", "calls")
        boolean.check(decision, f"calls.{call_id}")
