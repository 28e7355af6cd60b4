"""One chat call, paid or free: hold the worst case, ask the engine, settle what it cost (svc/inference/paid_call.py).

reserve() -> a hold in the wallet, the output limited to what it affords (402)
stream() | complete() -> tries until the first byte -> engine (built-in | HTTP) -> svc/inference/wire.py writes it anew
end() -> the debit, at most the hold, exactly once: after success, fault, interrupt or a caller who left
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncGenerator, Collection, Mapping
from typing import Any

from svc.billing import wallet
from svc.builtin import provider
from svc.errors import ApiError, UpstreamFault
from svc.ids import random_base62
from svc.inference import field_support, raw_answer, upstream, wire
from svc.inference.blocks import Chunk, Texts
from svc.inference.catalog import Model
from svc.inference.chat_request import drop_aiming_fields, drop_output_limits
from svc.inference.paid_call import Bill, Engines, PaidCall, Payer
from svc.inference.tokens import estimated_tokens, worst_input_tokens

DEFAULT_OUTPUT_TOKENS = 4096
LEAST_OUTPUT_TOKENS = 16
# More bytes than this a token means that the provider does not heed the limit: no tokenizer averages half of it.
_BYTES_PER_GRANTED_TOKEN = 32
# How long the count of an answer may take that has told its end, when its caller is gone.
_COUNT_SECONDS = 2.0
# To write an answer of more text holds up the event loop.
_LONG_BYTES = 1024 * 1024
_LIMITS = ("max_completion_tokens", "max_tokens")
# Longer answers are stored as well, beyond what was reserved for them.
_MOST_RESERVED_BYTES = 256 * 1024
# How often a limit that is more than the model has is divided by four. A model with a price is never asked without one.
_MOST_LOWERED = 2

_NO_USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}

RawChunks = list[raw_answer.RawChunk]


class _BuiltinAnswer:
    """The built-in models' raw chunks, one at a time."""

    completion = None

    def __init__(self, raws: AsyncGenerator[dict[str, Any], None]) -> None:
        self._raws = raws

    async def more(self) -> RawChunks | None:
        raw = await anext(self._raws, None)
        return None if raw is None else [raw]

    async def aclose(self) -> None:
        await self._raws.aclose()


EngineAnswer = raw_answer.RawAnswer | _BuiltinAnswer


class ChatCall(PaidCall):
    """One chat-completions request to `model`; `body` has been checked.

    `added` names the fields that this service has added, which are left out for a model server that refuses them; `ours` those
    of the body itself that no caller wrote.
    Making it walks the whole body: one that is `heavy`, with many values or long texts, belongs off the event loop.
    """

    def __init__(
        self,
        model: Model,
        body: dict[str, Any],
        engines: Engines,
        payer: Payer,
        *,
        added: Collection[str] = (),
        ours: Collection[str] = (),
        heavy: bool = False,
    ) -> None:
        super().__init__(model, engines, payer)
        self.begun = False  # whether there is anything of an answer
        self._reached = False  # whether the model may have read the request
        self._streamed = False  # whether what has come has been had
        self._answered = False  # to its end
        self._answer: dict[str, Any] | None = None
        self._limits: dict[str, int] = {}  # of the output, once a paid call has its hold
        self._lowered = 0  # how often the limit was lowered for a model whose own is smaller
        self._left_out: frozenset[str] = frozenset()  # the added fields that the last request lacked
        # By model, the fields that it has refused here, and whether the next callers may learn of it.
        self._refused: dict[str, dict[str, bool]] = {}
        options = body.get("stream_options") or {}
        self._writer = wire.ChunkWriter(
            "chatcmpl-" + random_base62(29), int(engines.clock()), model.id, bool(options.get("include_usage")), body
        )
        self._input_tokens = worst_input_tokens(body) if self.paid else 0
        if model.provider is not None:
            body = drop_output_limits(body) if self.paid else body
            body = body if model.provider.byok else drop_aiming_fields(body, ours)
        self._body = body
        self._added = frozenset(added)
        self._heavy = heavy
        if heavy:
            self._writer.estimated_input()  # counted here, and neither on the event loop nor in the transaction that settles

    @property
    def streams(self) -> bool:
        """Whether the request asks for a stream."""
        return bool(self._body.get("stream"))

    @property
    def text_bytes(self) -> int:
        """The size of the text of the answer so far, reasoning and arguments included."""
        return self._writer.text_bytes

    @property
    def estimated_input_tokens(self) -> int:
        """The estimate for the tokens of the request."""
        return self._writer.estimated_input()

    @property
    def most_bytes(self) -> int:
        """The room to reserve for the text of one choice: 32 bytes a token of the output limit, at most 256 KiB."""
        return min(self._wanted_tokens()[0] * _BYTES_PER_GRANTED_TOKEN, _MOST_RESERVED_BYTES)

    @property
    def message(self) -> dict[str, Any]:
        """The assistant's message, as far as it has come."""
        if self._answer is not None:
            first: dict[str, Any] = self._answer["choices"][0]["message"]
            return first
        return self._writer.content()

    @property
    def finish_reason(self) -> str | None:
        """Why the answer ended; None for one that was cut off."""
        if self._answer is not None:
            reason: str = self._answer["choices"][0]["finish_reason"]
            return reason
        return self._writer.finish_reason()

    @property
    def usage(self) -> Mapping[str, int]:
        """The tokens of the call: `prompt_tokens`, `completion_tokens`, `total_tokens`, and what else was told of them; none when
        it ended without any output, which costs nothing but for a caller who left."""
        if self._answer is not None and not self._failed:
            usage: Mapping[str, int] = self._answer["usage"]
            return usage
        if self._answered:
            return self._writer.usage
        if (self._streamed and self._writer.text_bytes) or (self._left and self._reached):
            return self._usage_so_far()
        return _NO_USAGE

    def _usage_so_far(self) -> dict[str, int]:
        # What a model server counts on the way may be a mere placeholder (0 until the end): it is not less than was produced.
        reported, produced = self._writer.usage, estimated_tokens(self._writer.text_bytes)
        prompt = reported["prompt_tokens"] or self._writer.estimated_input()
        completion = max(reported["completion_tokens"], produced)
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}

    # --- money

    def reserve_in(self, tx: sqlite3.Connection) -> None:
        """`reserve` inside a transaction. The output is limited to what the wallet affords."""
        if not self.paid:
            return
        prices, choices = self._asked.prices, int(self._body.get("n") or 1)
        wanted, asked_for = self._wanted_tokens()
        granted = wanted
        try:
            self.hold(tx, wallet.cost_micros(prices, self._input_tokens, wanted * choices))
        except ApiError:
            available_micros = wallet.available_micros(tx, self._payer.account_id)
            affordable = wallet.affordable_output_tokens(prices, self._input_tokens, available_micros) // choices
            # Below the least useful answer the hold is tried as it is, and refused with what is missing.
            granted = min(wanted, max(affordable, LEAST_OUTPUT_TOKENS))
            self.hold(tx, wallet.cost_micros(prices, self._input_tokens, granted * choices))
        self._limits = dict.fromkeys(asked_for or ("max_tokens",), granted)
        self._writer.choice_bytes = granted * _BYTES_PER_GRANTED_TOKEN
        if not asked_for:
            self._added |= {"max_tokens"}

    def _wanted_tokens(self) -> tuple[int, list[str]]:
        """The output limit of the request, and the names of the fields that give it; 4,096 where there is none."""
        asked_for = [name for name in _LIMITS if self._body.get(name) is not None]
        limits = (int(self._body[name]) for name in asked_for if self._body[name] >= 1)
        return min(limits, default=DEFAULT_OUTPUT_TOKENS), asked_for

    def bill(self) -> Bill:
        usage = self.usage
        prompt, completion = usage["prompt_tokens"], usage["completion_tokens"]
        return Bill(prompt, completion, wallet.cost_micros(self._model.prices, prompt, completion) if self.paid else 0)

    # --- the answer

    async def stream(self) -> AsyncGenerator[list[Chunk | Texts], None]:
        """The answer's chunks, as many at a time as came together. Raises ApiError for a fault of the upstream, at any moment."""
        self._streamed = True
        try:
            answer, raws = await self.tried(self._begin)
            async with contextlib.aclosing(answer):
                while raws is not None:
                    chunks, fault = self._read(raws)
                    if fault is None and self.paid and self._writer.finished:
                        async with self._read_to_the_count(answer):
                            yield chunks
                        break
                    if chunks:
                        yield chunks
                    if fault is not None:
                        raise fault
                    raws = await answer.more()
            last = self._writer.finish()
            self._answered = True
            yield [*last]
        except UpstreamFault as fault:
            self.ended(fault)
            raise self.caller_error(fault) from fault
        finally:
            self._note_end()

    def _read(self, raws: RawChunks) -> tuple[list[Chunk | Texts], UpstreamFault | None]:
        """What came together, written anew up to the fault that there may be in it."""
        chunks: list[Chunk | Texts] = []
        fault = None
        try:
            for raw in raws:
                chunks += self._writer.feed(raw)
        except UpstreamFault as found:
            fault = found
        self.begun = self.begun or bool(chunks)
        return chunks, fault

    @contextlib.asynccontextmanager
    async def _read_to_the_count(self, answer: EngineAnswer) -> AsyncGenerator[None, None]:
        """Reads on for the count of an answer that has told its end, for up to 2 s even where the block is left meanwhile.

        An answer that was cut has no end that could be waited for.
        """
        if self._writer.cut:
            yield
            return
        reading = asyncio.ensure_future(self._read_on(answer))
        try:
            yield
            await asyncio.wait([reading])
            reading.result()
        finally:
            try:
                await asyncio.wait([reading], timeout=_COUNT_SECONDS)
            finally:
                reading.cancel()
                reading.add_done_callback(lambda task: task.cancelled() or task.exception())  # looked at, once there is nobody
                await asyncio.wait([reading])  # what it reads from is closed next, which must not be running still

    async def _read_on(self, answer: EngineAnswer) -> None:
        while (raws := await answer.more()) is not None:
            fault = self._read(raws)[1]
            if fault is not None:
                raise fault

    async def complete(self) -> tuple[dict[str, Any], bytes]:
        """Return the answer as one `chat.completion`, and that as JSON. Raises ApiError for a fault of the upstream."""
        writer = self._writer
        writer.whole = True
        try:
            answer, raws = await self.tried(self._begin)
            try:
                written = writer.plain_answer(answer.completion) if answer.completion else None
                while raws is not None and written is None:
                    for raw in raws:
                        writer.feed(raw)
                    if writer.cut and writer.finished:
                        break  # a stream that nobody asked for, and that goes on beyond its grant
                    raws = await answer.more()
            finally:
                await answer.aclose()
            if written is None:
                long = writer.text_bytes > _LONG_BYTES
                written = await asyncio.to_thread(writer.answer, True) if long else writer.answer()
            self._answer = written[0]
            self.begun = True
        except UpstreamFault as fault:
            self.ended(fault)
            raise self.caller_error(fault) from fault
        finally:
            self._note_end()
        return written

    def _note_end(self) -> None:
        usage = self.usage
        self.log_fields["input_tokens"], self.log_fields["output_tokens"] = usage["prompt_tokens"], usage["completion_tokens"]
        self.ended()

    # --- the engine

    async def _begin(self, model: Model) -> tuple[EngineAnswer, RawChunks | None]:
        """The answer of `model` and what comes first of it. Raises UpstreamFault, ApiError."""
        body = {**self._body, **self._limits, "model": model.name}
        answer: EngineAnswer
        if model.provider is None:
            self._note_reached()
            answer = _BuiltinAnswer(provider.chat(model.name, body, self._engines.clock))
        else:
            way, asked = self._engines.way_to(model.provider), self._in_its_form(model, body)
            answer = await upstream.chat(way, model.provider, asked, self._note_reached, self._heavy)
        try:
            raws = await answer.more()
        except BaseException:
            await answer.aclose()
            raise
        refused = self._refused.get(model.id) if self._refused else None
        if refused and raws is not None:
            learned = [field for field, learnable in refused.items() if learnable]
            self._engines.field_support.remember(model, self._payer.account_id, learned, self._engines.clock())
        return answer, raws

    def _in_its_form(self, model: Model, body: dict[str, Any]) -> dict[str, Any]:
        """Return `body` in the form that `model` accepts, with what this service adds to it."""
        if body.get("stream") and not (options := body.get("stream_options") or {}).get("include_usage"):
            body["stream_options"] = {**options, "include_usage": True}
            self._added = self._added if options else self._added | {"stream_options"}
        if not self._added:
            return body
        unsupported = self._engines.field_support.unsupported(model, self._payer.account_id, self._engines.clock())
        if self._refused:
            unsupported = unsupported.union(self._refused.get(model.id, ()))
        self._left_out = unsupported & self._added
        return field_support.without(body, self._left_out) if self._left_out else body

    def _note_reached(self) -> None:
        self._reached = True

    async def refused(self, fault: UpstreamFault) -> bool:
        self._reached = False
        model = self._model
        if model.provider is None:
            return False
        if fields := field_support.refused_fields(fault, self._added) - self._left_out:
            # Where the request itself holds the name of a field, the words of the error may be the caller's. So may they be where
            # the model server reads an address in the request.
            callers = field_support.without({**self._body, "model": ""}, fields)  # the model's name is the operator's
            text = (await upstream.dump(callers, self._heavy)).lower()
            learnable = {field: field.encode() not in text and b'_url"' not in text for field in fields}
            if self.paid and not learnable.get("stream_options", True):
                del learnable["stream_options"]  # without it the tokens are not counted: a caller must not bring that about
            self._refused.setdefault(model.id, {}).update(learnable)
            return bool(learnable)
        limit = 0 if self._body.get("max_tokens") is not None else self._limits.get("max_tokens", 0)
        if limit > LEAST_OUTPUT_TOKENS and self._lowered < _MOST_LOWERED and field_support.limit_too_large(fault):
            self._lowered += 1
            self._limits = {"max_tokens": max(limit // 4, LEAST_OUTPUT_TOKENS)}
            return True
        return False
