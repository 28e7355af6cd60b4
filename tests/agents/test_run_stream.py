"""How a run ends, moment by moment: one ending, stored before it is sent; and the loop's own bounds."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from svc import retry
from svc.agents import loop
from svc.agents.loop import Deltas, Events, Progress
from svc.agents.run import AgentRun, RunOrder
from svc.agents.run_records import RunOutcome
from svc.errors import ApiError
from svc.metrics import Metrics
from svc.server.sse import Drain, EventStream, Interrupt
from tests.agents.test_loop import PlayedCall, asking, call
from tests.server.test_sse import Caller
from tests.support.cases import each
from tests.support.waiting import run_ready, until

USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


ORDER = RunOrder("goal", "", SimpleNamespace(id="lab/model"), {}, {}, 6, None, False)  # type: ignore[arg-type]


class Run(AgentRun):
    """A run whose parts a test decides: `play` yields its events, and each try to store may wait, fail or succeed."""

    def __init__(
        self,
        play: Callable[["Run"], AsyncGenerator[dict[str, Any], None]],
        *,
        store_faults: Sequence[Exception] = (),
        open_fault: Exception | None = None,
        waits_in: str = "",
    ) -> None:
        self.id, self.interrupt, self.progress, self._order = "run_1", Interrupt(), Progress(), ORDER
        self._progress, self.play, self.open_fault = self.progress, play, open_fault
        self.store_faults, self.waits_in = list(store_faults), waits_in
        self._calls, self._state = [self], SimpleNamespace(metrics=Metrics())  # type: ignore[list-item, assignment]
        self._add_log_fields = lambda **fields: None
        self.gate = asyncio.Event()  # what waits in `_open` or `end_with` waits for it
        self.log: list[Any] = []
        self.faults: list[BaseException] = []

    usage = USAGE  # of its call, which it is, too

    async def _ask(self, messages: Any) -> Any:
        return None

    def _events(self, messages: Any, first: Any) -> AsyncGenerator[Events, None]:
        return one_by_one(self.play(self))

    async def _open(self, first: Any) -> None:
        self.log.append("opening")
        if self.waits_in == "opened":
            await self.gate.wait()
        if self.open_fault:
            raise self.open_fault

    def _decided(self) -> None:
        self.log.append("decided")

    def note_early_end(self, *, of_caller: bool) -> None:
        pass

    async def end_with(self, record: Any) -> RunOutcome:
        self.log.append("storing")
        if self.waits_in == "store":
            await self.gate.wait()
        if self.store_faults:
            raise self.store_faults.pop(0)
        self.log.append(self._end)
        return self._outcome(self._end)

    def _outcome(self, end: RunOutcome) -> RunOutcome:
        return RunOutcome(end.status, self.progress.steps, USAGE, 7, end.output, end.error, end.reason)

    def note_fault(self, fault: BaseException) -> None:
        self.faults.append(fault)

    async def served(self, caller: Caller, drain: Drain | None = None) -> None:
        stream = EventStream(
            self.blocks(),
            drain=drain or Drain(),
            interrupt=self.interrupt,
            closing=lambda error: b"closed\n\n",
            on_fault=self.note_fault,
        )
        await stream({"method": "POST", "svc": caller.context}, caller.receive, caller.send)

    @property
    def stored(self) -> list[RunOutcome]:
        return [entry for entry in self.log if isinstance(entry, RunOutcome)]


async def one_by_one(events: AsyncGenerator[Any, None]) -> AsyncGenerator[Events, None]:
    async with contextlib.aclosing(events):
        async for event in events:
            yield [event] if isinstance(event, dict) else event


def events_in(body: bytes) -> list[dict[str, Any]]:
    """The events of a stream; checks that `seq` is whole and that exactly the last one ends it."""
    found: list[dict[str, Any]] = [orjson.loads(block.removeprefix(b"data: ")) for block in body.split(b"\n\n")[:-1]]
    assert [event["seq"] for event in found] == list(range(1, len(found) + 1))
    assert {event["run_id"] for event in found} == {"run_1"}
    assert [event["type"] in ("final", "error", "stopped") for event in found] == [False] * (len(found) - 1) + [True]
    return found


async def answers(run: Run) -> AsyncGenerator[dict[str, Any], None]:
    run.progress.steps = 1
    yield {"type": "step", "step": 1}
    run.progress.output = "done"


async def waits(run: Run) -> AsyncGenerator[dict[str, Any], None]:
    yield {"type": "step", "step": 1}
    await asyncio.sleep(60)


async def talks(run: Run) -> AsyncGenerator[dict[str, Any], None]:
    while True:
        yield {"type": "delta", "text": "x" * 1000}


async def breaks(run: Run) -> AsyncGenerator[dict[str, Any], None]:
    yield {"type": "step", "step": 1}
    raise RuntimeError("a secret")


async def yields_what_cannot_be_written(run: Run) -> AsyncGenerator[dict[str, Any], None]:
    yield {"type": "step", "step": 1}
    yield {"type": "tool_call", "arguments": object()}


@each(
    ("play", "last"),
    [
        (answers, {"type": "final", "output": "done", "finish_reason": None, "artifacts": []}),
        (breaks, {"type": "error"}),
        (yields_what_cannot_be_written, {"type": "error"}),
    ],
)
async def test_any_end_is_stored_and_then_sent_once(play: Any, last: dict[str, Any]) -> None:
    run, sent = Run(play), []
    async for block in run.blocks():
        sent.append((block, list(run.stored)))
    found = events_in(b"".join(block for block, _ in sent))
    assert found[-1] == {**found[-1], **last, "usage": USAGE, "cost_micros": 7}
    assert [stored for _, stored in sent[:-1]] == [[]] * (len(sent) - 1) and len(sent[-1][1]) == 1
    assert b"secret" not in sent[-1][0] and bool(run.faults) is (last["type"] == "error")


async def test_texts_of_one_read_are_numbered_ascii_events() -> None:
    together = [["one", " two"], [], ['"\n\n', "\u2028 \u00e4"], ["\ud83d", "\ude00"], ["three"]]

    async def texts(run: Run) -> AsyncGenerator[Deltas, None]:
        for some in together:
            yield Deltas(some)

    blocks = b"".join([block async for block in Run(texts).blocks()]).decode("ascii").split("\n\n")[:-2]  # type: ignore[arg-type]
    told = [text for some in together for text in some]
    assert [json.loads(block.removeprefix("data: ")) for block in blocks] == [
        {"type": "delta", "run_id": "run_1", "seq": seq, "text": text} for seq, text in enumerate(told, 1)
    ]


async def test_refused_run_is_raised_and_not_stored() -> None:
    run, caller = Run(answers, open_fault=ApiError("insufficient_funds")), Caller()
    with pytest.raises(ApiError, match="wallet"):
        await run.served(caller)
    assert run.stored == [] and caller.messages == []


@each("reason", ["requested", "shutdown", "account_deleted", "client_disconnected"])
@each("play", [waits, talks])
async def test_an_interrupt_at_any_moment_ends_the_run_with_its_reason(play: Any, reason: str) -> None:
    for turns in range(12):
        run, caller = Run(play), Caller()
        task = asyncio.create_task(run.served(caller))
        for _ in range(turns):
            await asyncio.sleep(0)
        await until(lambda run=run: run.log)  # type: ignore[misc]
        run.interrupt(reason)
        with contextlib.suppress(ApiError):  # before the first event there is no stream yet
            await asyncio.wait_for(task, 5)
        assert [(end.status, end.reason) for end in run.stored] == [("stopped", reason)]
        if caller.body:
            assert events_in(caller.body)[-1]["reason"] == reason


@each("reason", ["requested", "shutdown", "account_deleted"])
async def test_an_interrupt_while_the_end_is_stored_changes_nothing(reason: str) -> None:
    run, caller = Run(answers, waits_in="store"), Caller()
    task = asyncio.create_task(run.served(caller))
    await until(lambda: "storing" in run.log)
    run.interrupt(reason)
    await run_ready()
    run.gate.set()
    await asyncio.wait_for(task, 5)
    assert run.stored == [RunOutcome("final", output="done")] and events_in(caller.body)[-1]["type"] == "final"


async def test_an_interrupt_while_the_beginning_is_stored_ends_the_record_too() -> None:
    run, caller = Run(answers, waits_in="opened"), Caller()
    task = asyncio.create_task(run.served(caller))
    await until(lambda: run.log)
    run.interrupt("shutdown")
    with pytest.raises(ApiError, match="shutting down"):
        await asyncio.wait_for(task, 5)
    assert run.stored == [RunOutcome("stopped", reason="shutdown")] and caller.body == b""


@each("play", [talks, answers, waits])
async def test_interrupt_with_a_stalled_reader_stores_the_end_and_loses_no_event(play: Any) -> None:
    run, caller = Run(play), Caller(stalled=True)
    task = asyncio.create_task(run.served(caller))
    await run_ready()
    assert caller.body == b"" and not task.done()
    run.interrupt("requested")
    await until(lambda: run.stored)
    assert [end.status for end in run.stored] == ["stopped"] and caller.body == b""
    caller.readable.set()
    await asyncio.wait_for(task, 5)
    found = events_in(caller.body)
    assert len(found) > 1 and found[-1]["reason"] == "requested"


async def test_interrupt_during_the_last_event_adds_nothing() -> None:
    run, caller = Run(answers), Caller()
    caller_reads_until_the_end_is_stored = run._store

    async def store() -> None:
        caller.readable.clear()
        await caller_reads_until_the_end_is_stored()

    run._store = store  # type: ignore[method-assign]
    task = asyncio.create_task(run.served(caller))
    await until(lambda: run.stored)
    await run_ready()
    run.interrupt("shutdown")
    await run_ready()
    caller.readable.set()
    await asyncio.wait_for(task, 5)
    assert events_in(caller.body)[-1]["type"] == "final" and len(run.stored) == 1


async def test_undetected_disconnect_ends_the_run() -> None:
    run = Run(waits)
    blocks = run.blocks()
    await anext(blocks)
    await blocks.aclose()
    assert run.stored == [RunOutcome("stopped", reason="client_disconnected")]


async def test_foreign_cancellation_stores_the_end_and_is_raised() -> None:
    run, caller = Run(waits, waits_in="store"), Caller()
    task = asyncio.create_task(run.served(caller))
    await until(lambda: caller.body)
    task.cancel()
    await until(lambda: "storing" in run.log)
    task.cancel()
    await run_ready()
    run.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    assert run.stored == [RunOutcome("stopped", reason="shutdown")]


# --- deadlines


async def drips(run: Run) -> AsyncGenerator[str, None]:
    while True:
        await run_ready()
        yield "drip "


async def floods(run: Run) -> AsyncGenerator[str, None]:
    while True:
        yield "flood "


async def never_answers(run: Run) -> AsyncGenerator[str, None]:
    await asyncio.sleep(60)
    yield ""


def played(run: Run, max_steps: int, ask: Any, call_tool: Any) -> AsyncGenerator[Any, None]:
    async def ask_now(messages: list[dict[str, Any]]) -> Any:
        return ask(messages)

    return loop.run(
        [],
        max_steps=max_steps,
        ask=ask_now,
        call_tool=call_tool,
        progress=run.progress,
        interrupt=run.interrupt,
        opening={"type": "started"},
    )


@each("stalled", [False, True])
@each("texts", [drips, floods, never_answers])
@each("limit", ["STEP_SECONDS", "RUN_SECONDS"])
async def test_endless_model_is_cut_by_step_and_run_deadlines(
    texts: Any, limit: str, stalled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, limit, 0.1)
    turn = PlayedCall(lambda: texts(None))

    def play(run: Run) -> AsyncGenerator[Any, None]:
        return played(run, 1, lambda _: turn, None)

    run, caller = Run(play), Caller()
    task = asyncio.create_task(run.served(caller))
    await until(lambda: caller.body)
    if stalled:
        caller.readable.clear()
    await until(lambda: run.stored)
    caller.readable.set()
    await asyncio.wait_for(task, 5)
    last = events_in(caller.body)[-1]
    assert (last["type"], last["error"]["code"]) == ("error", "upstream_timeout") and len(run.stored) == 1
    assert turn.log == ["reserved", "closed"]


async def test_run_ends_at_its_deadline_with_steps_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "RUN_SECONDS", 0.1)

    async def slow(name: str, arguments: dict[str, Any]) -> Any:
        await asyncio.sleep(60)

    turns = [asking(call("slow", "{}")), PlayedCall(lambda: never_answers(None))]  # type: ignore[arg-type]

    def play(run: Run) -> AsyncGenerator[Any, None]:
        asked = iter(turns)
        return played(run, 2, lambda _: next(asked), slow)

    run, caller = Run(play), Caller()
    await run.served(caller)
    assert events_in(caller.body)[-1]["error"]["code"] == "upstream_timeout" and turns[0].log[-1] == "settled"


# --- storage that cannot take the end


async def test_end_stored_at_the_second_try_is_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_PAUSE_SECONDS", 0.01)
    run, caller = Run(answers, store_faults=[ApiError("storage_unavailable")]), Caller()
    await run.served(caller)
    assert events_in(caller.body)[-1]["type"] == "final" and run.stored == [RunOutcome("final", output="done")]


async def test_end_that_cannot_be_stored_is_an_error_stored_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(retry, "_LATER_SECONDS", 0.02)
    faults: list[Exception] = [ApiError("storage_unavailable") for _ in range(6)]
    run, caller = Run(answers, store_faults=faults), Caller()
    await run.served(caller)
    last = events_in(caller.body)[-1]
    assert last["type"] == "error" and last["error"]["code"] == "storage_unavailable"
    assert last["steps"] == 1 and last["usage"] == USAGE and run.stored == []
    await until(lambda: run.stored)
    await asyncio.sleep(0.05)
    assert run.stored == [RunOutcome("error", error=last["error"])] and run.log.count("storing") == 7


async def test_closed_database_ends_the_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(retry, "_LATER_SECONDS", 0.01)
    faults: list[Exception] = [ApiError("storage_unavailable")] * 3 + [ApiError("shutting_down")]
    run = Run(answers, store_faults=faults)
    await run.served(Caller())
    await until(lambda: not run.store_faults)
    await asyncio.sleep(0.05)
    assert run.log.count("storing") == 4 and run.stored == []


async def test_invalid_end_is_stored_as_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_PAUSE_SECONDS", 0.01)
    run, caller = (
        Run(answers, store_faults=[UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")]),
        Caller(),
    )
    await run.served(caller)
    last = events_in(caller.body)[-1]
    assert last["error"]["code"] == "internal_error" and run.stored == [RunOutcome("error", error=last["error"])]
