"""The answer to a question of a session, which other connections can follow and stop.

async with SessionAnswer -> one transaction: question, empty answer, room, hold (404, 409, 413, 402)
  -> the model is asked; the text so far is stored every 1.5 s
  -> one transaction: settlement and end of the answer -> the last chunk for everyone who reads
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from types import TracebackType
from typing import Any

from svc import quota
from svc.content import history, memory
from svc.content.answers import AnswerDetails
from svc.content.memory import End, Exchange
from svc.db import Database
from svc.errors import ApiError, ClientGone
from svc.ids import new_id
from svc.inference.blocks import DONE, Chunk, error_event, event
from svc.inference.chat_call import ChatCall
from svc.retry import retry_write
from svc.server.sse import Interrupt

_SAVE_SECONDS = 1.5
_STOPPED = ("stopped", "interrupted")


class SessionAnswer:
    """The answer of `call` in a conversation. `open_answers` has those in progress, by the id of the conversation.

    As a context manager it stores the question and the end, and it reserves and settles the cost. `ended` is how the answer has
    ended, and `fault` the exception that the caller gets.
    """

    def __init__(
        self,
        db: Database,
        clock: Callable[[], float],
        open_answers: dict[str, "SessionAnswer"],
        call: ChatCall,
        exchange: Exchange,
    ) -> None:
        self.interrupt = Interrupt()
        self.ended: End | None = None
        self._db = db
        self._clock = clock
        self._open_answers = open_answers
        self._call = call
        self._exchange = exchange
        self._room_id = new_id("room")
        self._message: history.Message | None = None
        self._saving: asyncio.Task[None] | None = None

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
        message = memory.ask(tx, exchange, call.log_fields["model"])
        quota.reserve(tx, exchange.account_id, self._room_id, call.most_bytes)
        call.reserve_in(tx)
        self._message = message

    async def _save(self) -> None:
        saved_bytes = 0
        while True:
            await asyncio.sleep(_SAVE_SECONDS)
            if self._message and self._call.text_bytes > saved_bytes:
                saved_bytes, said = self._call.text_bytes, self._call.message
                so_far = AnswerDetails(0, 0, 0, 0, None, _reasoning(said), self._memory)
                with contextlib.suppress(ApiError):  # a full disk
                    await self._db.write_as("unsynced", memory.save, self._message, _text(said), so_far)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._saving is not None:
            self._saving.cancel()
        self.ended = self._end_after(error)

        def refused(fault: ApiError) -> None:
            self.ended = End("failed", fault.error)

        try:
            await retry_write(self._store_end, refused)
        finally:
            del self._open_answers[self._exchange.conversation_id]
        if isinstance(error, ApiError) and self.interrupt.reason != "account_deleted":
            error.headers[memory.HEADER] = self._exchange.conversation_id

    def _end_after(self, error: BaseException | None) -> End:
        reason = self.interrupt.reason
        if error is None or self._call.answered:
            return End("complete")
        if reason == "shutdown" or (reason is None and isinstance(error, asyncio.CancelledError)):
            return End("interrupted")
        if reason is not None or isinstance(error, ClientGone | GeneratorExit):
            return End("stopped")
        return End("failed", (error if isinstance(error, ApiError) else ApiError("internal_error")).error)

    async def _store_end(self) -> None:
        ended = self.ended
        await self._call.end_with(
            self._end_in,
            left=ended is not None and ended.status == "stopped",
            failed=ended is not None and ended.status in ("failed", "interrupted"),
        )

    def _end_in(self, tx: sqlite3.Connection) -> None:
        quota.release(tx, self._exchange.account_id, self._room_id)
        if self._message is None or self.ended is None:
            return
        call, said, now_seconds = self._call, self._call.message, self._clock()
        duration_ms = max(0, round((now_seconds - self._exchange.asked_at_seconds) * 1000))
        tokens = (call.usage["prompt_tokens"], call.usage["completion_tokens"])
        reason = call.finish_reason if self.ended.status == "complete" else None
        details = AnswerDetails(*tokens, call.cost_micros, duration_ms, reason, _reasoning(said), self._memory)
        memory.end(tx, self._message, _text(said), details, self.ended, now_seconds)

    @property
    def _memory(self) -> list[dict[str, Any]]:
        return [passage.as_json() for passage in self._exchange.passages]

    # --- the end for the caller

    def last_blocks(self) -> bytes:
        """Return the end of a stream after `ended`."""
        if self.ended is None or self.ended.status == "failed":
            return error_event(self.ended.error if self.ended and self.ended.error else ApiError("internal_error").error) + DONE
        delta = {} if self._call.begun else {"role": "assistant", "content": ""}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": self._call.finish_reason or "stop"}
        chunk: Chunk = {**self._call.head, "choices": [choice]}
        if self.ended.status in _STOPPED:
            chunk["status"] = self.ended.status
        return event(chunk) + DONE


def _text(message: dict[str, Any]) -> str:
    text: str = message.get("content") or message.get("refusal") or ""
    return text


def _reasoning(message: dict[str, Any]) -> str | None:
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return reasoning if isinstance(reasoning, str) else None
