"""The answer to a question of a session, which other connections can follow and stop.

async with SessionAnswer -> one transaction: question, empty answer, room, hold (404, 409, 413, 402)
  -> the model is asked; the text so far is stored every 1.5 s, and follow() sends it to any number of readers
  -> one transaction: settlement and end of the answer -> the last chunk for everyone who reads
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import Any

import orjson

from svc import quota
from svc.content import answers, history, memory, model_view
from svc.content.answers import AnswerDetails
from svc.content.memory import End, Exchange
from svc.db import Database
from svc.errors import ApiError, ClientGone, describe
from svc.ids import new_id
from svc.inference.answer import said
from svc.inference.answer.events import DONE, event
from svc.inference.answer.normalize import split_text
from svc.inference.answering import Answering
from svc.inference.media_engines import Slots
from svc.inference.server_formats import seals
from svc.log import Log
from svc.retry import retry_write
from svc.server.http.head import Context
from svc.server.sse import Drain, Interrupt, LastBlock

_SAVE_SECONDS = 1.5
_OPENING = {"role": "assistant", "content": ""}


class SessionAnswer:
    """The answer of `call` in a conversation. `open_answers` has those in progress, by the id of the conversation.

    `ask` stores the question and an empty answer, or begins again one that waits for a person. `then` gets the text of
    a complete answer, and `sources` returns those of a text, if the model has files. As a context manager it stores the
    question and the end, and it reserves and settles the cost. `ended` is how the answer ends, once that is
    decided, and `in_progress` whether the question is stored and the end is not.
    """

    def __init__(
        self,
        db: Database,
        clock: Callable[[], float],
        open_answers: dict[str, "SessionAnswer"],
        call: Answering,
        exchange: Exchange,
        ask: Callable[[sqlite3.Connection, Exchange, str], history.Message] = memory.ask,
        then: Callable[[str], None] | None = None,
        sources: Callable[[str], list[dict[str, Any]]] | None = None,
    ) -> None:
        self.interrupt = Interrupt()
        self.ended = End(history.IN_PROGRESS)
        self._db = db
        self._clock = clock
        self._open_answers = open_answers
        self._call = call
        self._exchange = exchange
        self._ask = ask
        self._then = then
        self._sources = sources
        self._room_id = new_id("room")
        self._message: history.Message | None = None
        self._saving: asyncio.Task[None] | None = None
        self._over = False  # the end is stored
        self._fault: ApiError | None = None  # the error that has ended it
        self._news: asyncio.Future[None] | None = None  # readers wait for it; it is done when there is more to read

    def stop(self, reason: str) -> bool:
        """End the answer. Return False if it has ended, or is about to."""
        decided = self.ended.status != history.IN_PROGRESS or self._call.answered
        if not self.in_progress or decided or self.interrupt.reason is not None:
            return False
        self.interrupt(reason)
        return True

    @property
    def in_progress(self) -> bool:
        return self._saving is not None and not self._over

    async def __aenter__(self) -> None:
        conversation_id = self._exchange.conversation_id
        if conversation_id in self._open_answers:
            raise history.already_answering()
        self._open_answers[conversation_id] = self
        try:
            await self._db.write(self._ask_in)
        except asyncio.CancelledError as error:  # the question may have been stored
            await self.__aexit__(type(error), error, None)
            raise
        except BaseException:
            del self._open_answers[conversation_id]
            raise
        self._saving = asyncio.create_task(self._save())

    def _ask_in(self, tx: sqlite3.Connection) -> None:
        exchange, call = self._exchange, self._call
        quota.check_room(tx, exchange.account_id, exchange.room_bytes + call.most_bytes)
        message = self._ask(tx, exchange, call.log_fields["model"])
        quota.reserve(tx, exchange.account_id, self._room_id, call.most_bytes)
        call.reserve_in(tx)
        self._message = message

    async def _save(self) -> None:
        saved_bytes = 0
        while True:
            await asyncio.sleep(_SAVE_SECONDS)
            if self._message and self._call.text_bytes > saved_bytes:
                saved_bytes, message = self._call.text_bytes, self._call.message
                text = said.text(message)
                details = AnswerDetails(reasoning=said.reasoning(message), **self._found(text))
                stored = (self._message, text, details, self.ended, self._clock())
                with contextlib.suppress(ApiError):  # a full disk
                    await self._db.write_as("unsynced", memory.save, *stored)

    def _found(self, text: str) -> Mapping[str, Any]:
        """Return the columns with what tools did and found, or with the passages of files that the model has."""
        if self._sources is None:
            return self._call.tool_fields
        return {"sources": orjson.dumps(self._sources(text)).decode()}

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._saving is not None:
            self._saving.cancel()
        self.ended = self._end_after(error)
        if self.ended.status != "complete":
            self._call.note_early_end(of_caller=self.ended.status == "stopped")
        if isinstance(error, ApiError):
            self._name_conversation(error)

        def refused(fault: ApiError) -> None:
            self.ended = self._failed(fault)
            self._call.note_unstored(fault)

        try:
            await retry_write(partial(self._call.end_with, self._end_in), refused)
        finally:
            del self._open_answers[self._exchange.conversation_id]
            self._over = True
            self.wake()
        if self._then is not None and self.ended.status == "complete":
            self._then(said.text(self._call.message))

    def _name_conversation(self, error: ApiError) -> None:
        """Name the conversation in the answer of an error, if the question is stored there."""
        if self._message is not None and not self._is_of_account:
            error.headers[memory.HEADER] = self._exchange.conversation_id

    @property
    def _is_of_account(self) -> bool:
        """Whether it ended because the account was deleted or suspended."""
        return (self.interrupt.reason or "").startswith("account_")

    def _end_after(self, error: BaseException | None) -> End:
        reason = self.interrupt.reason
        if error is None or self._call.answered:
            return End("complete")
        if reason == "shutdown" or (reason is None and isinstance(error, asyncio.CancelledError)):
            return End("interrupted")
        if reason is not None or isinstance(error, ClientGone | GeneratorExit):
            return End("stopped")
        return self._failed(error if isinstance(error, ApiError) else ApiError("internal_error"))

    def _failed(self, error: ApiError) -> End:
        return End("failed", {**error.error, "request_id": self._call.request_id})

    def _end_in(self, tx: sqlite3.Connection) -> None:
        quota.release(tx, self._exchange.account_id, self._room_id)
        if claim := self._call.claim:
            claim.settle_in(tx)
        if self._message is None:
            return
        call, message, now_seconds = self._call, self._call.message, self._clock()
        duration_ms = max(0, round((now_seconds - self._exchange.asked_at_seconds) * 1000))
        bill, saved_micros = call.bill(), call.saved_micros()
        counts = (bill.input_tokens, bill.output_tokens, call.cost_micros, duration_ms)
        reason = call.finish_reason if self.ended.status == "complete" else None
        details = AnswerDetails(*counts, reason, said.reasoning(message), bill.cached_input_tokens, saved_micros)
        text = said.text(message)
        details = details._replace(**self._found(text))
        if (fit := call.fit) is not None:
            where = (self._exchange.account_id, self._exchange.conversation_id, self._message.number)
            first = model_view.first_message(tx, *where, fit.sent_messages)
            details = details._replace(context_tokens=fit.tokens, first_sent_message_id=first)
        memory.save(tx, self._message, text, details, self.ended, now_seconds)
        calls, sealed = message.get("tool_calls"), seals.known(message.get(seals.FIELD))
        if calls and sealed and reason:
            answers.seal(tx, self._exchange.account_id, self._message.id, calls[0]["id"], sealed)

    # --- readers

    def wake(self) -> None:
        """Tell the readers that there is more to read."""
        if self._news is not None:
            self._news.set_result(None)
            self._news = None

    def start(self, drain: Drain, slots: Slots, log: Log) -> None:
        """Generate the answer in a task, even without readers. It takes a slot of the account until its end."""
        self._task = asyncio.create_task(self._generate(drain, slots, log))

    async def _generate(self, drain: Drain, slots: Slots, log: Log) -> None:
        owner, bug = self._exchange.account_id, None
        try:
            with slots.taken(owner), self.interrupt.over(Context({}, account_id=owner), drain, 0):
                async with self, contextlib.aclosing(self._call.stream()) as chunks:
                    async for _ in chunks:
                        self.wake()
                        await asyncio.sleep(0)
        except ApiError as error:
            self._fault = error
        except asyncio.CancelledError:
            self._fault = ApiError("shutting_down")
        except Exception as error:
            self._fault, bug = ApiError("internal_error"), describe(error)
        if self._fault is not None:
            self._name_conversation(self._fault)
        self._over = True
        self.wake()
        level, call = "error" if bug else "info", self._call
        log("answer", level=level, request_id=call.request_id, account=owner, error=bug, **call.log_fields)

    @property
    def stop_requested(self) -> bool:
        """Whether a person has stopped it, or has deleted its conversation."""
        return self.interrupt.reason in ("requested", "conversation_deleted")

    @property
    def was_stopped(self) -> bool:
        return self.ended.status == "stopped" and self.stop_requested

    def end_after(self, error: ApiError) -> bytes:
        """Return the end of the stream of a stopped answer, which replaces its error, or raise this."""
        if self._is_of_account or self.ended.status != "stopped":
            raise error
        return (b"" if self._call.begun else self._chunk(_OPENING)) + self._last_blocks()

    async def follow(
        self, interrupt: Interrupt, *, own: bool = False, usage: bool = False
    ) -> AsyncGenerator[bytes, None]:
        """Yield the text so far in one chunk, then what is added to it, then the end. A slow reader gets fewer, longer
        chunks.

        `interrupt` is the reader's own. A shutdown ends the answer, too, so the reader still gets its end. With `own`,
        for the client that asked, it waits for the first text, and raises the ApiError of an answer that has none.
        `usage` adds a chunk with the tokens.
        """
        sent: dict[str, Any] = {**self._call.known} if own else {}
        opening = _OPENING
        while True:
            try:
                over, begun = self._over, self._call.begun or not own
                if self._fault is not None and not begun and self.ended.status != "stopped":
                    raise self._fault
                parts = self._call.parts_after(sent) if over or begun else []
                if (over or begun) and (opening or parts):
                    first, *further = parts or [{"delta": {}}]
                    first, opening = {**first, "delta": {**opening, **first["delta"]}}, {}
                    yield b"".join([self._chunk(**part) for part in (first, *further)])
                elif over:
                    break
                else:
                    self._news = self._news or asyncio.get_running_loop().create_future()
                    await asyncio.shield(self._news)  # other readers wait for it, too
            except asyncio.CancelledError:
                if interrupt.reason != "shutdown":
                    raise
        for delta in self._rest(sent):
            yield self._chunk(delta)
        yield LastBlock(self._last_blocks(usage=usage))

    def _rest(self, sent: dict[str, int]) -> Iterator[dict[str, Any]]:
        """Yield what `texts_after` does not return: the text of an answer that is not streamed, and tool calls."""
        message = self._call.message
        if not sent and (text := said.text(message)):  # a plain answer, which is short
            yield {"content": text}
        for index, call in enumerate(message.get("tool_calls", ())):
            kind = call["type"]
            key = "input" if kind == "custom" else "arguments"
            part, *parts = split_text(call[kind][key])
            yield {"tool_calls": [{"index": index, **call, kind: {**call[kind], key: part}}]}
            for part in parts:
                yield {"tool_calls": [{"index": index, kind: {key: part}}]}

    def _last_blocks(self, *, usage: bool = False) -> bytes:
        status = self.ended.status
        if status == "stopped":
            return self._chunk({}, "stop", status=status) + DONE
        if status != "complete":
            code = "shutting_down" if status == "interrupted" else "internal_error"
            return event({"error": self.ended.error or ApiError(code).error}) + DONE
        tokens = event({**self._call.chunk_writer.head, "choices": [], "usage": self._call.usage}) if usage else b""
        return self._chunk({}, self._call.finish_reason or "stop") + tokens + DONE

    def _chunk(self, delta: dict[str, Any], reason: str | None = None, **fields: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return event({**self._call.chunk_writer.head, "choices": [choice], **fields})

    def cut_short(self) -> dict[str, Any]:
        """Return the JSON answer after a stop."""
        choice = {"index": 0, "message": self._call.message, "logprobs": None, "finish_reason": "stop"}
        head = {**self._call.chunk_writer.head, "object": "chat.completion"}
        return {**head, "choices": [choice], "usage": dict(self._call.usage), "status": "stopped"}
