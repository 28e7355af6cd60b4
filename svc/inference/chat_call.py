"""One chat call, paid or free. svc/inference/paid_call.py holds and settles its cost.

reserve() -> a hold in the wallet, with the output limited to what it can pay (402)
stream() | complete() -> attempts until the first byte -> engine (built-in | HTTP)
  -> answer/chunk_writer.py repairs the answer
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncGenerator, Collection, Mapping
from typing import Any

from svc.billing import prices
from svc.builtin import provider
from svc.errors import ApiError, UpstreamFault
from svc.ids import public_id
from svc.inference import cache_marks, field_support, upstream
from svc.inference.answer import chunk_writer, raw_answer, too_long
from svc.inference.answer.events import Chunk, TextChunks
from svc.inference.answer.normalize import text_size_bytes
from svc.inference.answer.token_usage import input_tokens
from svc.inference.catalog import Model
from svc.inference.chat_request import Ignored, for_fallback, for_operator, with_named_limit
from svc.inference.first_body import FirstBody, first_body
from svc.inference.paid_call import Bill, Engines, PaidCall, Payer
from svc.inference.tokens import estimated_tokens

DEFAULT_OUTPUT_TOKENS = 4096
LEAST_OUTPUT_TOKENS = 16
# An answer with more bytes per token ignores its limit: no tokenizer averages half of this.
_BYTES_PER_GRANTED_TOKEN = 32
# How long a finished answer may take to send its usage after the client has disconnected.
_COUNT_SECONDS = 2.0
# Writing a longer answer blocks the event loop.
_LONG_BYTES = 1024 * 1024
_LIMITS = ("max_completion_tokens", "max_tokens")
# Longer answers are stored as well, beyond their reservation.
_MOST_RESERVED_BYTES = 256 * 1024
# How often a limit above the model's own is divided by four. A model with a price always gets a limit.
_MOST_LOWERED = 2

_NO_USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}

RawChunks = list[raw_answer.RawChunk]
EngineAnswer = raw_answer.RawAnswer | raw_answer.BuiltinAnswer


class ChatCall(PaidCall):
    """One chat-completions request to `model`, with a checked `body`.

    `added` names the fields that this service has added: they are left out for a model server that refuses them. `ours`
    names fields of the body without anything of the caller's. The constructor walks the whole body. If the body is
    `heavy`, with many values or long texts, it must run off the event loop.
    """

    _lowered = 0  # how often the limit was lowered
    _left_out: frozenset[str] = frozenset()  # the added fields that the last request lacked
    ignored = Ignored()  # what was left out of the request

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
        self.begun = False  # there is a part of an answer
        self.answered = False  # completely
        self._reached = False  # the model may have read the request
        self._streamed = False  # the client gets the parts of the answer as they come
        self._answer: dict[str, Any] | None = None
        self._limits: dict[str, int] = {}  # the output limits of a paid call with a hold
        # By model: the fields that it refuses in this call, and whether later calls may rely on it.
        self._refused: dict[str, dict[str, bool]] = {}
        if self.paid and (limited := with_named_limit(body)) is not body:
            body, added = limited, {*added, "max_tokens"}
        if model.provider is not None and not model.provider.byok:
            body, ignored = for_operator(body, model, ours)
            if ignored is not None:
                self.ignored = ignored
            body = cache_marks.for_model(body, model, asked=True) if self.paid else body
        self.writer = chunk_writer.ChunkWriter(public_id("chatcmpl-"), int(engines.clock()), model.id, body)
        self._body = body
        self._added = frozenset(added)
        self._heavy = heavy
        self._first = self._first_of(model) if self.paid else None
        if heavy:
            self.writer.estimated_input()  # now: later it would run on the event loop, or in the settlement

    @property
    def streams(self) -> bool:
        """Whether the request asks for a stream."""
        return bool(self._body.get("stream"))

    @property
    def text_bytes(self) -> int:
        """The size of the text of the answer so far, reasoning and arguments included."""
        return self.writer.text_bytes

    @property
    def most_bytes(self) -> int:
        """The room to reserve for the text of one choice."""
        return min(self._wanted_tokens()[0] * _BYTES_PER_GRANTED_TOKEN, _MOST_RESERVED_BYTES)

    @property
    def message(self) -> dict[str, Any]:
        """The assistant's message so far."""
        return self._answer["choices"][0]["message"] if self._answer else self.writer.content()

    @property
    def finish_reason(self) -> str | None:
        """The reason why the answer ended. None if it was cut off."""
        return self._answer["choices"][0]["finish_reason"] if self._answer else self.writer.finish_reason()

    @property
    def usage(self) -> Mapping[str, Any]:
        """The tokens that the caller pays for, with the details of the model server.

        After an early end, input is charged only if the caller ended the call. Output is charged as well then, or if it
        was sent.
        """
        if self.answered and not self._failed:
            return self.writer.usage
        ended_by_caller = self._left and self._reached
        if not ended_by_caller and not (self._streamed and self.writer.text_bytes):
            return _NO_USAGE
        # Before the end, a model server's count may be a placeholder (0). It is at least the estimate for the output.
        reported, produced = self.writer.usage, estimated_tokens(self.writer.text_bytes)
        prompt = (reported["prompt_tokens"] or self.writer.estimated_input()) if ended_by_caller else 0
        completion = max(reported["completion_tokens"], produced)
        counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        return {**reported, **counts} if ended_by_caller else counts

    # --- money

    def hold_in(self, tx: sqlite3.Connection) -> None:
        """Hold the highest possible cost. The output is limited to what the wallet and the limits can pay."""
        assert self._first is not None
        asked, choices = self._asked.prices, int(self._body.get("n") or 1)
        wanted, most_input = self._wanted_tokens()[0], self._first.input_tokens
        granted = wanted
        try:
            self.hold(tx, prices.most_micros(asked, most_input, wanted * choices))
        except ApiError:
            affordable = prices.affordable_output_tokens(asked, most_input, self.spendable_micros(tx)) // choices
            # If not even the shortest answer is affordable, this hold fails and its error names the missing amount.
            granted = min(wanted, max(affordable, LEAST_OUTPUT_TOKENS))
            self.hold(tx, prices.most_micros(asked, most_input, granted * choices))
        self._limits = dict.fromkeys(self._limits, granted)
        self.writer.choice_bytes = granted * _BYTES_PER_GRANTED_TOKEN

    def _first_of(self, model: Model) -> FirstBody:
        """Return the body for the first attempt, with the output limit that a full wallet could pay.

        No later body is larger than the hold. Another name of the limit fits into the 16 tokens of a message. What the
        model is known to refuse is never sent to it in this call. For a fallback, such fields and its name are counted.
        """
        wanted, asked_for = self._wanted_tokens()
        self._limits = dict.fromkeys(asked_for or ("max_tokens",), wanted)
        if not asked_for:
            self._added |= {"max_tokens"}
        whole = self._with_limits(model)
        if model.provider is None:
            return first_body(whole, self._heavy)
        body = self._in_its_form(model, whole)
        if self._left_out:
            self._refused[model.id] = dict.fromkeys(self._left_out, False)
        first = first_body(body, self._heavy)
        if model.fallback:
            if body is not whole:
                first.input_tokens = first_body(whole, self._heavy).input_tokens
            fallback = self._engines.catalog.configured(model.fallback)
            first.input_tokens += text_size_bytes(fallback.name if fallback else model.fallback)
        return first

    def _with_limits(self, model: Model) -> dict[str, Any]:
        body = {**self._body, **self._limits, "model": model.name}
        if model is self._asked:
            return body
        body = for_fallback(body, self._asked.extra_fields - model.extra_fields)
        return cache_marks.for_model(body, model, asked=False)

    def _wanted_tokens(self) -> tuple[int, list[str]]:
        """Return the output limit of the request, or the default, and the names of the fields with a limit."""
        asked_for = [name for name in _LIMITS if self._body.get(name) is not None]
        limits = [int(self._body[name]) for name in asked_for if self._body[name] >= 1]
        return min(limits, default=DEFAULT_OUTPUT_TOKENS), asked_for

    def bill(self) -> Bill:
        usage = self.usage
        tokens, completion = input_tokens(usage), usage["completion_tokens"]
        cost_micros = prices.cost_micros(self._model.prices, tokens, completion) if self.paid else 0
        return Bill(usage["prompt_tokens"], completion, cost_micros, cached_input_tokens=tokens.cached)

    def saved_micros(self) -> int:
        """Return how much less the call costs because the model server had cached some of its input."""
        usage = self.usage
        return prices.saved_micros(self._model.prices, input_tokens(usage), usage["completion_tokens"])

    # --- the answer

    async def stream(self) -> AsyncGenerator[list[Chunk | TextChunks], None]:
        """Yield the chunks of the answer, those of one read together, except for its `writer.closing`.

        Raises ApiError for a fault of the model server.
        """
        self._streamed = True
        try:
            answer, raws = await self.tried(self._begin)
            async with contextlib.aclosing(answer):
                while raws is not None:
                    chunks, fault = self._read(raws)
                    if fault is None and self.paid and self.writer.finished:
                        async with self._read_to_the_count(answer):
                            yield chunks
                        break
                    if chunks:
                        yield chunks
                    if fault is not None:
                        raise fault
                    raws = await answer.more()
            self.writer.finish()
            self.answered = True
        except UpstreamFault as fault:
            raise self.caller_error(fault) from fault
        finally:
            self._note_end()

    def _read(self, raws: RawChunks) -> tuple[list[Chunk | TextChunks], UpstreamFault | None]:
        """Return the repaired chunks up to the first fault, and the fault."""
        chunks: list[Chunk | TextChunks] = []
        fault = None
        try:
            for raw in raws:
                chunks += self.writer.feed(raw)
        except UpstreamFault as found:
            fault = found
        self.begun = self.begun or bool(chunks)
        return chunks, fault

    @contextlib.asynccontextmanager
    async def _read_to_the_count(self, answer: EngineAnswer) -> AsyncGenerator[None, None]:
        """Read the usage of a finished answer beside the block, even if the block is cancelled."""
        if self.writer.cut:  # the model server would not end
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
                reading.add_done_callback(
                    lambda task: task.cancelled() or task.exception()
                )  # no warning about its exception
                await asyncio.wait([reading])  # the answer is closed next

    async def _read_on(self, answer: EngineAnswer) -> None:
        while (raws := await answer.more()) is not None:
            fault = self._read(raws)[1]
            if fault is not None:
                raise fault

    async def complete(self) -> tuple[dict[str, Any], bytes]:
        """Return the answer as one `chat.completion`, and its JSON. Raises ApiError for a fault of the model server."""
        writer = self.writer
        writer.whole = True
        try:
            answer, raws = await self.tried(self._begin)
            try:
                written = writer.plain_answer(answer.completion) if answer.completion else None
                while raws is not None and written is None:
                    for raw in raws:
                        writer.feed(raw)
                    if writer.cut and writer.finished:
                        break  # an unrequested stream that ignores its limit
                    raws = await answer.more()
            finally:
                await answer.aclose()
            if written is None:
                long = writer.text_bytes > _LONG_BYTES
                written = await asyncio.to_thread(writer.answer, True) if long else writer.answer()
            self._answer = written[0]
            self.begun = self.answered = True
        except UpstreamFault as fault:
            raise self.caller_error(fault) from fault
        finally:
            self._note_end()
        return written

    def _note_end(self) -> None:
        self._log_tokens()
        if self._model.paid and self.answered and self.text_bytes and not self.usage["total_tokens"]:
            self._engines.metrics.unbilled_answers.add()
        self.ended()

    def _note_settled(self) -> None:
        super()._note_settled()
        if self._left:  # which was not known before
            self._log_tokens()

    def _log_tokens(self) -> None:
        usage = self.usage
        self.log_fields |= {
            "input_tokens": usage["prompt_tokens"],
            "cached_input_tokens": input_tokens(usage).cached,
            "output_tokens": usage["completion_tokens"],
        }

    # --- the engine

    async def _begin(self, model: Model) -> tuple[EngineAnswer, RawChunks | None]:
        """Return the answer of `model` and its first chunks. Raises UpstreamFault, ApiError."""
        body = self._with_limits(model)
        answer: EngineAnswer
        if model.provider is None:
            self._note_reached()
            answer = raw_answer.BuiltinAnswer(provider.chat(model.name, body, self._engines.clock))
        else:
            way, body = self._engines.way_to(model.provider), self._in_its_form(model, body)
            written = (self._first.json_of(body) if self._first else b"") or await upstream.dump(body, self._heavy)
            answer = await upstream.chat(way, model.provider, written, self.streams, self._note_reached)
        try:
            raws = await answer.more()
        except BaseException:
            await answer.aclose()
            raise
        if self._first:
            self._first.written = b""  # there is no other attempt
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

    def caller_error(self, fault: UpstreamFault) -> ApiError:
        error, sizes = super().caller_error(fault), (fault.error or {}).get("too_long")
        if sizes is None or fault.status != 400:
            return error
        message = too_long.anthropic_message(sizes, self.writer.estimated_input(), self._model.context_length)
        own = ApiError(too_long.CODE, str(error), param="messages", anthropic={"message": message})
        own.byok = error.byok
        return own

    async def refused(self, fault: UpstreamFault) -> bool:
        self._reached = False
        model = self._model
        if model.provider is None:
            return False
        if fields := field_support.refused_fields(fault, self._added) - self._left_out:
            # The words of the error may be the caller's if the request contains the name of a field, or an address that
            # the model server reads.
            callers = field_support.without({**self._body, "model": ""}, fields)  # the model's name is the operator's
            text = (await upstream.dump(callers, self._heavy)).lower()
            learnable = {field: field.encode() not in text and b'_url"' not in text for field in fields}
            if self.paid and not learnable.get("stream_options", True):
                del learnable["stream_options"]  # without it tokens are not counted, which a caller must not cause
            self._refused.setdefault(model.id, {}).update(learnable)
            return bool(learnable)
        limit = 0 if self._body.get("max_tokens") is not None else self._limits.get("max_tokens", 0)
        if limit > LEAST_OUTPUT_TOKENS and self._lowered < _MOST_LOWERED and field_support.limit_too_large(fault):
            self._lowered += 1
            self._limits = {"max_tokens": max(limit // 4, LEAST_OUTPUT_TOKENS)}
            return True
        return False
