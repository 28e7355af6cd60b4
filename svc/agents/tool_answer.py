"""An answer in which the service runs tools: several calls of the model, which are one answer for the caller.

stream() -> the loop (loop.py): the chunks of each call, under one head and with one end
         -> tool steps as chunks with an empty delta, and `service` with a `tool_call` or `tool_result`

Each call of the model and each paid tool has its own hold and settlement.
"""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import orjson

from svc.agents import loop
from svc.agents.tool_chunks import BETWEEN, STEPS_BYTES, Shown, ToolChunks, stored_steps
from svc.agents.tools.registry import ToolContext
from svc.content import memory
from svc.errors import ApiError
from svc.ids import new_id, public_id
from svc.inference.answer import said
from svc.inference.answer.events import Chunk, TextChunks
from svc.inference.chat_call import ChatCall
from svc.inference.claim import Claim
from svc.inference.context_fit import ContextFit
from svc.inference.model_call import Bill
from svc.retry import retry_write
from svc.server.sse import Interrupt

T = TypeVar("T")
MOST_ROUNDS = 8
_CLOSED = "The tool is no longer available in this form."


class Resumed(NamedTuple):
    """An answer that waited: its text, steps and cost so far, the calls, and whether a person approved each of them."""

    text: str
    steps: list[dict[str, Any]]
    bill: Bill
    rounds: int
    calls: list[loop.WaitingCall]
    approved: Mapping[str, bool]


@dataclass(frozen=True)
class Ways:
    """How the answer's model is asked, and which functions are tools of the service.

    `ask(messages, with_tools)` returns the next call. `asks` is whether a tool needs approval, by its name. `ours` is
    whether a function is the service's, else the caller runs it. With `apart`, the texts of two calls stay apart by an
    empty line.
    """

    ask: Callable[[list[dict[str, Any]], bool], Awaitable[ChatCall]]
    asks: Callable[[str], bool]
    ours: Callable[[str], bool]
    apart: bool = True
    most_rounds: int = MOST_ROUNDS


@dataclass
class ToolAnswer:
    """One answer of `model`, as `Answering` describes it. `first` is the first call, made of `messages`, or None for a
    `resumed` answer.

    `waiting_request` is stored with calls that wait for a person: the request that continues after their approval.
    """

    model: str
    created: int
    first: ChatCall | None
    messages: list[dict[str, Any]]
    ways: Ways
    context: ToolContext
    claim: Claim | None = None
    streams: bool = True
    include_usage: bool = False
    resumed: Resumed | None = None
    waiting_request: Callable[[], dict[str, Any]] = dict
    begun: bool = False
    answered: bool = False
    progress: loop.Progress = field(default_factory=loop.Progress)
    inner_steps: loop.InnerSteps = field(default_factory=asyncio.Queue)  # of the context

    def __post_init__(self) -> None:
        head = {"id": public_id("chatcmpl-"), "object": "chat.completion.chunk", "created": self.created}
        self.chunk_writer = ToolChunks({**head, "model": self.model}, self._is_ours, apart=self.ways.apart)
        self._calls: list[ChatCall] = []
        self._claimed = False
        if self.resumed is not None:
            self.chunk_writer.go_on(self.resumed.text, self.resumed.steps)
            self.progress.steps = self.resumed.rounds
        if self.first is not None:
            self._add(self.first)

    def _add(self, call: ChatCall) -> ChatCall:
        self._calls.append(call)
        self.chunk_writer.begin(call)
        return call

    # --- what Answering describes

    @property
    def paid(self) -> bool:
        return any(call.paid for call in [*self._calls, *self.context.paid_calls])

    @property
    def interrupt(self) -> Interrupt:
        return self.context.interrupt

    @interrupt.setter
    def interrupt(self, interrupt: Interrupt) -> None:
        self.context.interrupt = interrupt

    @property
    def fit(self) -> ContextFit | None:
        return self._calls[-1].fit if self._calls else None

    @property
    def known(self) -> dict[str, Any]:
        return self.chunk_writer.known

    def parts_after(self, sent: dict[str, Any]) -> list[dict[str, Any]]:
        return self.chunk_writer.parts_after(sent)

    @property
    def earlier_steps(self) -> int:
        return self.chunk_writer.earlier_steps

    @property
    def text_bytes(self) -> int:
        return sum(call.text_bytes for call in self._calls) + self.chunk_writer.steps_bytes

    @property
    def most_bytes(self) -> int:
        return STEPS_BYTES + (self._calls[0].most_bytes if self._calls else STEPS_BYTES)

    @property
    def message(self) -> dict[str, Any]:
        """The assistant's message so far: the texts of all calls, and calls of the caller's functions."""
        messages = [call.message for call in self._calls]
        thoughts = [thought for message in messages if (thought := said.reasoning(message))]
        message: dict[str, Any] = {"role": "assistant", "content": self._joined(map(said.text, messages))}
        if thoughts:
            message["reasoning_content"] = BETWEEN.join(thoughts)
        if foreign := [
            call for call in messages[-1:] for call in call.get("tool_calls") or () if not self._is_ours(call)
        ]:
            message["tool_calls"] = foreign
        return message

    def _joined(self, texts: Any) -> str:
        before = [self.resumed.text] if self.resumed else []
        return (BETWEEN if self.ways.apart else "").join(filter(None, [*before, *texts]))

    @property
    def finish_reason(self) -> str | None:
        if not self.answered:
            return None
        return "tool_calls" if self.progress.waiting else self._calls[-1].finish_reason

    @property
    def usage(self) -> dict[str, Any]:
        used = [call.usage for call in self._calls]
        total = {name: sum(one[name] for one in used) for name in _COUNTS}
        if cached := sum((one.get("prompt_tokens_details") or {}).get("cached_tokens") or 0 for one in used):
            total["prompt_tokens_details"] = {"cached_tokens": cached}
        return total

    @property
    def log_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"model": self.model, "tool_calls": len(self.chunk_writer.steps) // 2}
        for call in self._calls:
            fields |= call.log_fields
        bill = self.bill()
        tokens = {"input_tokens": bill.input_tokens, "output_tokens": bill.output_tokens}
        return {**fields, **tokens, "cached_input_tokens": bill.cached_input_tokens, "cost_micros": self.cost_micros}

    @property
    def request_id(self) -> str:
        return self.context.payer.request_id

    @property
    def tool_fields(self) -> dict[str, Any]:
        """The columns of the stored answer: the steps, and what waits for a person, as JSON."""
        waiting, waits = None, bool(self.progress.waiting and self.answered)
        if waits:
            calls = [list(call) for call in self.progress.waiting]
            request = {**self.waiting_request(), "messages": self.messages}
            waiting = orjson.dumps({"request": request, "calls": calls, "rounds": self.progress.steps}).decode()
        # After the decision, the numbers continue.
        found, text = self.context.sources, self.message["content"]
        listed = found.listed(text, with_given=True) if waits else found.stored(text)
        return {
            "steps": stored_steps(self.chunk_writer.steps),
            "waiting": waiting,
            "sources": orjson.dumps(listed).decode(),
        }

    @property
    def cost_micros(self) -> int:
        before = self.resumed.bill.cost_micros if self.resumed else 0
        return before + sum(call.cost_micros for call in [*self._calls, *self.context.paid_calls])

    def bill(self) -> Bill:
        bills = [call.bill() for call in self._calls]
        bills += [self.resumed.bill] if self.resumed else []
        return Bill(
            sum(bill.input_tokens for bill in bills),
            sum(bill.output_tokens for bill in bills),
            self.cost_micros,
            cached_input_tokens=sum(bill.cached_input_tokens for bill in bills),
        )

    def saved_micros(self) -> int:
        return sum(call.saved_micros() for call in self._calls)

    def reserve_in(self, tx: sqlite3.Connection) -> None:
        if self.claim is not None:
            self.claim.claim_in(tx)
            self._claimed = True
        if self.first is not None:
            self.first.reserve_in(tx)

    def note_early_end(self, *, of_caller: bool) -> None:
        for call in self._calls[-1:]:
            call.note_early_end(of_caller=of_caller)

    def note_unstored(self, refusal: ApiError) -> None:
        for call in self._calls[-1:]:
            call.note_unstored(refusal)
        if self.claim is not None:
            self.claim.release()

    async def end_with(self, record: Callable[[sqlite3.Connection], T]) -> T:
        if self._calls:
            result = await self._calls[-1].end_with(record)
        else:
            result = await self.context.engines.db.write(record)
        if self.claim is not None:
            self.claim.settled()
        return result

    async def __aenter__(self) -> "ToolAnswer":
        try:
            if self.claim is not None:
                await self.context.engines.db.write(self.reserve_in)
            elif self.first is not None:
                await self.first.reserve()
        except BaseException as error:
            await self.end(error)
            raise
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        await self.end(error)

    async def end(self, error: BaseException | None = None) -> None:
        """Settle the last call, as ModelCall.end does."""
        call = self._calls[-1] if self._calls else None
        if self.claim is not None and self._claimed:
            if call is not None and error is not None:
                await call.end(error)
            write = partial(self.end_with, self.claim.settle_in)
            await retry_write(partial(self.claim.settled_by, write), self.note_unstored)
        elif call is not None:
            await call.end(error)

    # --- the answer

    async def complete(self) -> tuple[dict[str, Any], bytes]:
        """Return the answer as one `chat.completion`, with its steps in `service`, and its JSON. Raises ApiError."""
        async for _ in self.stream():
            pass
        message = {"refusal": None, **self.message}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish_reason}
        completion = {**self.chunk_writer.head, "object": "chat.completion", "choices": [choice], "usage": self.usage}
        completion["service"] = {"steps": self.chunk_writer.steps}
        written = (
            await asyncio.to_thread(orjson.dumps, completion) if self.text_bytes > 65536 else orjson.dumps(completion)
        )
        return completion, written

    async def stream(self) -> AsyncGenerator[list[Any], None]:
        """Yield the chunks of the answer, except for `closing`. Raises ApiError."""
        if self.resumed is not None:
            async for steps in self._decided(self.resumed):
                yield steps
        ways, clock = self.ways, self.context.engines.clock
        rules = loop.Rules(ways.asks, ways.ours, self.context.is_by_others, lambda _: new_id("call", clock()))
        events = loop.run(
            self.messages,
            max_steps=self.ways.most_rounds + 1,
            ask=self._ask,
            call_tool=self.context.call,
            inner_steps=self.inner_steps,
            progress=self.progress,
            interrupt=None,
            rules=rules,
            show=self.chunk_writer.shown,
        )
        try:
            async for together in events:
                if chunks := self._chunks_of(together):
                    self.begun = True
                    yield chunks
        finally:
            await events.aclose()  # a tool may still run
            self.context.close()
        self.answered = True
        choice = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": self.finish_reason or "stop"}
        usage = [{**self.chunk_writer.head, "choices": [], "usage": self.usage}] if self.include_usage else []
        self.chunk_writer.closing = [{**self.chunk_writer.head, "choices": [choice]}, *usage]

    def _is_ours(self, call: dict[str, Any]) -> bool:
        return self.ways.ours((call.get("function") or {}).get("name") or "")

    async def _ask(self, messages: list[dict[str, Any]]) -> ChatCall:
        if self.first is not None and self.progress.steps == 1:
            return self.first
        return self._add(await self.ways.ask(messages, self.progress.steps <= self.ways.most_rounds))

    async def _decided(self, resumed: Resumed) -> AsyncGenerator[list[Chunk], None]:
        """Run the calls that a person has approved, and tell the model of the others."""
        for call in resumed.calls:
            if not resumed.approved[call.id]:
                ok, result = False, memory.REFUSED
            elif call.name not in self.context.tools:
                ok, result = False, _CLOSED
            else:
                deadline = asyncio.get_running_loop().time() + loop.TOOL_SECONDS
                arguments = orjson.loads(call.arguments)
                made = self.context.call(call.name, arguments, call.arguments)
                ok, result = await loop.result_of(made, deadline)
            by_others = self.context.is_by_others(call.name)
            self.messages.append(loop.tool_message(call.model_id, ok, result, by_others=by_others))
            self.begun = True
            yield [
                self.chunk_writer.step("tool_result", {"id": call.id, "name": call.name, "ok": ok, "result": result})
            ]

    def _chunks_of(self, together: Any) -> list[Chunk | TextChunks]:
        if isinstance(together, Shown):
            return together.chunks
        chunks: list[Chunk | TextChunks] = []
        for event in together:
            fields = {name: event[name] for name in ("id", "name", "ok", "result", "within") if name in event}
            if event["type"] == "tool_call":
                written = self.progress.written.get(event["id"])
                fields["arguments"] = orjson.dumps(event["arguments"]).decode() if written is None else written
            if event["type"] in ("tool_call", "tool_result"):
                chunks.append(self.chunk_writer.step(event["type"], fields))
        return chunks


_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
