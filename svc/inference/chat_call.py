"""One chat call, paid or free. svc/inference/model_call.py holds and settles its cost.

reserve() -> a hold in the wallet, with the output limited to what it can pay (402)
stream() | complete() -> attempts until the first byte -> engine (built-in | HTTP) -> answer/chunk_writer.py
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
from svc.inference import servers, upstream
from svc.inference.answer import chunk_writer, raw_answer, too_long
from svc.inference.answer.passed import Passed, PassedAnswer
from svc.inference.answer.token_usage import input_tokens
from svc.inference.catalog import Model, Provider
from svc.inference.chat_request import Ignored, for_model
from svc.inference.context_fit import ContextFit
from svc.inference.model_call import Bill, Engines, ModelCall, Payer
from svc.inference.passed_request import PassedRequest
from svc.inference.sent_body import LEAST_OUTPUT_TOKENS, CallerFormat, SentBody
from svc.inference.server_formats.chat_parts import stops_of
from svc.inference.tokens import estimated_tokens

# An answer with more bytes per token ignores its limit: no tokenizer averages half of this.
_BYTES_PER_GRANTED_TOKEN = 32
# How long a finished answer may take to send its usage after the client has disconnected.
_USAGE_SECONDS = 2.0
# Writing a longer answer blocks the event loop.
_LONG_BYTES = 1024 * 1024
# Longer answers are stored as well, beyond their reservation.
_MOST_RESERVED_BYTES = 256 * 1024

_NO_USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}

RawChunks = list[raw_answer.RawChunk]
CHAT = CallerFormat()
Chunks = list[Any]  # of chat, TextChunks, or Passed
EngineAnswer = raw_answer.RawAnswer | raw_answer.BuiltinAnswer


class ChatCall(ModelCall):
    """One chat-completions request to `model`, with a checked `body`.

    `added` names the fields that this service has added: they are left out for a model server that refuses them. `ours`
    names fields of the body without anything of the caller's. The constructor walks the whole body. If the body is
    `heavy`, with many values or long texts, it must run off the event loop. `format` is the caller's. `caller_request`
    has the caller's bytes, for a server of its format. Without a `body`, the answer is sent on unchanged, and
    `server_answer` records it. `fit` leaves out messages beyond the model's context.
    """

    ignored = Ignored()  # what was left out of the request
    server_answer: PassedAnswer | None = None

    def __init__(
        self,
        model: Model,
        body: dict[str, Any] | None,
        engines: Engines,
        payer: Payer,
        *,
        added: Collection[str] = (),
        ours: Collection[str] = (),
        heavy: bool = False,
        format: CallerFormat = CHAT,
        caller_request: PassedRequest | None = None,
        fit: ContextFit | None = None,
    ) -> None:
        super().__init__(model, engines, payer)
        self.begun = False  # there is a part of an answer
        self.answered = False  # completely
        self._reached = False  # the model may have read the request
        self._streamed = False  # the client gets the parts of the answer as they come
        self._answer: dict[str, Any] | None = None
        if body is None:
            assert caller_request is not None
            body, added = caller_request.skeleton, caller_request.added
            self.ignored, self.server_answer = caller_request.ignored, PassedAnswer()
        else:
            if fit is not None:
                self.fit, body = fit, fit.fitted(model, body)
            body, added, ignored = for_model(body, model, added, ours)
            if ignored is not None:
                self.ignored = ignored
        self.chunk_writer = chunk_writer.ChunkWriter(public_id("chatcmpl-"), int(engines.clock()), model.id, body)
        if caller_request is not None and self.server_answer is not None:
            self.chunk_writer.estimated_from = caller_request.estimated_from
        self._body = body
        self._sent = SentBody(model, body, added, engines, payer.account_id, heavy, format, caller_request)
        if heavy:
            self.chunk_writer.estimated_input()  # now: later it would run on the event loop, or in the settlement

    @property
    def streams(self) -> bool:
        """Whether the request asks for a stream."""
        return bool(self._body.get("stream"))

    @property
    def text_bytes(self) -> int:
        """The size of the text of the answer so far, reasoning and arguments included."""
        return self.chunk_writer.text_bytes

    @property
    def most_bytes(self) -> int:
        """The room to reserve for the text of one choice."""
        return min(self._sent.wanted_tokens()[0] * _BYTES_PER_GRANTED_TOKEN, _MOST_RESERVED_BYTES)

    @property
    def message(self) -> dict[str, Any]:
        """The assistant's message so far."""
        return self._answer["choices"][0]["message"] if self._answer else self.chunk_writer.content()

    def parts_after(self, sent: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the fields of chunks with what the answer has gained since `sent`, which it changes."""
        delta = self.chunk_writer.texts_after(sent)
        return [{"delta": delta}] if delta else []

    @property
    def finish_reason(self) -> str | None:
        """The reason why the answer ended. None if it was cut off."""
        return self._answer["choices"][0]["finish_reason"] if self._answer else self.chunk_writer.finish_reason()

    @property
    def usage(self) -> Mapping[str, Any]:
        """The tokens that the caller pays for, with the details of the model server.

        After an early end, input is charged only if the caller ended the call. Output is charged as well then, or if it
        was sent.
        """
        if self.answered and not self._failed:
            return self.chunk_writer.usage
        ended_by_caller = self._caller_ended and self._reached
        if not ended_by_caller and not (self._streamed and self.chunk_writer.text_bytes):
            return _NO_USAGE
        # Before the end, a model server's count may be a placeholder (0). It is at least the estimate for the output.
        reported, produced = self.chunk_writer.usage, estimated_tokens(self.chunk_writer.text_bytes)
        prompt = (reported["prompt_tokens"] or self.chunk_writer.estimated_input()) if ended_by_caller else 0
        completion = max(reported["completion_tokens"], produced)
        counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        return {**reported, **counts} if ended_by_caller else counts

    # --- money

    def hold_in(self, tx: sqlite3.Connection) -> None:
        """Hold the highest possible cost. The output is limited to what the wallet and the limits can pay."""
        sent = self._sent
        assert sent.first is not None
        first_prices, choices = self._first_model.prices, int(self._body.get("n") or 1)
        wanted, most_input = sent.wanted_tokens()[0], sent.first.input_tokens
        granted, hosted_micros = wanted, sent.hosted_micros
        try:
            self.hold(tx, prices.most_micros(first_prices, most_input, wanted * choices) + hosted_micros)
        except ApiError:
            left_micros = self.spendable_micros(tx) - hosted_micros
            affordable = prices.affordable_output_tokens(first_prices, most_input, left_micros) // choices
            # If not even the shortest answer is affordable, this hold fails and its error names the missing amount.
            granted = min(wanted, max(affordable, LEAST_OUTPUT_TOKENS))
            self.hold(tx, prices.most_micros(first_prices, most_input, granted * choices) + hosted_micros)
        sent.limits = dict.fromkeys(sent.limits, granted)
        self.chunk_writer.choice_bytes = granted * _BYTES_PER_GRANTED_TOKEN

    def bill(self) -> Bill:
        usage = self.usage
        tokens, completion = input_tokens(usage), usage["completion_tokens"]
        cost_micros = prices.cost_micros(self._model.prices, tokens, completion) if self.paid else 0
        bill = Bill(usage["prompt_tokens"], completion, cost_micros, cached_input_tokens=tokens.cached)
        if self.server_answer is not None and self.paid and usage is not _NO_USAGE:
            self._add_hosted(bill, self.server_answer.hosted_calls)
        return bill

    def _add_hosted(self, bill: Bill, calls: Mapping[str, int]) -> None:
        """Add the calls of tools that the vendor has run."""
        named = {name: calls[name] for name in self._model.hosted_tools if calls.get(name)}
        if named:
            bill.cost_micros += sum(count * self._model.hosted_tools[name] for name, count in named.items())
            hosted = ", ".join(f"{count} {name}" for name, count in named.items())
            tokens = f"{bill.input_tokens} input and {bill.output_tokens} output tokens"
            bill.description = f"{self._model.id}: {tokens}, {hosted}"

    def saved_micros(self) -> int:
        """Return how much less the call costs because the model server had cached some of its input."""
        usage = self.usage
        return prices.saved_micros(self._model.prices, input_tokens(usage), usage["completion_tokens"])

    # --- the answer

    async def stream(self) -> AsyncGenerator[Chunks, None]:
        """Yield the chunks of the answer, those of one read together, except for its `chunk_writer.closing`.

        Raises ApiError for a fault of the model server.
        """
        self._streamed = True
        try:
            answer, raws = await self.tried(self._begin)
            async with contextlib.aclosing(answer):
                while raws is not None:
                    chunks, fault = self._read(raws)
                    if fault is None and self.paid and self.chunk_writer.finished:
                        async with self._read_until_usage(answer):
                            yield chunks
                        break
                    if chunks:
                        yield chunks
                    if fault is not None:
                        raise fault
                    raws = await answer.more()
            self.chunk_writer.finish()
            if self.server_answer is not None and self.server_answer.begun:
                self.chunk_writer.closing = [*self.server_answer.held]
            self.answered = True
        except UpstreamFault as fault:
            raise self.caller_error(fault) from fault
        finally:
            self._note_end()

    def _read(self, raws: RawChunks) -> tuple[Chunks, UpstreamFault | None]:
        """Return the repaired chunks, or those that pass, up to the first fault, and the fault."""
        chunks: Chunks = []
        fault = None
        try:
            for raw in raws:
                if isinstance(raw, Passed):
                    chunks += self._pass(raw, self.server_answer)
                else:
                    chunks += self.chunk_writer.feed(raw)
        except UpstreamFault as found:
            fault = found
        self.begun = self.begun or bool(chunks)
        return chunks, fault

    def _pass(self, piece: Passed, server_answer: PassedAnswer | None) -> Chunks:
        """Return what may be sent now: the end of the answer waits, and what exceeds the limit is never sent."""
        assert server_answer is not None
        self.chunk_writer.whole = True
        for chunk in piece.chunks:
            self.chunk_writer.feed(chunk)
        if piece.text:
            self.chunk_writer.grow(piece.text)
        server_answer.note(piece)
        if self.chunk_writer.cut:
            return []
        if not self.chunk_writer.finished:
            return [piece]
        server_answer.held.append(piece)
        return []

    @contextlib.asynccontextmanager
    async def _read_until_usage(self, answer: EngineAnswer) -> AsyncGenerator[None, None]:
        """Read the usage of a finished answer beside the block, even if the block is cancelled."""
        if self.chunk_writer.cut:  # the model server would not end
            yield
            return
        reading = asyncio.ensure_future(self._read_on(answer))
        try:
            yield
            await asyncio.wait([reading])
            reading.result()
        finally:
            try:
                await asyncio.wait([reading], timeout=_USAGE_SECONDS)
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
        """Return the answer as one `chat.completion`, or the one that passes, and its JSON.

        Raises ApiError for a fault of the model server.
        """
        writer = self.chunk_writer
        writer.whole = True
        try:
            answer, raws = await self.tried(self._begin)
            try:
                completed = writer.plain_answer(answer.completion) if answer.completion else None
                while raws is not None and completed is None:
                    for raw in raws:
                        if isinstance(raw, Passed):
                            self._pass(raw, self.server_answer)
                        else:
                            writer.feed(raw)
                    if writer.cut and writer.finished:
                        break  # an unrequested stream that ignores its limit
                    raws = await answer.more()
            finally:
                await answer.aclose()
            if self.server_answer is not None and self.server_answer.held:
                writer.finish()
                completed = self.server_answer.held[-1].document, self.server_answer.held[-1].block
            else:
                if completed is None:
                    long = writer.text_bytes > _LONG_BYTES
                    completed = await asyncio.to_thread(writer.answer, True) if long else writer.answer()
                self._answer = completed[0]
            self.begun = self.answered = True
        except UpstreamFault as fault:
            raise self.caller_error(fault) from fault
        finally:
            self._note_end()
        return completed

    def _note_end(self) -> None:
        self._log_tokens()
        if self._model.paid and self.answered and self.text_bytes and not self.usage["total_tokens"]:
            self._engines.metrics.unbilled_answers.add()
        if self.fit is not None and self.answered:
            self.fit.note(self.usage if self.chunk_writer.reports.counts_input else None)
        self.ended()

    def _note_settled(self) -> None:
        super()._note_settled()
        if self._caller_ended:  # which was not known before
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
        answer: EngineAnswer
        if model.provider is None:
            self._note_reached()
            chunks = provider.chat(model.name, self._sent.with_limits(model), self._engines.clock)
            answer = raw_answer.BuiltinAnswer(chunks)
        elif model.provider.on_demand is None:
            answer = await self._ask(model, self.server_of(model.provider))
        else:
            server, release = await model.provider.on_demand.take(self._payer.account_id)
            try:
                answer = await self._ask(model, server)
            except BaseException:
                release()
                raise
            answer.on_close = release
        try:
            raws = await answer.more()
        except BaseException:
            await answer.aclose()
            raise
        self._sent.accepted(model, raws is not None)
        return answer, raws

    async def _ask(self, model: Model, server: Provider) -> raw_answer.RawAnswer:
        sent = self._sent
        way, written = self._engines.way_to(server), await sent.json_for(model)
        sending = (self.streams, self._note_reached, model.api)
        if sent.passes_answer_of(model):
            shown_as, headers = self.chunk_writer.head["model"], sent.headers
            return await upstream.chat(way, server, written, *sending, shown_as=shown_as, headers=headers)
        stops = stops_of(self._body) if model.api != "chat" else ()
        return await upstream.chat(way, server, written, *sending, stops)

    def can_ask(self, fallback: Model) -> bool:
        return self._sent.can_travel(fallback)

    def server_key(self) -> bytes:
        return servers.key_of(self._payer.account_id, self._body["messages"])

    def _note_reached(self) -> None:
        self._reached = True

    def caller_error(self, fault: UpstreamFault) -> ApiError:
        fault = self._sent.cause_of(fault, self._model.api)
        error, sizes = super().caller_error(fault), (fault.error or {}).get("too_long")
        if sizes is None or fault.status != 400:
            return error
        context = self._model.context_length if self.fit is None else self.fit.most_tokens(self._model)
        return too_long.callers_error(error, sizes, self.chunk_writer.estimated_input(), context, self.fit is not None)

    async def note_refusal(self, fault: UpstreamFault) -> bool:
        self._reached = False
        if self._model.provider is None:
            return False
        if self.fit is None or (body := await self.fit.shortened(self._model, fault, self._body)) is None:
            return await self._sent.note_refusal(fault, self._model)
        self._body = body
        self._sent.shorten(body["messages"])
        self.chunk_writer.known_input, self.chunk_writer.estimated_from = None, lambda: body
        return True
