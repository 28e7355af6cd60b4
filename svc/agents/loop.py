"""The loop in which a model calls tools: of agent runs (run.py), and of answers with tools (tool_answer.py).

    ask(messages) -> the model's turn as a stream -> its tool calls, one by one -> their results are sent -> the next
    step, until the model answers without a call (final) or the steps are used up (stopped)

Events that follow at once are yielded together: a tool's result and the next call or step, the texts of a read of the
network. No HTTP and no SQL: the caller passes the model and the tools, and makes a stream of the events.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from svc.agents.tools.registry import ToolFailure
from svc.content.memory import DATA_LINE
from svc.errors import ApiError
from svc.inference.answer import said
from svc.inference.answer.events import Chunk, TextChunks
from svc.inference.chat_call import ChatCall
from svc.inference.field_support import RETURNED
from svc.server.sse import Interrupt

STEP_SECONDS = 600.0
TOOL_SECONDS = 60.0
RUN_SECONDS = 3600.0
TIMEOUT = "timeout"  # the reason of the interrupt
_CALLS_PER_STEP = 16
# What OpenAI, Groq, Anthropic and Bedrock accept as a function's name.
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_CHARACTERS = 64

INSTRUCTIONS = (
    "You are an agent that works toward the user's goal. Use the tools where they help, one or several at a time. "
    "When the goal is reached, or cannot be reached, answer without calling a tool: that answer is the result."
)


Event = dict[str, Any]


class Deltas(NamedTuple):
    """A `delta` event for each text: most events of a run."""

    texts: list[str]


Events = list[Event] | Deltas
# Runs one tool: name, arguments, their JSON as the model wrote it -> a value for JSON. Raises ToolFailure, whose text
# the model reads.
RunTool = Callable[[str, dict[str, Any], str], Awaitable[Any]]
InnerSteps = asyncio.Queue[Event | None]  # None: the call that makes them has ended


class ReadCall(NamedTuple):
    """A tool call's name, its arguments, their JSON as the model wrote it, and the problem with them."""

    name: str
    arguments: dict[str, Any]
    written: str
    problem: str | None


class CallResult(NamedTuple):
    """Whether a tool succeeds, and its result or the reason."""

    ok: bool
    result: Any


class WaitingCall(NamedTuple):
    """A call that a person has to approve: its id in events, the model's id of it, its name, its arguments' JSON."""

    id: str
    model_id: str
    name: str
    arguments: str


def _never(name: str) -> bool:
    return False


def _always(name: str) -> bool:
    return True


@dataclass(frozen=True)
class Rules:
    """What a loop does with calls, by the names of the tools.

    A call that `asks` waits for a person. `ours` has the tools that the loop runs; the caller has the others.
    `by_others` is whether others have written the results. `new_call_id` makes the id of a call in events out of the
    model's.
    """

    asks: Callable[[str], bool] = _never
    ours: Callable[[str], bool] = _always
    by_others: Callable[[str], bool] = _never
    new_call_id: Callable[[str], str] = str


@dataclass(slots=True)
class Progress:
    """The progress of a run, for its last event and its record. `finish_reason` is that of the last step.

    `seq` is the number of its last event, and `events` are those that its record keeps, as JSON. `waiting` are calls
    that a person has to approve. `written` has the arguments of calls as the model wrote them, by their ids in events.
    """

    steps: int = 0
    seq: int = 0
    events: list[bytes] = field(default_factory=list)
    output: str | None = None
    finish_reason: str | None = None
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    waiting: list[WaitingCall] = field(default_factory=list)
    written: dict[str, str] = field(default_factory=dict)

    @property
    def of_last_event(self) -> dict[str, Any]:
        return {"finish_reason": self.finish_reason, "artifacts": self.artifacts}


def deltas_of(together: Sequence[Chunk | TextChunks]) -> Deltas | None:
    """Return the texts of chunks, or None if they have none."""
    texts: list[str] = []
    for chunk in together:
        if isinstance(chunk, TextChunks):
            texts += chunk.texts
            continue
        for choice in chunk["choices"]:
            if text := said.text(choice["delta"]):
                texts.append(text)
    return Deltas(texts) if texts else None


_RUN_RULES = Rules()


async def run(
    messages: list[dict[str, Any]],
    *,
    max_steps: int,
    ask: Callable[[list[dict[str, Any]]], Awaitable[ChatCall]],
    call_tool: RunTool,
    inner_steps: InnerSteps,
    progress: Progress,
    interrupt: Interrupt | None,
    opening: Sequence[Event] = (),
    rules: Rules = _RUN_RULES,
    show: Callable[[Sequence[Chunk | TextChunks]], Any] = deltas_of,
) -> AsyncGenerator[Any, None]:
    """Yield `opening`, then `step`, `tool_call` and `tool_result` events, together where they follow at once, and what
    `show` returns for the model's chunks: `delta` events.

    `inner_steps`, which a call makes itself, are yielded as they happen, `within` it. `messages` is extended.
    `progress.output` is set when the model answers; it stays None if `max_steps` are used up, or calls wait for a
    person. `interrupt` ends a run if an answer takes over STEP_SECONDS, or the run over RUN_SECONDS. Raises ApiError.
    """
    run_ends = asyncio.get_running_loop().time() + RUN_SECONDS
    ready = [*opening]  # yielded with the next event
    while progress.steps < max_steps:
        progress.steps += 1
        yield [*ready, {"type": "step", "step": progress.steps}]
        model_call = await ask(messages)
        await model_call.reserve()
        async with contextlib.aclosing(_shown(model_call, show, interrupt, run_ends)) as texts:
            async for shown in texts:
                yield shown
        progress.finish_reason = model_call.finish_reason
        calls = (message := model_call.message).get("tool_calls") or []
        if not any(rules.ours(_name(call)) for call in calls):
            progress.output = said.text(message)
            return  # this call is settled with the end of the run
        await model_call.end()
        read = _read(calls)
        messages.append(_turn(message, calls, read))
        ready = []
        for call, (name, arguments, written, problem) in zip(calls, read, strict=True):
            if not rules.ours(name):
                progress.output = said.text(message)  # the caller runs this one, and asks again
                continue
            call_id = rules.new_call_id(call["id"])
            progress.written[call_id] = written
            yield [*ready, {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}]
            if rules.asks(name) and problem is None:
                progress.waiting.append(WaitingCall(call_id, call["id"], name, written))
                ready = []
                continue
            running = _failed(problem) if problem else call_tool(name, arguments, written)
            async with contextlib.aclosing(_called(call_id, name, running, run_ends, inner_steps)) as happening:
                async for ready in happening:
                    if "within" in ready[0]:
                        yield ready
            by_others = rules.by_others(name)
            messages.append(tool_message(call["id"], ready[0]["ok"], ready[0]["result"], by_others=by_others))
        if progress.waiting or progress.output is not None:
            break
    yield ready


async def _shown(
    model_call: ChatCall, show: Callable[[Any], Any], interrupt: Interrupt | None, run_ends: float
) -> AsyncGenerator[Any, None]:
    """Yield what is shown of the model's answer. `interrupt` ends it at `run_ends`, in seconds of the event loop, or
    after STEP_SECONDS.
    """
    loop = asyncio.get_running_loop()
    timeout = interrupt and loop.call_at(min(loop.time() + STEP_SECONDS, run_ends), interrupt, TIMEOUT)
    try:
        async with contextlib.aclosing(model_call.stream()) as chunks:
            async for together in chunks:
                if shown := show(together):
                    yield shown
    finally:
        if timeout:
            timeout.cancel()
    if shown := show(model_call.chunk_writer.closing):
        yield shown


def tool_message(call_id: str, ok: bool, result: Any, *, by_others: bool = False) -> dict[str, Any]:
    """Return the message with the result of a tool, or with the reason of its failure, for the model."""
    content = result if isinstance(result, str) else orjson.dumps(result).decode()
    content = content if ok else f"Error: {content}"
    return {"role": "tool", "tool_call_id": call_id, "content": DATA_LINE + content if by_others else content}


def _name(call: dict[str, Any]) -> str:
    return (call.get("function") or {}).get("name") or ""


def _turn(message: dict[str, Any], calls: list[dict[str, Any]], read: list[ReadCall]) -> dict[str, Any]:
    """Return the assistant's turn for the next step: the standard fields and those in `RETURNED`.

    Model servers refuse other fields, nulls, invalid function names, and arguments that are not a JSON object.
    """
    turn = {"role": "assistant", "content": message.get("content")} | _returned(message)
    turn["tool_calls"] = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": _NOT_IN_NAMES.sub("_", name)[:_NAME_CHARACTERS] or "unknown", "arguments": written},
        }
        | _returned(call)
        for call, (name, _, written, _) in zip(calls, read, strict=True)
    ]
    return turn


def _returned(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: fields[name] for name in RETURNED if fields.get(name) is not None}


def _read(calls: list[dict[str, Any]]) -> list[ReadCall]:
    if len(calls) > _CALLS_PER_STEP:
        text = f"The model made more than {_CALLS_PER_STEP} tool calls in a step."
        raise ApiError("upstream_invalid_response", text)
    return [_read_call(call) for call in calls]


def _read_call(call: dict[str, Any]) -> ReadCall:
    name, written = _name(call), (call.get("function") or {}).get("arguments") or "{}"
    try:
        arguments = orjson.loads(written)
        orjson.dumps(arguments)  # orjson reads deeper nesting than it writes
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        arguments = None
    if not isinstance(arguments, dict):
        return ReadCall(name, {}, "{}", "The arguments are not a JSON object.")
    return ReadCall(name, arguments, written, None)


async def _called(
    call_id: str, name: str, running: Awaitable[Any], run_ends: float, inner_steps: InnerSteps
) -> AsyncGenerator[list[Event], None]:
    """Yield the steps of a call as they happen, `within` it, then its result. The end of this generator ends it."""
    deadline = min(asyncio.get_running_loop().time() + TOOL_SECONDS, run_ends)
    calling = asyncio.ensure_future(result_of(running, deadline))
    calling.add_done_callback(lambda _: inner_steps.put_nowait(None))
    try:
        while (step := await inner_steps.get()) is not None:
            yield [{**step, "within": call_id}]
        yield [{"type": "tool_result", "id": call_id, "name": name, **calling.result()._asdict()}]
    finally:
        while not calling.done():  # it may settle what it has cost
            calling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([calling])
        if not calling.cancelled():
            calling.exception()  # no warning about it
        del calling  # an exception refers to it through this frame


async def _failed(problem: str) -> Any:
    raise ToolFailure(problem)


async def result_of(running: Awaitable[Any], deadline: float) -> CallResult:
    """Return the result of a tool. `deadline` is in seconds of the event loop."""
    try:
        async with asyncio.timeout_at(deadline):
            return CallResult(True, await running)
    except TimeoutError:
        return CallResult(False, "The tool took too long.")
    except ToolFailure as failure:
        return CallResult(False, str(failure))
