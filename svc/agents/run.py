"""One agent run: joins the loop to the tools, the record and the wallet, and makes a stream of its events.

blocks() -> one transaction: the record and the first hold (402, 404) -> the loop's events; each step is settled
together with the progress of the run -> their end (answer, fault, interrupt, bug), stored with the last settlement
before it is sent

If the end cannot be stored, the run has failed: the caller sees an error, and the record shows it once there is room.
"""

import asyncio
import contextlib
import re
import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import orjson

from svc import quota
from svc.agents import loop, run_records
from svc.agents.loop import Events
from svc.agents.run_records import RunOutcome
from svc.agents.run_stream import EventWriter
from svc.agents.tools.account import file_fields
from svc.agents.tools.registry import AgentTool, ToolContext
from svc.agents.tools.sources import NUMBERED, STORED_BYTES, sources_of
from svc.content import artifacts, history
from svc.content.given_files import GivenFiles
from svc.errors import ApiError, describe
from svc.ids import new_id
from svc.inference.answer.token_usage import input_tokens
from svc.inference.catalog import Model
from svc.inference.chat_call import ChatCall
from svc.inference.claim import Claim
from svc.inference.context_fit import ContextFit
from svc.inference.field_support import RETURNED
from svc.inference.model_call import ModelCall, Payer
from svc.inference.sent_body import CallerFormat
from svc.json_text import AT_ONCE_BYTES
from svc.retry import retry_write
from svc.server.sse import Interrupt, LastBlock
from svc.server.state import OpenRun, State

_TOOLS = re.compile(r"(?i)\btools?\b|tool[_-]|\bfunctions?\b")
_STORE_TRIES = 3
_FORMAT = CallerFormat(summary=None)  # a run shows no reasoning


class RunOrder(NamedTuple):
    """A checked request for a run. A `remembered` run becomes part of the account's memory. The model gets the files
    `given` before the goal.
    """

    goal: str
    instructions: str
    model: Model
    media_models: Mapping[str, Model]
    tools: dict[str, AgentTool]
    max_steps: int
    project_id: str | None
    remembered: bool
    given: GivenFiles | None = None


class AgentRun:
    """A run from its beginning to its one end. `add_log_fields` adds to the request's log line. `claim` is that of
    the request's Idempotency-Key.

    After its end it is in no reference cycle, because the garbage collector would free its texts late.
    """

    def __init__(
        self,
        state: State,
        payer: Payer,
        order: RunOrder,
        add_log_fields: Callable[..., None],
        claim: Claim | None = None,
    ) -> None:
        self.id = new_id("run", state.clock())
        self.interrupt = Interrupt()
        self._state = state
        self._payer = payer
        self._order = order
        self._add_log_fields = add_log_fields
        self._claim = claim
        self._progress = loop.Progress()
        self._calls: list[ChatCall] = []  # all except the last are settled
        self._paid_calls: list[ModelCall] = []
        self._inner_steps: loop.InnerSteps = asyncio.Queue()
        self._fit = ContextFit(state.engines.context_lengths, payer.account_id)
        self._sources = sources_of(order.given)

    async def blocks(self) -> AsyncGenerator[bytes, None]:
        """Yield the run as blocks of an event stream. An exception before the first block is an ordinary HTTP error.

        The end is always stored. After a cancellation that is not the interrupt's, the last block is not sent.
        """
        order = self._order
        messages = [{"role": "system", "content": order.instructions}, {"role": "user", "content": order.goal}]
        if order.given:
            messages = order.given.among(messages)
        first = await self._ask(messages)
        try:
            await self._open(first)
        except asyncio.CancelledError:
            await self._stored(self._stopped("shutdown"))  # the record may have been stored
            raise
        write = EventWriter(self.id, self._progress)
        cancelled: BaseException | None = None
        context = self._context()
        try:
            async with contextlib.aclosing(self._events(messages, first, context)) as events:
                async for together in events:
                    yield write(together)
            output = self._progress.output
            end = RunOutcome("stopped", reason="max_steps") if output is None else RunOutcome("final", output=output)
        except asyncio.CancelledError as error:
            end, cancelled = self._stopped("shutdown"), None if self.interrupt.reason else error
        except GeneratorExit as exit_:
            end, cancelled = self._stopped("client_disconnected"), exit_
        except ApiError as error:
            end = RunOutcome("error", error=self._error(error))
        except Exception as error:
            end = self._failed(error)
        context.close()
        outcome = await self._stored(end)
        if cancelled is not None:
            raise cancelled
        try:
            yield LastBlock(write([run_records.last_event({**outcome._asdict(), **self._progress.of_last_event})]))
        except asyncio.CancelledError:
            if self.interrupt.reason is None:
                raise
            # The stream ends with the block above.

    def _events(
        self, messages: list[dict[str, Any]], first: ChatCall, context: ToolContext
    ) -> AsyncGenerator[Events, None]:
        order = self._order

        async def ask(messages: list[dict[str, Any]]) -> ChatCall:
            return await self._ask(messages) if self._progress.steps > 1 else first

        return loop.run(
            messages,
            max_steps=order.max_steps,
            ask=ask,
            call_tool=context.call,
            inner_steps=self._inner_steps,
            rules=loop.Rules(by_others=context.is_by_others),
            progress=self._progress,
            interrupt=self.interrupt,
            opening=[
                {
                    "type": "started",
                    "model": order.model.id,
                    "max_steps": order.max_steps,
                    "tools": list(order.tools),
                }
            ],
        )

    def _stopped(self, reason: str) -> RunOutcome:
        """Return the end of a run by its interrupt, or without one for this `reason`."""
        reason = self.interrupt.reason or reason
        if reason == loop.TIMEOUT:
            text = "The model took too long for a step of the agent, or the run for all of them."
            return RunOutcome("error", error=ApiError("upstream_timeout", text).error)
        return RunOutcome("stopped", reason=reason)

    def _failed(self, bug: Exception) -> RunOutcome:
        self.note_fault(bug)
        return RunOutcome("error", error=ApiError("internal_error").error)

    def note_fault(self, fault: BaseException) -> None:
        self._add_log_fields(level="error", error=describe(fault))

    def _context(self) -> ToolContext:
        state, order, payer = self._state, self._order, self._payer
        return ToolContext(
            tools=order.tools,
            home=artifacts.Home(payer.account_id, order.project_id, self.id),
            payer=payer,
            engines=state.engines,
            media=state.media,
            media_models=order.media_models,
            places=state.tool_places,
            paid_calls=self._paid_calls,
            also=self._update_in,
            interrupt=self.interrupt,
            on_fault=self.note_fault,
            pools=state.process_pools,
            on_inner_step=self._inner_steps.put_nowait,
            sources=self._sources,
        )

    async def _ask(self, messages: list[dict[str, Any]]) -> ChatCall:
        body: dict[str, Any] = {"model": self._order.model.id, "messages": list(messages), "stream": True}
        if self._order.tools:
            body["tools"] = [tool.as_function for tool in self._order.tools.values()]
        heavy = sum(len(message["content"] or "") for message in messages) > AT_ONCE_BYTES
        model, engines, payer = self._order.model, self._state.engines, self._payer
        about: dict[str, Any] = {"added": RETURNED, "ours": ("tools",), "heavy": heavy, "format": _FORMAT}
        about["fit"] = self._fit
        make = partial(ChatCall, model, body, engines, payer, **about)
        call = await self._state.offload.run(payer.account_id, make) if heavy else make()
        call.also = self._update_in
        self._calls.append(call)
        return call

    # --- the record

    async def _open(self, first: ChatCall) -> None:
        order, account_id = self._order, self._payer.account_id
        record = {"id": self.id, "goal": order.goal, "model": order.model.id, "max_steps": order.max_steps}

        def open_in(tx: sqlite3.Connection) -> None:
            run_records.add_run(tx, account_id, {**record, "project_id": order.project_id}, self._state.clock())
            remembered_bytes = len(order.goal.encode("utf-8", "replace")) + first.most_bytes if order.remembered else 0
            sources_bytes = STORED_BYTES if order.given or not NUMBERED.isdisjoint(order.tools) else 0
            most_bytes = first.most_bytes + remembered_bytes + run_records.EVENTS_BYTES + sources_bytes
            quota.reserve(tx, account_id, self.id, 2 * quota.ROW_BYTES + most_bytes)
            first.reserve_in(tx)
            if self._claim is not None:
                self._claim.start_run_in(tx, self.id)

        # A run can be stopped as soon as it is in the list.
        self._state.open_runs[self.id] = OpenRun(self.interrupt, self._progress.events)
        try:
            await self._state.db.write(open_in)
        except Exception:
            self._decided()
            raise
        if self._claim is not None:
            self._claim.started_run(self.id)

    def _decided(self) -> None:
        self._state.open_runs.pop(self.id, None)

    async def _stored(self, end: RunOutcome) -> RunOutcome:
        """Store the end despite cancellations. One that is not the interrupt's is raised afterwards."""
        self._decided()
        self._end = end
        if end.status != "final":
            self._calls[-1].note_early_end(of_caller=Interrupt(end.reason).is_of_caller)
        try:
            await retry_write(self._store, self._note_refusal, tries=_STORE_TRIES)
        except ApiError:
            pass  # the caller sees the error now, and the record gets it once there is room
        except asyncio.CancelledError:
            if self.interrupt.reason is None:
                raise
        return self._outcome(self._end)

    def _note_refusal(self, error: ApiError) -> None:
        self._add_log_fields(level="error", **error.log_fields)
        self._end = RunOutcome("error", error=error.error)
        self._calls[-1].note_early_end(of_caller=False)

    async def _store(self) -> None:
        try:
            outcome = await self._calls[-1].end_with(self._store_in)
        except ApiError:
            raise
        except Exception as error:  # an end that can never be stored
            self._end = self._failed(error)
            raise ApiError("internal_error") from error
        self._state.metrics.runs.add(outcome.status, outcome.reason or "")
        self._add_log_fields(
            run=self.id,
            model=self._order.model.id,
            run_status=outcome.status,
            input_tokens=outcome.usage["prompt_tokens"],
            output_tokens=outcome.usage["completion_tokens"],
            cached_input_tokens=sum(input_tokens(call.usage).cached for call in self._calls),
            cost_micros=outcome.cost_micros,
        )

    def _store_in(self, tx: sqlite3.Connection) -> RunOutcome:
        account_id, now_seconds = self._payer.account_id, self._state.clock()
        quota.release(tx, account_id, self.id)
        made = artifacts.artifacts_of_run(tx, account_id, self.id)
        self._progress.artifacts = [file_fields(artifact) for artifact in made]
        outcome = self._outcome(self._end)
        kept = self._kept_events(outcome.output or "")
        ended = run_records.update_run(tx, account_id, self.id, outcome, now_seconds, kept)
        if ended and self._order.remembered:
            for role, text in (("user", self._order.goal), ("assistant", outcome.output or "")):
                if text.strip():
                    history.add_message(
                        tx, account_id, run_id=self.id, role=role, content=text, now_seconds=now_seconds
                    )
        return outcome

    def _update_in(self, tx: sqlite3.Connection) -> None:
        outcome = self._outcome(RunOutcome("running"))
        run_records.update_run(tx, self._payer.account_id, self.id, outcome, self._state.clock(), self._kept_events())

    def _kept_events(self, output: str = "") -> bytes:
        done = self._progress
        own = {"seq": done.seq + 1, **done.of_last_event, "sources": self._sources.stored(output)}
        return b"\n".join([orjson.dumps(own), *done.events])

    def _outcome(self, end: RunOutcome) -> RunOutcome:
        used = [call.usage for call in self._calls]
        usage = {
            name: sum([one[name] for one in used]) for name in ("prompt_tokens", "completion_tokens", "total_tokens")
        }
        # Calls that were cut short count.
        cost_micros = sum([call.cost_micros for call in [*self._calls, *self._paid_calls]])
        return end._replace(steps=self._progress.steps, usage=usage, cost_micros=cost_micros)

    def _error(self, error: ApiError) -> dict[str, Any]:
        """Return the error object for the caller, with a hint if the model may have no function calling."""
        about = f"{error} {error.error.get('param')}"
        if (
            self._progress.steps > 1
            or not self._order.tools
            or error.code != "upstream_error"
            or not _TOOLS.search(about)
        ):
            return error.error
        hint = "Choose a model with function calling, or send 'tools': []."
        return {**error.error, "message": f"The model refused the tools of this run: {error} {hint}"}
