"""The planner's loop alone: its bounds, and what it makes of whatever a model answers."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from svc.agents import loop, run_stream
from svc.agents.loop import Deltas, Progress, ToolFailure
from svc.errors import ApiError
from svc.server.sse import Interrupt
from tests.support.cases import each
from tests.support.loop_clock import advance_loop


@dataclass
class PlayedCall:
    """One answer of a model that a test plays."""

    texts: Callable[[], AsyncGenerator[str, None]]
    message: dict[str, Any] = field(default_factory=lambda: {"role": "assistant", "content": "done"})
    log: list[str] = field(default_factory=list)
    finish_reason: str | None = None
    chunk_writer: Any = field(default_factory=lambda: SimpleNamespace(closing=[]))

    async def reserve(self) -> None:
        self.log.append("reserved")

    async def end(self) -> None:
        self.log.append("settled")

    async def stream(self) -> AsyncGenerator[list[dict[str, Any]], None]:
        try:
            async with contextlib.aclosing(self.texts()) as texts:
                async for text in texts:
                    yield [{"choices": [{"delta": {"content": text}}]}]
        finally:
            self.log.append("closed")


async def nothing() -> AsyncGenerator[str, None]:
    return
    yield ""


def call(name: str, arguments: str, call_id: str = "call_1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asking(*calls: dict[str, Any]) -> PlayedCall:
    return PlayedCall(nothing, {"role": "assistant", "content": None, "tool_calls": list(calls)})


async def played(
    turns: list[PlayedCall], call_tool: Any = None, **limits: Any
) -> tuple[list[dict[str, Any]], Progress]:
    async def no_tool(name: str, arguments: dict[str, Any], written: str) -> Any:
        raise ToolFailure("There is none.")

    progress, left = Progress(), iter(turns)

    async def ask_next(messages: list[dict[str, Any]]) -> PlayedCall:
        return next(left)

    settings = {
        "max_steps": len(turns),
        "ask": ask_next,
        "call_tool": call_tool or no_tool,
        "inner_steps": asyncio.Queue(),
        "progress": progress,
        "interrupt": Interrupt(),
        "opening": [{"type": "started"}],
    }
    found: list[dict[str, Any]] = []
    async for together in loop.run([], **{**settings, **limits}):
        deltas = (
            [{"type": "delta", "text": text} for text in together.texts] if isinstance(together, Deltas) else together
        )
        found += deltas
    return found, progress


def started(ask: Any, call_tool: Any, inner_steps: asyncio.Queue[Any]) -> AsyncGenerator[Any, None]:
    settings: dict[str, Any] = {"max_steps": 2, "progress": Progress(), "interrupt": Interrupt()}
    return loop.run([], ask=ask, call_tool=call_tool, inner_steps=inner_steps, **settings)


async def test_a_tool_that_takes_too_long_is_a_failure_that_the_model_sees() -> None:
    async def slow(name: str, arguments: dict[str, Any], written: str) -> Any:
        advance_loop(loop.TOOL_SECONDS)
        await asyncio.Event().wait()

    found, progress = await played([asking(call("slow", "{}")), PlayedCall(nothing)], slow)
    assert found[3] == {
        "type": "tool_result",
        "id": "call_1",
        "name": "slow",
        "ok": False,
        "result": "The tool took too long.",
    }
    assert progress.output == "done"


async def test_a_tool_ends_with_its_run() -> None:
    async def thinks() -> AsyncGenerator[str, None]:
        advance_loop(loop.RUN_SECONDS - 1)
        yield "hm"

    async def endless(name: str, arguments: dict[str, Any], written: str) -> Any:
        advance_loop(2)
        await asyncio.Event().wait()

    first = dataclasses.replace(asking(call("endless", "{}")), texts=thinks)
    found, _ = await played([first, PlayedCall(nothing)], endless)
    result = next(event for event in found if event["type"] == "tool_result")
    assert (result["ok"], result["result"]) == (False, "The tool took too long.")


@each(
    "arguments",
    [
        "",
        "nonsense",
        "[]",
        "null",
        "5",
        '"text"',
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": "\\ud800"}',
        '{"a":' * 400 + "1" + "}" * 400,
    ],
)
async def test_invalid_arguments_are_results_and_do_not_end_the_run(arguments: str) -> None:
    called = []

    async def tool(name: str, arguments: dict[str, Any], written: str) -> Any:
        called.append(arguments)

    found, progress = await played([asking(call("tool", arguments)), PlayedCall(nothing)], tool)
    assert progress.output == "done" and called == ([{}] if arguments == "" else [])
    assert found[2]["arguments"] == {} and found[3]["ok"] is (arguments == "")
    for event in found:
        run_stream.event(event)


@each(
    ("fields", "function"),
    [
        ({"type": "custom", "custom": {"name": "f", "input": "x"}}, {"name": "unknown", "arguments": "{}"}),
        ({"type": "function", "function": {"name": "f", "arguments": "{"}}, {"name": "f", "arguments": "{}"}),
        (
            {"type": "function", "function": {"name": "f", "arguments": '{"a": 1}', "x": 1}},
            {"name": "f", "arguments": '{"a": 1}'},
        ),
    ],
)
async def test_call_is_returned_as_a_function_call(fields: dict[str, Any], function: dict[str, str]) -> None:
    sent: list[dict[str, Any]] = []
    turns = iter([asking({"id": "c", **fields}), PlayedCall(nothing)])

    async def ask(messages: list[dict[str, Any]]) -> PlayedCall:
        sent[:] = messages
        return next(turns)

    await played([], ask=ask, max_steps=2)
    assert sent[0] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }


async def test_steps_of_a_call_are_yielded_while_it_runs() -> None:
    seen, steps = asyncio.Event(), asyncio.Queue[Any]()

    async def tool(name: str, arguments: dict[str, Any], written: str) -> Any:
        steps.put_nowait({"type": "tool_call", "id": "inner"})
        await seen.wait()
        steps.put_nowait({"type": "tool_result", "id": "inner"})
        return "done"

    found: list[dict[str, Any]] = []
    turns = iter([asking(call("tool", "{}")), PlayedCall(nothing)])

    async def ask(messages: list[dict[str, Any]]) -> PlayedCall:
        return next(turns)

    async for together in started(ask, tool, steps):
        found += together
        if found[-1].get("id") == "inner":
            seen.set()
    assert [(event["type"], event.get("within")) for event in found] == [
        ("step", None),
        ("tool_call", None),
        ("tool_call", "call_1"),
        ("tool_result", "call_1"),
        ("tool_result", None),
        ("step", None),
    ]


@each("fault", [ApiError("insufficient_funds"), RuntimeError("a bug")])
async def test_fault_of_a_call_comes_after_its_steps(fault: Exception) -> None:
    steps = asyncio.Queue[Any]()

    async def tool(name: str, arguments: dict[str, Any], written: str) -> Any:
        steps.put_nowait({"type": "tool_call", "id": "inner"})
        raise fault

    async def ask(messages: list[dict[str, Any]]) -> PlayedCall:
        return asking(call("tool", "{}"))

    found: list[dict[str, Any]] = []
    with pytest.raises(type(fault)):
        async for together in started(ask, tool, steps):
            found += together
    assert found[-1] == {"type": "tool_call", "id": "inner", "within": "call_1"}


@each("cancels", [True, False])
async def test_call_ends_before_a_run_that_is_left_at_one_of_its_steps(cancels: bool) -> None:
    """It is left in the middle of a settlement, which takes its time."""
    steps, log = asyncio.Queue[Any](), []

    async def tool(name: str, arguments: dict[str, Any], written: str) -> Any:
        steps.put_nowait({"type": "tool_call", "id": "inner"})
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            log.append("settled")

    async def ask(messages: list[dict[str, Any]]) -> PlayedCall:
        return asking(call("tool", "{}"))

    async def follow() -> None:
        async with contextlib.aclosing(started(ask, tool, steps)) as events:
            async for together in events:
                if "within" in together[0] and not cancels:
                    break
        log.append("ended")

    following = asyncio.create_task(follow())
    while cancels and not following.cancelling():
        await asyncio.sleep(0)
        if steps.empty() and log == []:
            following.cancel()
    await asyncio.wait([following])
    assert log == ["settled"] + ["ended"] * (not cancels)


async def test_too_many_calls_in_a_step_are_refused_before_the_first_is_run() -> None:
    called = []

    async def tool(name: str, arguments: dict[str, Any], written: str) -> Any:
        called.append(name)

    turn = asking(*[call("tool", "{}", f"call_{number}") for number in range(17)])
    with pytest.raises(ApiError) as raised:
        await played([turn, PlayedCall(nothing)], tool)
    assert raised.value.code == "upstream_invalid_response" and called == [] and turn.log[-1] == "settled"


@dataclass
class Chunks(PlayedCall):
    """A call whose chunks a test gives."""

    chunks: tuple[dict[str, Any], ...] = ()

    async def stream(self) -> AsyncGenerator[list[dict[str, Any]], None]:
        for delta in self.chunks:
            yield [{"choices": [{"delta": delta.get("delta", {}), "finish_reason": delta.get("finish_reason")}]}]


async def test_a_refusal_is_the_output_and_the_finish_reason_is_the_last_steps() -> None:
    refused = Chunks(
        nothing,
        {"role": "assistant", "content": None, "refusal": "I cannot do that."},
        chunks=(
            {"delta": {"refusal": "I cannot "}},
            {"delta": {"refusal": "do that."}},
        ),
        finish_reason="content_filter",
    )
    first = Chunks(
        nothing,
        {"role": "assistant", "content": None, "refusal": None, "tool_calls": [call("tool", "{}")]},
        finish_reason="tool_calls",
    )
    sent: list[dict[str, Any]] = []

    async def ask(messages: list[dict[str, Any]]) -> Chunks:
        sent.extend(messages[len(sent) :])
        return refused if messages else first

    found, progress = await played([first, refused], ask=ask)
    assert progress.output == "I cannot do that." and progress.finish_reason == "content_filter"
    assert "".join(event["text"] for event in found if event["type"] == "delta") == "I cannot do that."
    assert "refusal" not in sent[0] and sent[0]["content"] is None  # a strict model server refuses fields that are null
