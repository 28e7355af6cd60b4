"""Agent runs: the events of a run, which are its stream, and the records of runs."""

import asyncio
from functools import partial
from typing import Annotated, Any, NamedTuple

from svc.agents import loop, run_records
from svc.agents.run import AgentRun, RunOrder
from svc.agents.tools.offered import offered_to
from svc.agents.tools.sources import INSTRUCTION, NUMBERED
from svc.content import project_files, projects
from svc.routes.chat_files import FIND, files_for, given_to_model
from svc.routes.completion import payer_of, stream_of
from svc.routes.projects import IN_PROJECT, project_filter
from svc.routes.schemas.chat import CITATION, COMPLETION_USAGE, SOURCE
from svc.routes.schemas.common import (
    COUNT,
    ID,
    LIMIT_REACHED,
    MICROS,
    NO_FUNDS,
    NO_MODEL,
    NO_ROOM,
    PROJECT_NOT_FOUND,
    TIMESTAMP,
    example_id,
    id_of,
)
from svc.server.guards import Caller
from svc.server.interface import (
    ERROR_DETAIL,
    Answer,
    Content,
    Operation,
    Parameter,
    Refusal,
    as_event,
    event_of,
    kind_of,
    named_header,
    paged,
    variants,
)
from svc.server.limits import MIB
from svc.server.state import State
from svc.server.web import JsonResponse, Request, Response, add_log_fields, read_page
from svc.shapes import (
    Object,
    Shape,
    anything,
    boolean,
    integer,
    json_object,
    list_of,
    mapping,
    nullable,
    one_of,
    record,
    string,
    text,
    whole,
)

describes = partial(Operation, "Agents")
_STEPS = whole.about(example=6, minimum=1)
_REASON = string.about(
    "`max_steps`, `requested`, `shutdown`, `account_deleted`, `account_suspended` or `client_disconnected`.",
    "max_steps",
)
_TOTALS: dict[str, Any] = {"steps": 2, "usage": COMPLETION_USAGE, "cost_micros": MICROS}
_CALL: dict[str, Any] = {
    "id": "call_01m3250v3vfsgzezy8ak224fj9",
    "name": "calculate",
    "within": string.about("The id of the call of `run_python` whose code makes this one.").optional(),
}
_RUN_ARTIFACT = json_object(
    "RunArtifact", id=ID, name=string, content_type=string, size=COUNT.about("The size in bytes.")
)


def _event(title: str, kind: str, description: str, /, **fields: Shape[Any] | str | int) -> Object:
    number = whole.about("The event's number: 1, 2, 3 … without gaps.", 1, minimum=1)
    return kind_of(title, kind, description, run_id=id_of("run"), seq=number, **fields)


_STARTED = _event(
    "RunStarted",
    "started",
    "The first event.",
    model="builtin/assistant",
    max_steps=_STEPS,
    tools=list_of(string).about(example=["calculate", "current_time"]),
)
_STEP = _event("RunStep", "step", "The model is called once more.", step=whole.about(example=1, minimum=1))
_DELTA = _event("RunDelta", "delta", "A chunk of the model's text.", text="12 * (3 + 4) = 84")
_FURTHER = (
    _event(
        "RunToolCall",
        "tool_call",
        "The model calls a tool.",
        **_CALL,
        arguments=mapping.about(example={"expression": "12 * (3 + 4)"}),
    ),
    _event(
        "RunToolResult",
        "tool_result",
        "The result of a tool. With `ok: false` it is the reason of the failure.",
        **_CALL,
        ok=boolean,
        result=anything.about("Any JSON.", "84"),
    ),
    _event(
        "RunFinal",
        "final",
        "The goal is reached. This is the last event.",
        output=string.about("The answer, or the text of the model's refusal.", "12 * (3 + 4) = 84"),
        finish_reason=nullable(string).about(
            "Of the last step, as the model server sent it: `stop`, `length`, `content_filter`.", "stop"
        ),
        **_TOTALS,
        artifacts=list_of(_RUN_ARTIFACT).about("The artifacts that the run wrote.", []),
    ),
    _event("RunError", "error", "The run failed. This is the last event.", error=ERROR_DETAIL, **_TOTALS),
    _event("RunStopped", "stopped", "The run was stopped. This is the last event.", reason=_REASON, **_TOTALS),
)
_EVENTS = (_STARTED, _STEP, _DELTA, *_FURTHER)
_TRUNCATED = kind_of("RunTruncated", "truncated", "Further events, up to the last one, are not kept.")
_KEPT = variants(_STARTED, _STEP, *_FURTHER, _TRUNCATED).named("KeptRunEvent")
_RUN = json_object(
    "Run",
    "The record of an agent run.",
    id=id_of("run"),
    status=one_of(*run_records.STATUSES).about(example="final"),
    goal=string.about("In a list, goals and outputs are cut after 10,000 characters.", "Calculate 12 * (3 + 4)"),
    model="builtin/assistant",
    max_steps=_STEPS,
    output=nullable(string).about("The result of a `final` run.", "12 * (3 + 4) = 84"),
    error=nullable(ERROR_DETAIL).about(
        "Why a run with status `error` failed. Code `interrupted`: the server stopped during the run."
    ),
    reason=nullable(_REASON),
    **_TOTALS,
    project_id=nullable(ID).about("The project that it belongs to."),
    created_at=TIMESTAMP,
    finished_at=nullable(TIMESTAMP).about(example="2026-09-21T14:13:20.456Z"),
)
_RUN_WITH_EVENTS = json_object(
    "RunWithEvents",
    "The record of an agent run with its events.",
    _RUN,
    events=list_of(_KEPT).about(example=[_STARTED.example]),
    sources=list_of(SOURCE).about("What tools have found, those first that the output cites as `[1]`.", []),
    citations=list_of(CITATION).about("The passages of files that the output cites, in its order.", []),
)
_RUN_ANSWER = Answer(
    "The events of the run. The last one is exactly one of `final`, `error` and `stopped`.",
    contents={
        "text/event-stream": Content(
            event_of("RunStreamEvent", "The event as JSON.", variants(*_EVENTS).named("RunEvent")),
            {one.example["type"]: as_event({**one.example, "seq": number}) for number, one in enumerate(_EVENTS, 1)},
        )
    },
    headers={"x-service-run": named_header("Run", "The run's id.", ID, example_id("run"))},
)
_STATUS = Parameter("status", "Only those with this status.", one_of(*run_records.STATUSES))
_ENDED = Refusal(
    "already_ended", "This run has ended, or is about to.", when="The run has ended, or its end is decided."
)
_STARTED_BEFORE = Refusal("already_started", when="A request with this `Idempotency-Key` has started a run: `run_id`.")
_LONG_CHARACTERS = 1_000_000


@record("RunRequest", example={"goal": "Calculate 12 * (3 + 4)", "model": "builtin/assistant", "max_steps": 6})
class NewRun(NamedTuple):
    goal: Annotated[str, text(run_records.GOAL_LENGTH, blank=False).about("The goal of the agent; not blank.")]
    model: Annotated[str | None, string.about("As in a chat request.")] = None
    max_steps: Annotated[
        int, integer(1, projects.MOST_STEPS).about("The most calls of the model. A project's lower limit applies.")
    ] = 6
    project_id: Annotated[str | None, string.about("The project of the run. Its instructions begin the run.")] = None
    tools: Annotated[
        list[str] | None,
        list_of(text(64, least=1)).about(
            "The tools that the run may call; by default all available ones that need no approval. To name a tool is "
            "to approve its calls. A tool of a tool server is `<server>__<tool>`. `search_memory` needs a session, "
            "`fetch_url` the operator's permission, `search_web` a search engine, and the tools for images and speech "
            "a model of that kind."
        ),
    ] = None


@describes(
    "Run an agent",
    most_bytes=16 * MIB,
    answer=_RUN_ANSWER,
    errors=[NO_ROOM, NO_FUNDS, LIMIT_REACHED, *NO_MODEL, PROJECT_NOT_FOUND, _STARTED_BEFORE],
)
async def run_agent(request: Request, caller: Caller, body: NewRun) -> Response:
    context = request.context
    order = await _order(request.state, caller, body)
    claim, context.claim = context.claim, None  # a repeat starts no second run, but this one ends with its client
    agent_run = AgentRun(request.state, payer_of(request, caller), order, partial(add_log_fields, request), claim)
    return stream_of(request, agent_run.blocks(), agent_run.interrupt, {"x-service-run": agent_run.id})


async def _order(state: State, caller: Caller, body: NewRun) -> RunOrder:
    text = state.db.look_up(project_files.files_of_project, caller.id, body.project_id) if body.project_id else None
    offered, media_models = await offered_to(state, caller, with_files=text is not None)
    by_default = [name for name, tool in offered.items() if not tool.ask]
    names = by_default if body.tools is None else list_of(one_of(*offered)).check(body.tools, "tools")
    tools = {name: tool for name, tool in offered.items() if name in names}
    model = await state.models.chosen(caller.id, caller.default_model, body.model, "chat", caller.group)
    max_steps, project_id, instructions = body.max_steps, body.project_id, loop.INSTRUCTIONS
    if project_id is not None:
        project = await state.db.read(projects.TABLE.by_id, caller.id, project_id, "project_id")
        max_steps = min(max_steps, project.max_planner_steps or max_steps)
        instructions = f"{project.instructions}\n\n{instructions}".strip()
    given = None
    if (files := files_for(state, caller.id, model, text)) is not None:
        by_tools = files.by_tools and FIND in tools
        given = await given_to_model(state, caller.id, files, body.goal, by_tools=by_tools)
    if not NUMBERED.isdisjoint(tools):
        instructions = f"{instructions}\n\n{INSTRUCTION}"
    remembered = caller.auth == "session"  # a key's requests are stateless
    return RunOrder(body.goal, instructions, model, media_models, tools, max_steps, project_id, remembered, given)


@describes("List the runs", parameters=[IN_PROJECT, _STATUS], answer=paged("A page of runs.", "RunList", _RUN))
async def list_runs(request: Request, caller: Caller) -> object:
    filters = {"status": _STATUS.of(request), "project_id": await project_filter(request, caller)}
    return (await read_page(request, run_records.TABLE.page, caller.id, **filters)).of(run_records.in_a_list)


@describes("Show a run", answer=Answer("The run.", _RUN_WITH_EVENTS))
async def get_run(request: Request, caller: Caller, run_id: str) -> Response:
    open_run = request.state.open_runs.get(run_id)
    until_now = open_run and [*open_run.events]  # before the record, which has them once the run has ended
    row = await request.state.db.read(run_records.TABLE.by_id, caller.id, run_id)
    long = len(row["goal"]) + len(row["output"] or "") > _LONG_CHARACTERS
    written = (
        await asyncio.to_thread(run_records.with_events, row, until_now)
        if long
        else run_records.with_events(row, until_now)
    )
    return JsonResponse(written)


@describes(
    "Stop a run",
    "Its stream ends with `stopped`, reason `requested`.",
    answer=Answer(
        "The run is being stopped.",
        _RUN.about(example={**_RUN.example, "status": "running", "output": None, "finished_at": None}),
        202,
    ),
    errors=[_ENDED],
)
async def stop_run(request: Request, caller: Caller, run_id: str) -> object:
    row = await request.state.db.read(run_records.TABLE.by_id, caller.id, run_id)
    open_run = request.state.open_runs.get(run_id)
    if row["status"] != "running" or open_run is None or open_run.interrupt.reason is not None:
        raise _ENDED.error()
    open_run.interrupt("requested")
    return run_records.as_json(row)
