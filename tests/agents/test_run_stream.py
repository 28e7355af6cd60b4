"""How a run ends, moment by moment: one ending, stored before it is sent."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from svc.agents import loop
from svc.agents.run_records import EVENTS_BYTES
from svc.agents.run_stream import EventWriter
from svc.billing import wallet
from svc.config import Config
from svc.server.http.head import Context, joined
from tests.conftest import Clocks, Service, bearer, serving
from tests.server.test_sse import Caller
from tests.support.agent_runs import ENDS, RUN, agrees
from tests.support.cases import each
from tests.support.full_disk import full_disk
from tests.support.loop_clock import advance_loop
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact
from tests.support.waiting import run_ready, until

PAUSES = "lab/waits-after-3-chunks"  # until the test releases it
WAITS, TALKS, ANSWERS = "say hi\nwait 60000", "repeat 20000 say " + "x" * 1000, "say done"


class RunCaller(Caller):
    """A client of one run, which reads when the test lets it. It notes what is stored when it gets the last event.

    `stalls_at`: it stops reading before the event with these bytes. `fails_at`: its connection fails there.
    """

    def __init__(
        self,
        lab: "Lab",
        body: dict[str, Any],
        *,
        stalled: bool = False,
        stalls_at: bytes = b"\0",
        fails_at: bytes = b"\0",
    ) -> None:
        super().__init__(stalled)
        self._lab, self._body = lab, orjson.dumps(body)
        self._stalls_at, self._fails_at = stalls_at, fails_at
        host = lab.service.config.base_url.removeprefix("https://")
        sent = {"host": host, "content-type": "application/json", "content-length": str(len(self._body)), **lab.headers}
        self._head = [(name.encode(), value.encode()) for name, value in sent.items()]
        self.context = Context(joined(self._head))
        self.stored: list[str] = []

    async def receive(self) -> dict[str, Any]:
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def send(self, message: dict[str, Any]) -> None:
        block = message.get("body", b"")
        if self._fails_at in block:
            raise OSError("the connection failed")
        if self._stalls_at in block:
            self.readable.clear()
        if b'"type":"final"' in block or b'"type":"error"' in block or b'"type":"stopped"' in block:
            self.stored = self._lab.statuses()
        await super().send(message)

    async def served(self) -> None:
        scope = {"type": "http", "method": "POST", "path": RUN, "raw_path": RUN.encode(), "query_string": b""}
        scope |= {"headers": self._head, "svc": self.context, "http_version": "1.1", "scheme": "https", "root_path": ""}
        scope |= {"client": ("198.51.100.1", 1234), "server": ("127.0.0.1", 8443), "asgi": {"version": "3.0"}}
        await self._lab.service.app(scope, self.receive, self.send)

    @property
    def status(self) -> int:
        return next((message["status"] for message in self.messages if "status" in message), 0)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events; checks that `seq` is whole and that exactly the last one ends the run."""
        blocks = [block for block in self.body.split(b"\n\n")[:-1] if block != b": ping"]
        found: list[dict[str, Any]] = [orjson.loads(block.removeprefix(b"data: ")) for block in blocks]
        assert self.status == 200 and [event["seq"] for event in found] == list(range(1, len(found) + 1))
        assert [event["type"] in ENDS for event in found] == [False] * (len(found) - 1) + [True]
        return found


@dataclass
class Lab:
    """The service and an account, which plays a run at a time."""

    service: Service
    models: ModelServer
    headers: dict[str, str]
    reader: sqlite3.Connection

    def caller(self, goal: str, model: str = "builtin/script", max_steps: int = 3, **options: Any) -> RunCaller:
        self.service.clocks.advance(60)  # for the limit of runs a minute
        self.models.release.clear()
        return RunCaller(self, {"goal": goal, "model": model, "max_steps": max_steps}, **options)

    def statuses(self) -> list[str]:
        return [status for (status,) in self.reader.execute("SELECT status FROM runs ORDER BY id DESC")]

    @property
    def open_runs(self) -> dict[str, Any]:
        found: dict[str, Any] = self.service.state["open_runs"]
        return found

    async def interrupt_of(self, caller: RunCaller) -> Callable[[str], None]:
        """Return what ends the open run from outside."""
        await until(lambda: self.open_runs)
        (run,) = self.open_runs.values()
        interrupt: Callable[[str], None] = run.interrupt
        return interrupt

    async def record(self) -> dict[str, Any]:
        """Return the record of the newest run."""
        answer = await self.service.client.get("/v1/agents/runs?limit=1", headers=self.headers)
        path = f"/v1/agents/runs/{answer.json()['data'][0]['id']}"
        record: dict[str, Any] = (await self.service.client.get(path, headers=self.headers)).json()
        return record

    @asynccontextmanager
    async def writer_held(self) -> AsyncIterator[None]:
        """Let other writes wait during the block."""
        held, go_on = threading.Event(), threading.Event()
        writing = asyncio.ensure_future(self.service.state["db"].write(lambda tx: held.set() or go_on.wait(20)))
        await until(held.is_set)
        try:
            yield
        finally:
            go_on.set()
            await writing

    async def refuse_updates(self, status: str) -> None:
        """Let the database refuse to store a run with this status: no retry would help."""
        text = f"""
            CREATE TRIGGER refusal BEFORE UPDATE ON runs WHEN NEW.status = '{status}'
            BEGIN SELECT RAISE(ABORT, 'a secret'); END
        """
        await self.service.state["db"].write(lambda tx: tx.execute(text))


CATALOG = """
[[providers]]
name = "lab"
base_url = "%s"
[[providers.models]]
id = "waits-after-3-chunks"
input_micros_per_million_tokens = 1_000_000
"""


@pytest.fixture
async def lab(config: Config, clocks: Clocks) -> AsyncIterator[Lab]:
    async with ModelServer() as models, serving(config, clocks, CATALOG % models.base_url) as service:
        signed_up = await service.sign_up()
        book = (signed_up["user"]["id"], 1_000_000)
        await service.state["db"].write(wallet.book, *book, description="", now_seconds=clocks.now)
        path = config.data_dir / "service.db"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)) as reader:
            yield Lab(service, models, bearer(signed_up["access_token"]), reader)
        await until(lambda: not len(service.state["drain"]))
        assert_exact(path)


@asynccontextmanager
async def running(caller: RunCaller) -> AsyncIterator["asyncio.Task[None]"]:
    """Serve the caller during the block and until its answer ends."""
    task = asyncio.create_task(caller.served())
    try:
        yield task
    finally:
        await asyncio.wait([task], timeout=20)
        assert task.done()


@each(
    ("goal", "model", "last"),
    [
        (ANSWERS, "builtin/script", {"type": "final", "output": "done", "finish_reason": "stop", "artifacts": []}),
        ("Compute 6 * 7", "builtin/assistant-paid", {"type": "final"}),
        ("repeat 3 tool current_time {}\n---\n" * 3, "builtin/script", {"type": "stopped", "reason": "max_steps"}),
        ("say hi\nfail 500 no", "builtin/script", {"type": "error"}),
    ],
)
async def test_any_end_is_stored_and_then_sent_once(lab: Lab, goal: str, model: str, last: dict[str, Any]) -> None:
    caller = lab.caller(goal, model)
    await caller.served()
    assert caller.stored[0] == last["type"]
    assert caller.events[-1] == {**caller.events[-1], **last}
    assert agrees(caller.events[-1], await lab.record())


async def test_texts_are_numbered_ascii_events(lab: Lab) -> None:
    told = ["one", " two", '"\n\n', "\u2028 \u00e4", "three"]
    caller = lab.caller("\n".join(f"say {orjson.dumps(text).decode()}" for text in told))
    await caller.served()
    assert caller.body.isascii()
    assert "".join(event["text"] for event in caller.events if event["type"] == "delta") == "".join(told)


@each("reason", ["requested", "shutdown", "account_deleted", "client_disconnected"])
@each("goal", [WAITS, TALKS])
async def test_an_interrupt_at_any_moment_ends_the_run_with_its_reason(lab: Lab, goal: str, reason: str) -> None:
    for turns in range(0, 12, 3):
        caller = lab.caller(goal)
        async with running(caller):
            interrupt = await lab.interrupt_of(caller)
            await run_ready(turns)
            interrupt(reason)
        record = await lab.record()
        assert (record["status"], record["reason"]) == ("stopped", reason)
        if caller.status == 200:  # before the first event there is no stream yet
            assert agrees(caller.events[-1], record)


@each("reason", ["requested", "shutdown", "account_deleted"])
async def test_an_interrupt_while_the_end_is_stored_changes_nothing(lab: Lab, reason: str) -> None:
    caller = lab.caller("hi", PAUSES)
    async with running(caller):
        interrupt = await lab.interrupt_of(caller)
        await until(lambda: caller.body)
        async with lab.writer_held():
            lab.models.release.set()
            await until(lambda: not lab.open_runs)
            interrupt(reason)
            await run_ready()
    assert caller.events[-1]["output"] == "Hello, world!" and agrees(caller.events[-1], await lab.record())


async def test_an_interrupt_while_the_beginning_is_stored_ends_the_record_too(lab: Lab) -> None:
    caller = lab.caller(ANSWERS)
    async with lab.writer_held():
        task = asyncio.create_task(caller.served())
        (await lab.interrupt_of(caller))("shutdown")
        await run_ready()
    await asyncio.wait_for(task, 20)
    assert caller.status == 503 and b"shutting_down" in caller.body
    record = await lab.record()
    assert (record["status"], record["reason"]) == ("stopped", "shutdown")


@each("goal", [TALKS, ANSWERS, WAITS])
async def test_interrupt_with_a_stalled_reader_stores_the_end_and_loses_no_event(lab: Lab, goal: str) -> None:
    caller = lab.caller(goal, stalled=True)
    async with running(caller):
        interrupt = await lab.interrupt_of(caller)
        await until(lambda: caller.status)
        await run_ready()
        assert caller.body == b""
        interrupt("requested")
        await until(lambda: lab.statuses()[0] != "running")
        assert lab.statuses()[0] == "stopped" and caller.body == b""
        caller.readable.set()
    assert len(caller.events) > 1 and agrees(caller.events[-1], await lab.record())


async def test_paused_reader_misses_no_event(lab: Lab) -> None:
    caller = lab.caller("repeat 500 say some text", stalls_at=b'"seq":9,')
    async with running(caller):
        await until(lambda: not caller.readable.is_set())
        await run_ready()
        caller.readable.set()
    assert caller.events[-1]["output"] == "some text" * 500 and agrees(caller.events[-1], await lab.record())


async def test_interrupt_during_the_last_event_adds_nothing(lab: Lab) -> None:
    caller = lab.caller("hi", PAUSES, stalls_at=b'"final"')
    async with running(caller):
        interrupt = await lab.interrupt_of(caller)
        lab.models.release.set()
        await until(lambda: not caller.readable.is_set())
        interrupt("shutdown")
        await run_ready()
        caller.readable.set()
    assert caller.events[-1]["type"] == "final" and agrees(caller.events[-1], await lab.record())


async def test_connection_that_fails_ends_the_run(lab: Lab) -> None:
    caller = lab.caller(TALKS, fails_at=b'"seq":9,')
    with pytest.raises(OSError, match="the connection failed"):
        await caller.served()
    record = await lab.record()
    assert (record["status"], record["reason"]) == ("stopped", "client_disconnected")


async def test_foreign_cancellation_stores_the_end_and_is_raised(lab: Lab) -> None:
    caller = lab.caller(WAITS)
    task = asyncio.create_task(caller.served())
    await until(lambda: caller.body)
    async with lab.writer_held():
        task.cancel()
        await until(lambda: not lab.open_runs)
        task.cancel()
        await run_ready()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 20)
    record = await lab.record()
    assert (record["status"], record["reason"]) == ("stopped", "shutdown")


# --- deadlines


@each("stalled", [False, True])
@each("goal", ["repeat 20000 wait 60000", TALKS])
async def test_endless_model_is_cut_by_the_deadline_of_a_step(lab: Lab, goal: str, stalled: bool) -> None:
    caller = lab.caller(goal)
    async with running(caller):
        await until(lambda: caller.body)
        if stalled:
            caller.readable.clear()
        await run_ready()
        advance_loop(loop.STEP_SECONDS - 1)
        await run_ready()
        assert lab.open_runs
        advance_loop(2)
        await run_ready()
        await until(lambda: lab.statuses()[0] != "running")
        caller.readable.set()
    last = caller.events[-1]
    assert (last["type"], last["error"]["code"]) == ("error", "upstream_timeout")
    assert agrees(last, await lab.record())


async def test_run_ends_at_its_deadline_with_steps_left(lab: Lab) -> None:
    """Each step takes 9 minutes, of which the deadline of a step is 10 and that of the run 60."""
    caller = lab.caller("repeat 9 wait 60000\ntool current_time {}\n---\n" * 20, max_steps=20)
    passed_seconds = 0
    async with running(caller):
        await until(lambda: caller.body)
        while lab.open_runs:
            advance_loop(60)
            passed_seconds += 60
            await asyncio.sleep(0.005)
    last = caller.events[-1]
    assert (last["type"], last["error"]["code"]) == ("error", "upstream_timeout") and last["steps"] > 1
    assert loop.RUN_SECONDS <= passed_seconds < 2 * loop.RUN_SECONDS
    assert agrees(last, await lab.record())


# --- storage that cannot take the end


async def test_end_stored_at_the_second_try_is_unchanged(lab: Lab) -> None:
    caller = lab.caller("hi", PAUSES)
    async with running(caller):
        await until(lambda: caller.body)
        with full_disk():
            lab.models.release.set()
            await until(lambda: not lab.open_runs and not lab.service.state["db"].waiting()[0])
            await run_ready(200)
            assert lab.statuses()[0] == "running"
    assert caller.events[-1]["output"] == "Hello, world!" and agrees(caller.events[-1], await lab.record())


@each("refused", ["running", "final"])
async def test_invalid_state_is_stored_as_an_internal_error(lab: Lab, refused: str) -> None:
    """The state after a step, and the end."""
    await lab.refuse_updates(refused)
    caller = lab.caller("tool current_time {}\n---\nsay done")
    await caller.served()
    last = caller.events[-1]
    assert last["error"]["code"] == "internal_error" and b"a secret" not in caller.body
    assert agrees(last, await lab.record())
    await lab.service.state["db"].write(lambda tx: tx.execute("DROP TRIGGER refusal"))


@each("more_bytes", [0, 1])
def test_record_that_is_full_says_that_events_are_missing(more_bytes: int) -> None:
    """Also if the last event that is kept fills it to the byte."""
    progress = loop.Progress()
    writer = EventWriter("run_1", progress)
    empty = len(writer([{"type": "tool_call", "arguments": ""}]))
    for _ in range(EVENTS_BYTES // 100_000):
        writer([{"type": "tool_call", "arguments": "x" * (100_000 - empty)}])
    left = EVENTS_BYTES % 100_000 - 2 * empty - 1
    writer([{"type": "tool_call", "arguments": "x" * (left + more_bytes)}])
    writer([{"type": "step"}])
    *kept, last = progress.events
    assert last == b'{"type":"truncated"}' not in kept and len(kept) == EVENTS_BYTES // 100_000 + 2


@each(("length", "is_whole"), [(3_996, True), (3_997, False)])
def test_record_keeps_a_result_of_4000_characters_as_it_is(length: int, is_whole: bool) -> None:
    progress = loop.Progress()
    result = ["x" * length]
    EventWriter("run_1", progress)([{"type": "tool_result", "result": result}])
    (kept,) = map(orjson.loads, progress.events)
    assert kept["result"] == (result if is_whole else orjson.dumps(result).decode()[:4_000])
