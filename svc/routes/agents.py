"""Agent runs: the stream that is the run, and its records."""

import contextlib
import re
import sqlite3
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response

from svc.agents import loop, runs, tools
from svc.agents.run_stream import End, Record, run_blocks
from svc.content import history, projects
from svc.errors import ApiError, describe
from svc.ids import new_id
from svc.inference.catalog import Model
from svc.inference.chat_call import ChatCall
from svc.inference.media import Maker
from svc.inference.paid_call import Payer
from svc.inference.wire import error_event
from svc.routes.schemas.agents import RUN, RUN_ANSWER, RUN_BODY, RUN_LIST, RUN_TEXT
from svc.routes.schemas.refusals import MODEL_NOT_FOUND, NO_FUNDS, PROJECT_NOT_FOUND
from svc.server.bodies import read_json
from svc.server.body_budget import MIB
from svc.server.gate import Caller
from svc.server.interface import Answer, Refusal, describes, path_id
from svc.server.sse import EventStream, Interrupt
from svc.server.state import State
from svc.server.web import add_log_fields, listing, page_after, page_limit, reply

_RUN_ID = path_id("run_id", "The run's id.", "run_01m3250v3vn4qvxnatpwzmywwn")
_NOT_FOUND = Refusal("not_found", "There is no such run.", when="The account has no such run.")

_BODY_BYTES = 16 * MIB
_MOST_STEPS = 20
_DEFAULT_STEPS = 6


@describes(
    "Agents",
    "runAgent",
    "Run an agent",
    RUN_TEXT,
    body=RUN_BODY,
    answers={200: RUN_ANSWER},
    errors=[
        Refusal("missing_field", "goal is required: what the agent is to reach.", "goal"),
        Refusal("invalid_value", "max_steps must be a whole number from 1 to 20.", "max_steps"),
        NO_FUNDS,
        MODEL_NOT_FOUND,
        PROJECT_NOT_FOUND,
    ],
)
async def run(request: Request[State], caller: Caller) -> Response:
    """`{goal, model?, max_steps?, project_id?, tools?}` -> the run's events, up to exactly one that ends it."""
    state = request.state
    body = await read_json(request, _BODY_BYTES)
    goal = _goal(body)
    image, speech = state.models.catalog.first("image"), state.models.catalog.first("speech")
    offered = tools.offered(
        session=caller.auth == "session", fetch=state.config.agent_fetch, image=image is not None, speech=speech is not None
    )
    names = _tools(body, offered)
    max_steps = _max_steps(body)
    model = await state.models.chosen(caller.account, body.get("model"), "chat")
    instructions = loop.INSTRUCTIONS
    project_id = body.get("project_id")
    if project_id is not None:
        projects.check_project_id(project_id, "project_id")
        project = await state.db.read(projects.project_by_id, caller.id, project_id, "project_id")
        max_steps = min(max_steps, project.max_planner_steps or max_steps)
        instructions = f"{project.instructions}\n\n{instructions}".strip()
    messages = [{"role": "system", "content": instructions}, {"role": "user", "content": goal}]
    run_id = new_id("run", state.clock())
    record = {"id": run_id, "goal": goal, "model": model.id, "max_steps": max_steps, "project_id": project_id}
    return _AgentRun(request, caller, (model, image, speech), record, names).stream(messages)


class _AgentRun:
    """One run: what its loop, its tools, its record and its wallet share."""

    def __init__(
        self,
        request: Request[State],
        caller: Caller,
        models: tuple[Model, Model | None, Model | None],
        record: dict[str, Any],
        names: list[str],
    ) -> None:
        self._state = request.state
        self._request = request
        self._caller = caller
        self._model, image, speech = models
        self._record = record
        self._names = names
        self._interrupt = Interrupt()
        self._progress = loop.Progress()
        self._turns: list[ChatCall] = []  # all but the last are settled
        self._payer = Payer(caller.id, request.scope["svc.request_id"], caller.key_id)
        self._maker = Maker(self._state.studio, self._payer, record["id"], record["project_id"])
        self._toolbox = tools.Toolbox(
            draw=partial(self._maker.draw, cast(Model, image)),  # without a model these are not offered
            speak=partial(self._maker.speak, cast(Model, speech)),
            names=names,
            account_id=caller.id,
            run_id=record["id"],
            project_id=record["project_id"],
            db=self._state.db,
            guarded=self._state.guarded,
            clock=self._state.clock,
            on_fault=self._note_fault,
            written=self._progress.artifacts,
        )

    def stream(self, messages: list[dict[str, Any]]) -> Response:
        """The run as an answer. Nothing has begun before its first event: a refusal until then is an ordinary error."""
        first = self._ask(messages)

        def open_in(tx: sqlite3.Connection) -> None:
            runs.add_run(tx, self._caller.id, self._record, self._state.clock())
            first.reserve_in(tx)

        async def opened() -> None:
            # Whoever finds the run in the list can stop it at once.
            self._state.open_runs[self._record["id"]] = self._interrupt
            try:
                await self._state.db.write(open_in)
            except Exception:
                del self._state.open_runs[self._record["id"]]
                raise

        blocks = run_blocks(
            self._record["id"],
            self._events(messages, first),
            record=Record(opened, self._store, self._outcome, self._note_fault),
            progress=self._progress,
            interrupt=self._interrupt,
        )
        return EventStream(
            blocks,
            drain=self._state.drain,
            owner=self._caller.id,
            interrupt=self._interrupt,
            closing=lambda error: error_event(error.error),
            on_fault=self._note_fault,
            headers={"x-service-run": self._record["id"]},
        )

    async def _events(self, messages: list[dict[str, Any]], first: ChatCall) -> AsyncGenerator[dict[str, Any], None]:
        yield {"type": "started", "model": self._model.id, "max_steps": self._record["max_steps"], "tools": self._names}
        async with contextlib.aclosing(
            loop.run(
                messages,
                max_steps=self._record["max_steps"],
                ask=lambda messages: self._ask(messages) if self._progress.steps > 1 else first,
                call_tool=self._toolbox.call,
                progress=self._progress,
            )
        ) as events:
            try:
                async for event in events:
                    yield event
            except ApiError as error:
                if self._progress.steps == 1 and self._names and _is_about_tools(error):
                    raise _tools_refused(error) from error
                raise

    def _ask(self, messages: list[dict[str, Any]]) -> ChatCall:
        body: dict[str, Any] = {"model": self._model.id, "messages": list(messages), "stream": True}
        if self._names:
            body["tools"] = tools.described(self._names)
        call = ChatCall(self._model, body, self._state.engines, self._payer)
        self._turns.append(call)
        return call

    async def _store(self, end: End) -> runs.Outcome:
        outcome: runs.Outcome = await self._state.db.write(self._store_in, end)
        self._turns[-1].mark_settled()
        self._state.open_runs.pop(self._record["id"], None)
        add_log_fields(
            self._request,
            run=self._record["id"],
            model=self._model.id,
            run_status=outcome.status,
            input_tokens=outcome.usage["prompt_tokens"],
            output_tokens=outcome.usage["completion_tokens"],
            cost_micros=outcome.cost_micros,
        )
        return outcome

    def _store_in(self, tx: sqlite3.Connection, end: End) -> runs.Outcome:
        """The last settlement and the end of the run: one transaction."""
        self._turns[-1].settle_in(tx)
        outcome = self._outcome(end)
        now_seconds = self._state.clock()
        ended = runs.end_run(tx, self._caller.id, self._record["id"], outcome, now_seconds)
        if ended and self._caller.auth == "session":  # a key's requests are stateless
            for role, text in (("user", self._record["goal"]), ("assistant", end.output or "")):
                if text.strip():
                    history.add_message(
                        tx, self._caller.id, run_id=self._record["id"], role=role, content=text, now_seconds=now_seconds
                    )
        return outcome

    def _outcome(self, end: End) -> runs.Outcome:
        names = ("prompt_tokens", "completion_tokens", "total_tokens")
        usage = {name: sum(turn.usage[name] for turn in self._turns) for name in names}
        cost_micros = sum(turn.cost_micros for turn in self._turns) + self._maker.cost_micros
        return runs.Outcome(end.status, self._progress.steps, usage, cost_micros, end.output, end.error, end.reason)

    def _note_fault(self, fault: BaseException) -> None:
        add_log_fields(self._request, level="error", error=describe(fault))


def _is_about_tools(error: ApiError) -> bool:
    told = f"{error} {error.error.get('param')}"
    return error.code == "upstream_error" and re.search(r"(?i)\btools?\b|tool[_-]|\bfunctions?\b", told) is not None


def _tools_refused(error: ApiError) -> ApiError:
    message = f"The model refused the tools of this run: {error} Choose a model with function calling, or send 'tools': []."
    return ApiError("upstream_error", error={**error.error, "message": message})


def _goal(body: dict[str, Any]) -> str:
    goal = body.get("goal")
    if goal is None:
        raise ApiError("missing_field", "goal is required: what the agent is to reach.", param="goal")
    if not isinstance(goal, str) or not goal.strip():
        raise ApiError("invalid_value", "goal must be a string that is not blank.", param="goal")
    return goal


def _max_steps(body: dict[str, Any]) -> int:
    steps = body.get("max_steps")
    if steps is None:
        return _DEFAULT_STEPS
    if type(steps) is not int or not 1 <= steps <= _MOST_STEPS:
        raise ApiError("invalid_value", f"max_steps must be a whole number from 1 to {_MOST_STEPS}.", param="max_steps")
    return steps


def _tools(body: dict[str, Any], offered: list[str]) -> list[str]:
    names = body.get("tools")
    if names is None:
        return offered
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ApiError("invalid_value", "tools must be a list of names.", param="tools")
    for name in names:
        if name not in offered:
            raise ApiError("invalid_value", f"There is no tool {name[:100]!r} here, only {', '.join(offered)}.", param="tools")
    return [name for name in offered if name in names]


@describes("Agents", "listRuns", "List the runs", answers={200: Answer("A page of runs.", RUN_LIST)}, paged=True)
async def list_runs(request: Request[State], caller: Caller) -> Response:
    """The account's runs, newest first."""
    limit, after = page_limit(request), page_after(request)
    return listing(await request.state.db.read(runs.runs_page, caller.id, limit, after), runs.shown)


@describes("Agents", "getRun", "Show one run", parameters=[_RUN_ID], answers={200: Answer("The run.", RUN)}, errors=[_NOT_FOUND])
async def show_run(request: Request[State], caller: Caller) -> Response:
    return reply(runs.shown(await request.state.db.read(runs.run_by_id, caller.id, request.path_params["run_id"])))


@describes(
    "Agents",
    "stopRun",
    "Stop a run",
    "Its stream ends with `stopped`, reason `requested`.",
    parameters=[_RUN_ID],
    answers={202: Answer("It is being stopped.", RUN, {**RUN.example, "status": "running", "output": None, "finished_at": None})},
    errors=[_NOT_FOUND, Refusal("already_ended", "This run has ended already.", when="The run has ended already.")],
)
async def stop_run(request: Request[State], caller: Caller) -> Response:
    """202; the run's stream ends with `stopped`, `requested`. 409 `already_ended`."""
    run_id = request.path_params["run_id"]
    row = await request.state.db.read(runs.run_by_id, caller.id, run_id)
    if row["status"] != "running":
        raise ApiError("already_ended", "This run has ended already.")
    interrupt = request.state.open_runs.get(run_id)
    if interrupt is not None:
        interrupt("requested")
    return reply(runs.shown(row), 202)
