"""The event stream's own rules, driven through the ASGI interface: one ending whatever happens."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from svc.errors import ApiError, ClientGone
from svc.inference.claim import Claim
from svc.server.http.head import Context
from svc.server.sse import PING, Drain, EventStream, Interrupt, LastBlock
from tests.support.cases import each
from tests.support.loop_clock import advance_loop
from tests.support.waiting import run_ready, until


class Caller:
    """The other side of an ASGI application: what it was sent, and a `leave()`."""

    def __init__(self, stalled: bool = False, account_id: str = "user_1") -> None:
        self.messages: list[dict[str, Any]] = []
        self.context = Context({}, account_id=account_id)
        self.readable = asyncio.Event()
        if not stalled:
            self.readable.set()

    async def receive(self) -> dict[str, Any]:
        raise NotImplementedError("the body has been read")

    async def send(self, message: dict[str, Any]) -> None:
        if message.get("body"):
            await self.readable.wait()
        self.messages.append(message)

    def leave(self) -> None:
        self.context.disconnect()

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)


def closing(error: ApiError) -> bytes:
    return f"closed:{error.code}\n\n".encode()


def stream(events: AsyncGenerator[bytes, None], drain: Drain, **changes: Any) -> EventStream:
    settings = {
        "drain": drain,
        "interrupt": Interrupt(),
        "closing": closing,
        "on_fault": lambda error: None,
    }
    return EventStream(events, **{**settings, **changes})


async def run(response: EventStream, caller: Caller) -> None:
    await response({"method": "GET", "svc": caller.context}, caller.receive, caller.send)


async def test_blocks_are_sent_unchanged_with_stream_headers() -> None:
    async def events() -> AsyncGenerator[bytes, None]:
        yield b"one\n\n"
        yield b"two\n\n"

    caller = Caller()
    await run(stream(events(), Drain(), extra_headers={"x-service-run": "run_1"}), caller)
    headers = dict(caller.messages[0]["headers"])
    assert headers[b"content-type"] == b"text/event-stream" and headers[b"x-service-run"] == b"run_1"
    assert headers[b"cache-control"] == b"no-cache, no-store" and headers[b"x-accel-buffering"] == b"no"
    assert b"content-length" not in headers
    assert caller.body == b"one\n\ntwo\n\n" and caller.messages[-1]["more_body"] is False


async def test_last_block_is_sent_with_the_end_and_the_generator_closed() -> None:
    closed = []

    async def events() -> AsyncGenerator[bytes, None]:
        try:
            yield b"one\n\n"
            yield LastBlock(b"two\n\n")
        finally:
            closed.append(True)

    caller = Caller()
    await run(stream(events(), Drain()), caller)
    assert caller.body == b"one\n\ntwo\n\n" and closed
    assert [message["more_body"] for message in caller.messages[1:]] == [True, False]


async def test_error_before_the_first_block_is_raised() -> None:
    async def events() -> AsyncGenerator[bytes, None]:
        raise ApiError("model_not_found")
        yield b""

    caller = Caller()
    with pytest.raises(ApiError, match="no such model"):
        await run(stream(events(), Drain()), caller)
    assert caller.messages == []


async def test_interrupt_of_a_first_block_before_its_turn_sends_it_with_the_error() -> None:
    async def events() -> AsyncGenerator[bytes, None]:
        asyncio.get_running_loop().call_soon(
            interrupt, "shutdown"
        )  # while the block waits for the next turn of the event loop
        with contextlib.suppress(asyncio.CancelledError):
            yield b"x" * 2000
        raise ApiError("shutting_down")

    caller, interrupt = Caller(), Interrupt()
    await run(stream(events(), Drain(), interrupt=interrupt), caller)
    assert caller.messages[0]["status"] == 200
    assert caller.body == b"x" * 2000 + b"closed:shutting_down\n\n"


@each(("error", "code"), [(ApiError("upstream_error"), "upstream_error"), (ValueError("secret"), "internal_error")])
async def test_error_after_the_first_block_ends_the_stream_once(error: Exception, code: str) -> None:
    async def events() -> AsyncGenerator[bytes, None]:
        yield b"one\n\n"
        raise error

    caller, faults = Caller(), []
    await run(stream(events(), Drain(), on_fault=faults.append), caller)
    assert caller.body == f"one\n\nclosed:{code}\n\n".encode()
    assert caller.messages[-1]["more_body"] is False
    assert faults == ([] if isinstance(error, ApiError) else [error])


async def test_ping_is_sent_after_each_silence_and_not_earlier() -> None:
    turns: asyncio.Queue[bytes] = asyncio.Queue()

    async def events() -> AsyncGenerator[bytes, None]:
        while block := await turns.get():
            yield block

    async def passing(seconds: float) -> bytes:
        advance_loop(seconds)
        await run_ready()
        return caller.body

    caller = Caller()
    running = asyncio.create_task(run(stream(events(), Drain(), ping_seconds=100), caller))
    await run_ready()
    assert await passing(60) == b""
    assert await passing(40) == PING
    assert await passing(60) == PING
    assert await passing(40) == PING * 2
    await passing(60)
    turns.put_nowait(b"one\n\n")
    assert await passing(0) == await passing(60) == PING * 2 + b"one\n\n"
    sent = await passing(40)
    assert sent == PING * 2 + b"one\n\n" + PING
    turns.put_nowait(b"")
    await running
    assert await passing(1000) == sent and caller.messages[-1] == {
        "type": "http.response.body",
        "body": b"",
        "more_body": False,
    }


async def test_an_unread_ping_is_not_followed_by_another_after_twice_its_time() -> None:
    asked = asyncio.Event()

    async def events() -> AsyncGenerator[bytes, None]:
        await asked.wait()
        yield b"one\n\n"

    caller = Caller(stalled=True)
    running = asyncio.create_task(run(stream(events(), Drain(), ping_seconds=100), caller))
    await run_ready()
    for seconds in (100, 100, 250):
        advance_loop(seconds)
        await run_ready()
    caller.readable.set()
    await run_ready()
    assert caller.body == PING
    asked.set()
    await running
    assert caller.body == PING + b"one\n\n"


async def test_disconnect_cancels_the_generator_with_one_clean_up() -> None:
    cleaned = []

    async def events() -> AsyncGenerator[bytes, None]:
        try:
            yield b"one\n\n"
            await asyncio.sleep(60)
        finally:
            await run_ready()  # an await in the cleaning up is not cancelled again
            cleaned.append(True)

    caller, drain = Caller(), Drain()
    task = asyncio.create_task(run(stream(events(), drain), caller))
    await until(lambda: caller.body)
    caller.leave()
    await asyncio.wait_for(task, 5)
    assert cleaned == [True] and len(drain) == 0 and task.cancelling() == 0


async def test_disconnect_of_a_stalled_client_is_detected_while_sending() -> None:
    cleaned = []

    async def events() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield b"x" * 1000
        finally:
            cleaned.append(True)

    caller = Caller(stalled=True)
    task = asyncio.create_task(run(stream(events(), Drain()), caller))
    await run_ready()
    caller.leave()
    await asyncio.wait_for(task, 5)
    assert cleaned == [True]


@each("phase", ["waiting", "sending"])
async def test_an_interrupted_generator_may_yield_its_last_event(phase: str) -> None:
    interrupt = Interrupt()

    async def events() -> AsyncGenerator[bytes, None]:
        try:
            yield b"one\n\n"
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            yield f"stopped:{interrupt.reason}\n\n".encode()

    caller = Caller(stalled=phase == "sending")
    task = asyncio.create_task(run(stream(events(), Drain(), interrupt=interrupt), caller))
    await run_ready()
    interrupt("requested")
    interrupt("shutdown")  # the first reason stays
    await run_ready()
    caller.readable.set()
    await asyncio.wait_for(task, 5)
    assert caller.body.endswith(b"stopped:requested\n\n") and caller.body.count(b"stopped") == 1
    assert caller.messages[-1]["more_body"] is False


async def test_block_behind_an_unread_ping_is_sent_after_it() -> None:
    pinged, ready = asyncio.Event(), asyncio.Event()

    class Slow(Caller):
        async def send(self, message: dict[str, Any]) -> None:
            if message.get("body") == PING:
                self.readable.clear()
                pinged.set()
            await super().send(message)

    async def events() -> AsyncGenerator[bytes, None]:
        yield b"one\n\n"
        await ready.wait()
        yield b"two\n\n"

    caller = Slow()
    running = asyncio.create_task(run(stream(events(), Drain(), ping_seconds=0.01), caller))
    await pinged.wait()
    ready.set()
    await run_ready()
    caller.readable.set()
    await running
    assert caller.body == b"one\n\n" + PING + b"two\n\n"


@each("kind", [bytes, LastBlock])
async def test_interrupt_keeps_a_block_behind_an_unread_ping(kind: type[bytes]) -> None:
    interrupt, caller = Interrupt(), Caller(stalled=True)
    produced = asyncio.Event()

    async def events() -> AsyncGenerator[bytes, None]:
        await until(lambda: caller.messages)  # the ping
        produced.set()
        with contextlib.suppress(asyncio.CancelledError):
            yield kind(b"one\n\n")

    task = asyncio.create_task(run(stream(events(), Drain(), interrupt=interrupt, ping_seconds=0.01), caller))
    await produced.wait()
    await run_ready()
    interrupt("shutdown")
    await run_ready()
    caller.readable.set()
    await asyncio.wait_for(task, 5)
    assert caller.body == PING + b"one\n\n"
    assert caller.messages[-1]["more_body"] is False


async def test_drain_ends_each_stream_with_its_error() -> None:
    async def events() -> AsyncGenerator[bytes, None]:
        yield b"one\n\n"
        await asyncio.sleep(60)

    drain = Drain()
    callers = [Caller() for _ in range(20)]
    tasks = [asyncio.create_task(run(stream(events(), drain), caller)) for caller in callers]
    await until(lambda: all(caller.body for caller in callers))
    drain.begin()
    drain.begin()
    await asyncio.wait_for(asyncio.gather(*tasks), 5)
    assert {caller.body for caller in callers} == {b"one\n\nclosed:shutting_down\n\n"} and len(drain) == 0
    with pytest.raises(ApiError, match="shutting down"):
        await run(stream(events(), drain), Caller())


async def test_stream_that_is_made_is_sent_during_the_drain() -> None:
    gate = asyncio.Event()

    async def events(gate: asyncio.Event) -> AsyncGenerator[bytes, None]:
        yield b"one\n\n"
        await gate.wait()
        yield b"two\n\n"

    drain, callers = Drain(), [Caller() for _ in range(3)]
    begun = asyncio.create_task(run(stream(events(gate), drain, is_made=True), callers[0]))
    await until(lambda: callers[0].body)
    drain.begin()
    late = asyncio.create_task(run(stream(events(gate), drain, is_made=True), callers[1]))
    endless = asyncio.create_task(run(stream(events(asyncio.Event()), drain, is_made=True), callers[2]))
    await until(lambda: callers[1].body and callers[2].body)
    gate.set()
    await asyncio.wait_for(asyncio.gather(begun, late), 5)
    advance_loop(5)  # the grace time
    await asyncio.wait_for(endless, 5)
    assert [caller.body for caller in callers] == [b"one\n\ntwo\n\n"] * 2 + [b"one\n\nclosed:shutting_down\n\n"]


async def test_only_streams_of_the_deleted_account_end() -> None:
    async def events() -> AsyncGenerator[bytes, None]:
        yield b"one\n\n"
        await over.wait()

    over = asyncio.Event()
    drain, mine, theirs = Drain(), Caller(account_id="me"), Caller(account_id="they")
    tasks = [asyncio.create_task(run(stream(events(), drain), caller)) for caller in (mine, theirs)]
    await until(lambda: mine.body and theirs.body)
    drain.end_all_of("me", "account_deleted")
    await asyncio.wait_for(tasks[0], 20)
    over.set()
    await asyncio.wait_for(tasks[1], 20)
    assert mine.body == b"one\n\nclosed:invalid_api_key\n\n" and theirs.body == b"one\n\n"


async def test_producer_without_waits_does_not_block_the_loop() -> None:
    async def events() -> AsyncGenerator[bytes, None]:
        for _ in range(300_000):
            yield b"data: {}\n\n"

    lateness = []

    async def tick() -> None:
        while True:
            began = time.thread_time()
            await asyncio.sleep(0.01)
            lateness.append(time.thread_time() - began)

    ticking = asyncio.create_task(tick())
    await run(stream(events(), Drain()), Caller())
    ticking.cancel()
    # A producer that keeps the loop would let it tick once, at its end. One late tick may be the machine's.
    assert len(lateness) > 3 and sorted(lateness)[-2] < 0.1


async def test_foreign_cancellation_is_raised() -> None:
    async def events() -> AsyncGenerator[bytes, None]:
        yield b"one\n\n"
        await asyncio.sleep(60)

    caller = Caller()
    task = asyncio.create_task(run(stream(events(), Drain()), caller))
    await until(lambda: caller.body)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_disconnect_cancels_work_for_a_json_answer() -> None:
    caller, drain = Caller(), Drain()

    async def answer() -> None:
        with Interrupt().over(caller.context, drain):
            await asyncio.sleep(60)

    task = asyncio.create_task(answer())
    await run_ready()
    caller.leave()
    with pytest.raises(ClientGone):
        await asyncio.wait_for(task, 5)
    assert len(drain) == 0


async def test_early_disconnect_does_not_cancel_what_follows_a_block_that_never_waits() -> None:
    caller = Caller()
    caller.leave()

    async def answer() -> str:
        with Interrupt().over(caller.context, Drain()):
            pass
        await asyncio.sleep(0)
        return "settled"

    assert await asyncio.create_task(answer()) == "settled"


async def test_early_disconnect_does_not_end_a_request_that_has_a_claim() -> None:
    context = Context({}, account_id="user_1", claim=cast(Claim, SimpleNamespace(too_large=False)))
    context.disconnect()

    async def answer() -> str:
        with Interrupt().over(context, Drain()):
            await run_ready()
        return "answered"

    assert await asyncio.create_task(answer()) == "answered"


async def test_json_answer_has_a_grace_time_at_shutdown() -> None:
    drain = Drain()

    async def answer(seconds: float, grace_seconds: float) -> str:
        with Interrupt().over(Context({}), drain, grace_seconds):
            await asyncio.sleep(seconds)
        return "done"

    quick, slow = asyncio.create_task(answer(0.05, 5)), asyncio.create_task(answer(60, 0.1))
    await run_ready()
    drain.begin()
    assert await quick == "done"
    with pytest.raises(ApiError, match="shutting down"):
        await slow
