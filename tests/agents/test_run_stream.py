"""How a run ends, moment by moment: one ending, stored before it is sent; and the loop's own bounds."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from svc import retry
from svc.agents.loop import Deltas, Progress
from svc.agents.run_stream import Record, run_blocks
from svc.agents.runs import RunOutcome
from svc.errors import ApiError
from svc.server.sse import Drain, EventStream, Interrupt
from tests.server.test_sse import Caller, until

USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


@dataclass
class Run:
    """A run whose parts a test decides: `play` yields its events, and each try to store may wait, fail or succeed."""

    play: Callable[["Run"], AsyncGenerator[dict[str, Any], None]]
    store_faults: list[Exception] = field(default_factory=list)
    open_fault: Exception | None = None
    progress: Progress = field(default_factory=Progress)
    interrupt: Interrupt = field(default_factory=Interrupt)
    gate: asyncio.Event = field(default_factory=asyncio.Event)  # what waits in `opened` or `store` waits for it
    waits_in: str = ""
    log: list[Any] = field(default_factory=list)
    faults: list[BaseException] = field(default_factory=list)

    async def opened(self) -> None:
        self.log.append("opening")
        if self.waits_in == "opened":
            await self.gate.wait()
        if self.open_fault:
            raise self.open_fault

    def decided(self) -> None:
        self.log.append("decided")

    async def store(self, end: RunOutcome) -> None:
        self.log.append("storing")
        if self.waits_in == "store":
            await self.gate.wait()
        if self.store_faults:
            raise self.store_faults.pop(0)
        self.log.append(end)

    def outcome(self, end: RunOutcome) -> RunOutcome:
        return RunOutcome(end.status, self.progress.steps, USAGE, 7, end.output, end.error, end.reason)

    def blocks(self) -> AsyncGenerator[bytes, None]:
        record = Record(self.opened, self.decided, self.store, self.outcome, self.faults.append)
        return run_blocks("run_1", one_by_one(self.play(self)), record=record, progress=self.progress, interrupt=self.interrupt)

    async def served(self, caller: Caller, drain: Drain | None = None) -> None:
        stream = EventStream(
            self.blocks(),
            drain=drain or Drain(),
            owner="user_1",
            interrupt=self.interrupt,
            closing=lambda error: b"closed\n\n",
            on_fault=self.faults.append,
        )
        await stream({"method": "POST"}, caller.receive, caller.send)

    @property
    def stored(self) -> list[RunOutcome]:
        return [entry for entry in self.log if isinstance(entry, RunOutcome)]


async def one_by_one(events: AsyncGenerator[dict[str, Any], None]) -> AsyncGenerator[list[dict[str, Any]], None]:
    async with contextlib.aclosing(events):
        async for event in events:
            yield [event]


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


@pytest.mark.parametrize(
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

    async def texts() -> AsyncGenerator[Deltas, None]:
        for some in together:
            yield Deltas(some)

    run = Run(answers)
    record = Record(run.opened, run.decided, run.store, run.outcome, run.faults.append)
    stream = run_blocks("run_1", texts(), record=record, progress=run.progress, interrupt=run.interrupt)
    blocks = b"".join([block async for block in stream]).decode("ascii").split("\n\n")[:-2]
    told = [text for some in together for text in some]
    assert [json.loads(block.removeprefix("data: ")) for block in blocks] == [
        {"type": "delta", "run_id": "run_1", "seq": seq, "text": text} for seq, text in enumerate(told, 1)
    ]


async def test_refused_run_is_raised_and_not_stored() -> None:
    run, caller = Run(answers, open_fault=ApiError("insufficient_funds")), Caller()
    with pytest.raises(ApiError, match="wallet"):
        await run.served(caller)
    assert run.stored == [] and caller.messages == []


@pytest.mark.parametrize("reason", ["requested", "shutdown", "account_deleted", "client_disconnected"])
@pytest.mark.parametrize("play", [waits, talks])
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


@pytest.mark.parametrize("reason", ["requested", "shutdown", "account_deleted"])
async def test_an_interrupt_while_the_end_is_stored_changes_nothing(reason: str) -> None:
    run, caller = Run(answers, waits_in="store"), Caller()
    task = asyncio.create_task(run.served(caller))
    await until(lambda: "storing" in run.log)
    run.interrupt(reason)
    await asyncio.sleep(0.01)
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


@pytest.mark.parametrize("play", [talks, answers, waits])
async def test_interrupt_with_a_stalled_reader_stores_the_end_and_loses_no_event(play: Any) -> None:
    run, caller = Run(play), Caller(stalled=True)
    task = asyncio.create_task(run.served(caller))
    await asyncio.sleep(0.02)
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
    caller_reads_until_the_end_is_stored = run.store

    async def store(end: RunOutcome) -> RunOutcome:
        caller.readable.clear()
        return await caller_reads_until_the_end_is_stored(end)

    run.store = store  # type: ignore[method-assign]
    task = asyncio.create_task(run.served(caller))
    await until(lambda: run.stored)
    await asyncio.sleep(0.01)
    run.interrupt("shutdown")
    await asyncio.sleep(0.01)
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
    await asyncio.sleep(0.01)
    run.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    assert run.stored == [RunOutcome("stopped", reason="shutdown")]


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
    run, caller = Run(answers, store_faults=[UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")]), Caller()
    await run.served(caller)
    last = events_in(caller.body)[-1]
    assert last["error"]["code"] == "internal_error" and run.stored == [RunOutcome("error", error=last["error"])]
