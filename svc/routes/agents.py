"""Agent runs: the stream of a run, and the records of runs."""

import asyncio
from functools import partial
from typing import Annotated, NamedTuple

from svc.agents import loop, runs
from svc.agents.run import AgentRun, RunOrder
from svc.agents.tools import TOOLS, tools_for
from svc.content import projects
from svc.routes.completion import payer_of, stream_of
from svc.routes.projects import IN_PROJECT, project_filter
from svc.routes.schemas.agents import RUN, RUN_ANSWER, RUN_WITH_EVENTS
from svc.routes.schemas.common import NO_FUNDS, NO_MODEL, NO_ROOM, PROJECT_NOT_FOUND
from svc.server.body_budget import MIB
from svc.server.gate import Caller
from svc.server.interface import Answer, Operation, Parameter, Refusal, paged
from svc.server.state import State
from svc.server.web import JsonResponse, Request, Response, add_log_fields, read_page
from svc.shapes import integer, list_of, one_of, record, string, text

describes = partial(Operation, "Agents")
_STATUS = Parameter("status", "Only those with this status.", one_of(*runs.STATUSES))
_ENDED = Refusal(
    "already_ended", "This run has ended, or is about to.", when="The run has ended, or its end is decided."
)
_LONG_CHARACTERS = 1_000_000


@record("RunRequest", example={"goal": "Calculate 12 * (3 + 4)", "model": "builtin/assistant", "max_steps": 6})
class NewRun(NamedTuple):
    goal: Annotated[str, text(runs.GOAL_LENGTH, blank=False).about("The goal of the agent; not blank.")]
    model: Annotated[str | None, string.about("As in a chat request.")] = None
    max_steps: Annotated[
        int, integer(1, projects.MOST_STEPS).about("The most calls of the model. A project's lower limit applies.")
    ] = 6
    project_id: Annotated[str | None, string.about("The project of the run. Its instructions begin the run.")] = None
    tools: Annotated[
        list[str] | None,
        list_of(one_of(*TOOLS)).about(
            "The tools that the run may call; by default all available ones. `search_memory` needs a session, "
            "`fetch_url` the operator's permission, and the tools for images and speech a model of that kind."
        ),
    ] = None


@describes(
    "Run an agent",
    most_bytes=16 * MIB,
    answer=RUN_ANSWER,
    errors=[NO_ROOM, NO_FUNDS, *NO_MODEL, PROJECT_NOT_FOUND],
)
async def run_agent(request: Request, caller: Caller, body: NewRun) -> Response:
    order = await _order(request.state, caller, body)
    agent_run = AgentRun(request.state, payer_of(request, caller), order, partial(add_log_fields, request))
    return stream_of(request, caller, agent_run.blocks(), agent_run.interrupt, {"x-service-run": agent_run.id})


async def _order(state: State, caller: Caller, body: NewRun) -> RunOrder:
    session = caller.auth == "session"
    firsts = {kind: await state.models.first(caller.id, kind, caller.group) for kind in ("image", "speech")}
    media_models = {kind: model for kind, model in firsts.items() if model is not None}
    needs = {"session": session, "fetch": state.config.agent_fetch, **media_models}
    offered = tools_for([need for need, found in needs.items() if found])
    names = offered if body.tools is None else list_of(one_of(*offered)).check(body.tools, "tools")
    tools = {name: tool for name, tool in offered.items() if name in names}
    model = await state.models.chosen(caller.id, caller.default_model, body.model, "chat", caller.group)
    max_steps, project_id, instructions = body.max_steps, body.project_id, loop.INSTRUCTIONS
    if project_id is not None:
        project = await state.db.read(projects.TABLE.by_id, caller.id, project_id, "project_id")
        max_steps = min(max_steps, project.max_planner_steps or max_steps)
        instructions = f"{project.instructions}\n\n{instructions}".strip()
    # A key's requests are stateless: they are not remembered.
    return RunOrder(body.goal, instructions, model, media_models, tools, max_steps, project_id, remembered=session)


@describes("List the runs", parameters=[IN_PROJECT, _STATUS], answer=paged("A page of runs.", "RunList", RUN))
async def list_runs(request: Request, caller: Caller) -> object:
    filters = {"status": _STATUS.of(request), "project_id": await project_filter(request, caller)}
    return (await read_page(request, runs.TABLE.page, caller.id, **filters)).of(runs.in_a_list)


@describes("Show a run", answer=Answer("The run.", RUN_WITH_EVENTS))
async def get_run(request: Request, caller: Caller, run_id: str) -> Response:
    open_run = request.state.open_runs.get(run_id)
    until_now = open_run and [*open_run.events]  # before the record, which has them once the run has ended
    row = await request.state.db.read(runs.TABLE.by_id, caller.id, run_id)
    long = len(row["goal"]) + len(row["output"] or "") > _LONG_CHARACTERS
    written = await asyncio.to_thread(runs.with_events, row, until_now) if long else runs.with_events(row, until_now)
    return JsonResponse(written)


@describes(
    "Stop a run",
    "Its stream ends with `stopped`, reason `requested`.",
    answer=Answer(
        "The run is being stopped.",
        RUN.about(example={**RUN.example, "status": "running", "output": None, "finished_at": None}),
        202,
    ),
    errors=[_ENDED],
)
async def stop_run(request: Request, caller: Caller, run_id: str) -> object:
    row = await request.state.db.read(runs.TABLE.by_id, caller.id, run_id)
    open_run = request.state.open_runs.get(run_id)
    if row["status"] != "running" or open_run is None or open_run.interrupt.reason is not None:
        raise _ENDED.error()
    open_run.interrupt("requested")
    return runs.as_json(row)
