"""What every call of a model needs of the process, and what all paid calls have in common.

reserve() -> a hold of the worst case (402) -> the engine, asked again or its fallback before the first answer
end() -> the debit, at most the hold, exactly once: after success, fault, interrupt or a caller who left
"""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from svc.billing import wallet
from svc.billing.usage import CountedCall, UsageCounter, add_call, add_overrun, day_of
from svc.db import Database
from svc.errors import ApiError, ClientGone, UpstreamFault
from svc.ids import new_id
from svc.inference import upstream_errors
from svc.inference.catalog import BUILTIN, Catalog, Model, Provider
from svc.inference.field_support import FieldSupport
from svc.metrics import Metrics
from svc.outbound.client import Outbound
from svc.retry import retry_write
from svc.workers import Mode

T = TypeVar("T")
_LONGEST_RETRY_SECONDS = 5.0
_RETRY_SECONDS = 0.2


@dataclass(frozen=True)
class Engines:
    """`outbound` is the way to the operator's model servers, `guarded` the one to the users' own; `clock` gives Unix seconds.

    `field_support` remembers which fields the model servers refuse.
    """

    catalog: Catalog
    outbound: Outbound
    guarded: Outbound
    db: Database
    usage: UsageCounter
    clock: Callable[[], float]
    metrics: Metrics
    field_support: FieldSupport = field(default_factory=FieldSupport)

    def way_to(self, provider: Provider) -> Outbound:
        """The client through which a provider is asked: whoever its owner is decides which addresses it may have."""
        return self.guarded if provider.byok else self.outbound


@dataclass(slots=True)
class Payer:
    """Whose wallet pays, and under which request and key it stands in the ledger."""

    account_id: str
    request_id: str
    key_id: str | None


@dataclass(slots=True)
class Bill:
    """What a call has used and costs; the ledger says `description`, or the tokens."""

    input_tokens: int
    output_tokens: int
    cost_micros: int
    description: str | None = None


class PaidCall:
    """One call of a model, from its hold to its settlement; each kind of call adds `reserve_in` and `bill`.

    `async with call:` reserves, and settles exactly once, however the block ends. Agent runs call `reserve`, and `end` after each
    step; their last call is settled by `end_in`, in the transaction of the run's record.
    `paid` is whether the model has a price. `also` is written in the transaction of the settlement. `log_fields` are what the
    log may show: model, amounts, cost in micros, upstream time in milliseconds.
    """

    def __init__(self, model: Model, engines: Engines, payer: Payer) -> None:
        self._asked = self._model = model
        self.paid = model.paid
        self._engines = engines
        self._payer = payer
        # Made here, so that a hold is settled even if the task that wrote it was cancelled.
        self._hold_id = new_id("hold", engines.clock()) if self.paid else ""
        self.log_fields: dict[str, Any] = {"model": model.id}
        self.cost_micros = self._held_micros = 0
        self.also: Callable[[sqlite3.Connection], object] | None = None
        self._reserved = False
        self.settled = False  # what it cost is on disk
        self._left = False  # the caller has left after the model was asked, and pays for what the model has read, too
        self._failed = False  # the caller gets an error in the place of the answer, and does not pay for what was not sent
        self._bill: Bill | None = None  # what was settled
        self._asked_at: float | None = None  # when the try that is under way began, in monotonic seconds

    @property
    def request_id(self) -> str:
        return self._payer.request_id

    def bill(self) -> Bill:
        """Return what the call has come to so far, at the prices of the model that answers."""
        raise NotImplementedError

    def reserve_in(self, tx: sqlite3.Connection) -> None:
        """`reserve` inside a transaction."""
        raise NotImplementedError

    # --- money

    async def __aenter__(self) -> Self:
        try:
            await self.reserve()
        except BaseException:
            await self.end()
            raise
        return self

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Awaitable[None]:
        return self.end(error)

    async def reserve(self) -> None:
        """Hold the worst case of a paid call. Raises ApiError `insufficient_funds`, `storage_unavailable`."""
        if not self.paid or self._reserved:
            return
        self._reserved = True  # from here on there may be a hold, even if this task is cancelled
        try:
            # Unsynced: a power failure can only take a hold whose call has ended with it, and which the next start would release.
            # The settlement, which is synced, cannot be on disk without it.
            await self._engines.db.write_as("unsynced", self.reserve_in)
        except ApiError:
            self._reserved = False
            raise

    def hold(self, tx: sqlite3.Connection, amount_micros: int) -> None:
        """Hold the worst case. Raises ApiError `insufficient_funds`."""
        self._held_micros = amount_micros
        wallet.hold(tx, self._payer.account_id, self._hold_id, amount_micros, self._engines.clock())
        self._reserved = True

    async def end(self, error: BaseException | None = None) -> None:
        """Pay for the call as far as it came, and release the rest of its hold; cancellations wait. A second call does nothing.

        `error` is what ended it early. Raises ApiError `storage_unavailable`; then it is paid once there is room, or released by
        the next start.
        """
        if isinstance(error, asyncio.CancelledError | GeneratorExit | ClientGone):
            self._left = True
        elif error is not None:
            self._failed = True
        if not self.settled and (self._reserved or self.also):
            db = self._engines.db
            mode: Mode = "first" if self.paid else "unsynced"  # a run's end, which is synced, follows
            await retry_write(partial(db.write_as, mode, self._settle_in, self.also or _write_nothing), self._note_failure)
        self._note_settled()

    async def end_in(self, record: Callable[[sqlite3.Connection], T], *, left: bool) -> T:
        """End the call in one transaction with `record`, which is written in the place of `also`, and return its result.

        `left` is whether the caller has left. It may be repeated until it succeeds. Raises ApiError.
        """
        self._left = self._left or (left and not self.settled)
        result = await self._engines.db.write(self._settle_in, record)
        self._note_settled()
        return result

    def _note_failure(self, error: ApiError) -> None:
        self._failed = True

    def _note_settled(self) -> None:
        """Count the call, one that costs nothing too."""
        if self.settled:
            return
        self.settled = True
        self.also = None  # it refers to the run, which refers to this call
        if not self.paid:
            self._bill = self.bill()
            row = (self._payer.account_id, self._payer.key_id, self._model.id, day_of(self._engines.clock()))
            self._engines.usage.count(row, self._bill.input_tokens, self._bill.output_tokens)
        if (bill := self._bill) is not None:
            metrics = self._engines.metrics
            if bill.cost_micros > self.cost_micros:
                metrics.count_overrun(bill.cost_micros - self.cost_micros)
            metrics.count_call(self._model.counted_as, bill.input_tokens, bill.output_tokens, self.cost_micros)

    def _settle_in(self, tx: sqlite3.Connection, record: Callable[[sqlite3.Connection], T]) -> T:
        self._debit_in(tx)
        return record(tx)

    def _debit_in(self, tx: sqlite3.Connection) -> None:
        if not self.paid or not self._reserved:
            return
        bill, now_seconds = self.bill(), self._engines.clock()
        charged_micros: int | None = 0
        if self._held_micros:
            charged_micros = wallet.settle(
                tx,
                self._payer.account_id,
                self._hold_id,
                bill.cost_micros,
                model=self._model.id,
                input_tokens=bill.input_tokens,
                output_tokens=bill.output_tokens,
                request_id=self._payer.request_id,
                key_id=self._payer.key_id,
                description=bill.description,
                now_seconds=now_seconds,
            )
        if charged_micros is None:  # the hold had ended before
            return
        self._bill, self.cost_micros = bill, charged_micros
        counted = (self._payer.account_id, self._payer.key_id, self._model.id, bill.input_tokens, bill.output_tokens)
        add_call(tx, CountedCall(*counted, charged_micros, day_of(now_seconds)))
        self.log_fields["cost_micros"] = charged_micros
        if overrun_micros := bill.cost_micros - charged_micros:  # more than was held: the operator's loss
            self.log_fields["overrun_micros"] = overrun_micros
            add_overrun(tx, day_of(now_seconds), self._model.id, overrun_micros)

    # --- the engine

    async def tried(self, ask: Callable[[Model], Awaitable[T]]) -> T:
        """What the engine answers first. An operator's provider gets a second try and then the fallback.

        Raises ApiError for a fault of the model server. `ended` is to be called when there is no more of the answer.
        """
        self._began_at = asked_at = time.monotonic()
        tries = 0
        while True:
            tries += 1
            self._asked_at = asked_at
            try:
                answer = await ask(self._model)
                self._engines.metrics.first_answer_seconds.observe(time.monotonic() - asked_at, (self._model.counted_as,))
                return answer
            except UpstreamFault as fault:
                self.ended(fault)
                if await self.refused(fault):
                    tries -= 1  # asked again in another form, which is not a second try
                elif not upstream_errors.retriable(fault) or not await self._try_again(fault, tries):
                    raise self.caller_error(fault) from fault
            asked_at = time.monotonic()

    async def with_retries(self, ask: Callable[[Model], AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
        """The engine's answers one by one, the first as it is `tried`. Raises ApiError for a fault of the model server."""
        async with contextlib.AsyncExitStack() as stack:

            async def first(model: Model) -> tuple[T | None, AsyncGenerator[T, None]]:
                answers = await stack.enter_async_context(contextlib.aclosing(ask(model)))
                return await anext(answers, None), answers

            try:
                answer, answers = await self.tried(first)
                while answer is not None:
                    yield answer
                    answer = await anext(answers, None)
            except UpstreamFault as fault:
                self.ended(fault)
                raise self.caller_error(fault) from fault
            finally:
                self.ended()

    def ended(self, fault: UpstreamFault | None = None) -> None:
        """Counts the try that is under way, if there is one, and notes for the log which model has answered, and how long."""
        if self._asked_at is None:
            return
        ended_at, metrics = time.monotonic(), self._engines.metrics
        metrics.upstream_seconds.observe(ended_at - self._asked_at, (self._model.counted_as,))
        if fault is not None:
            metrics.faults.add(self._model.counted_as, fault.kind)
        self.log_fields["upstream_model"] = self._model.id
        self.log_fields["upstream_ms"] = round((ended_at - self._began_at) * 10_000) / 10
        self._asked_at = None

    async def refused(self, fault: UpstreamFault) -> bool:
        """Note that the model server has done nothing. Return True if it should be asked at once in another form."""
        return False

    async def _try_again(self, fault: UpstreamFault, tries: int) -> bool:
        """Whether there is a further try; it waits for the second one, and turns to the fallback after that."""
        model = self._model
        if model is not self._asked or model.provider is None or model.provider.byok:
            return False
        if tries == 1 and await _waited(fault):
            return True
        fallback = await self._engines.catalog.find(model.fallback) if model.fallback else None
        if fallback is None or fallback.kind != model.kind or fallback.dearer_than(model):
            return False
        self._model = fallback
        return True

    def caller_error(self, fault: UpstreamFault) -> ApiError:
        """What the caller sees of a fault of the model that answers."""
        provider = self._model.provider
        name, byok = (BUILTIN, False) if provider is None else (provider.name, provider.byok)
        self.log_fields.update(upstream_errors.log_fields(fault, byok=byok))
        return upstream_errors.caller_error(fault, provider=name, byok=byok)


def _write_nothing(tx: sqlite3.Connection) -> None:
    pass


async def _waited(fault: UpstreamFault) -> bool:
    """Waits as long as the upstream asked for before a second try; False if that is too long."""
    wait_seconds = _RETRY_SECONDS if fault.retry_after_seconds is None else fault.retry_after_seconds
    if wait_seconds > _LONGEST_RETRY_SECONDS:
        return False
    await asyncio.sleep(wait_seconds)
    return True
