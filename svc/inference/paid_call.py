"""What every call of a model needs of the process, and what all paid calls have in common.

reserve() -> a hold of the worst case (402) -> the engine, asked again or its fallback before the first answer
settle() -> the debit, at most the hold, exactly once: after success, fault, interrupt or a caller who left
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
from svc.durable import write_until_done
from svc.errors import ApiError, ClientGone, UpstreamFault
from svc.ids import new_id
from svc.inference import upstream_errors
from svc.inference.catalog import BUILTIN, Catalog, Model, Provider
from svc.inference.field_support import FieldSupport
from svc.metrics import Metrics
from svc.outbound.client import Outbound

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
    """One call of a model; each kind of call adds what it asks for (`reserve_in`) and what it has come to (`bill`).

    `paid` tells whether the model has a price. `log_fields` are what the log may know: model, amounts, cost in micros, upstream
    time in milliseconds.
    """

    # Without them it had a dictionary, in which its many attributes take longer to find.
    __slots__ = (
        *("beside", "cost_micros", "log_fields", "paid", "_asked", "_asked_at", "_began_at", "_engines", "_held_micros"),
        *("_hold_id", "_model", "_overrun_micros", "_paid", "_payer", "_reserved", "_settled"),
    )

    def __init__(self, model: Model, engines: Engines, payer: Payer) -> None:
        self._asked = self._model = model
        self.paid = model.paid
        self._engines = engines
        self._payer = payer
        # Made here, so that a hold whose writing nobody waited for is settled all the same.
        self._hold_id = new_id("hold", engines.clock()) if self.paid else ""
        self.log_fields: dict[str, Any] = {"model": model.id}
        self.cost_micros = self._held_micros = self._overrun_micros = 0
        # What else is written in the transaction of the settlement, for instance how far the agent's run is.
        self.beside: Callable[[sqlite3.Connection], None] | None = None
        self._reserved = self._settled = False
        self._paid: Bill | None = None  # what the settlement was for
        self._asked_at: float | None = None  # when the try that is under way began, in monotonic seconds

    @property
    def settled(self) -> bool:
        """Whether what it cost is on disk."""
        return self._settled

    def bill(self) -> Bill:
        """What the call has come to so far, at the prices of the model that answers."""
        raise NotImplementedError

    def void(self) -> None:
        """Drops what was produced and not sent: the caller gets an error in its place, and does not pay for it."""
        raise NotImplementedError

    def abandon(self) -> None:
        """The caller has left, or stopped the run, after the model was asked: it pays for what the model has read, too."""

    # --- money

    async def __aenter__(self) -> Self:
        """Begins a call that is settled exactly once, however the block ends; raises what `reserve` does."""
        if self.paid:
            try:
                await self.reserve()
            except BaseException:
                await self.settle()
                raise
        return self

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Awaitable[None]:
        """A caller who leaves has what was sent; for one who gets an error in the place of the answer the call is void."""
        if error is not None:
            (self.abandon if isinstance(error, asyncio.CancelledError | GeneratorExit | ClientGone) else self.void)()
        return self.settle()

    async def reserve(self) -> None:
        """Holds the worst case of a paid call. Raises ApiError `insufficient_funds`, `storage_unavailable`."""
        if not self.paid or self._reserved:
            return
        self._reserved = True  # from here on there may be a hold, even if this task is cancelled
        try:
            # Unsynced: what a power failure takes from the disk is a hold whose call has ended with it, and which the next start
            # would have released. The settlement, which is synced, cannot be there without it.
            await self._engines.db.write_unsynced(self.reserve_in)
        except ApiError:
            self._reserved = False
            raise

    def reserve_in(self, tx: sqlite3.Connection) -> None:
        """`reserve` inside a transaction."""
        raise NotImplementedError

    def hold(self, tx: sqlite3.Connection, amount_micros: int) -> None:
        """Sets the worst case aside. Raises ApiError `insufficient_funds`."""
        self._held_micros = amount_micros
        wallet.hold(tx, self._payer.account_id, self._hold_id, amount_micros, self._engines.clock())
        self._reserved = True

    async def settle(self) -> None:
        """Pays for the call as far as it came, and releases the rest of its hold; waits through cancellations.

        Raises ApiError `storage_unavailable`; then it is paid once there is room. Where the process ends before, the next start
        releases the hold.
        """
        if (self._reserved or self.beside) and not self._settled:
            db = self._engines.db
            write = db.write_first if self.paid else db.write_unsynced  # how far a run is: its end, which is synced, follows
            await write_until_done(partial(write, self.settle_in), lambda error: self.void())
        self.mark_settled()

    def mark_settled(self) -> None:
        """To be called when the transaction of `settle_in` is on disk. Counts the call, what costs nothing too."""
        if self._settled:
            return
        self._settled = True
        self.beside = None  # whose run may hold this call
        if self._overrun_micros:
            self._engines.metrics.count_overrun(self._overrun_micros)
        if not self.paid:
            bill = self._paid = self.bill()
            payer = self._payer
            row = (payer.account_id, payer.key_id, self._model.id, day_of(self._engines.clock()))
            self._engines.usage.count(row, bill.input_tokens, bill.output_tokens)
        if self._paid is not None:
            paid = self._paid
            self._engines.metrics.count_call(self._model.counted_as, paid.input_tokens, paid.output_tokens, self.cost_micros)

    def settle_in(self, tx: sqlite3.Connection) -> None:
        """`settle` inside a transaction, for instance the one that ends an agent run; a further one is nothing."""
        self._debit_in(tx)
        if self.beside:
            self.beside(tx)

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
        self._paid, self.cost_micros = bill, charged_micros
        counted = (self._payer.account_id, self._payer.key_id, self._model.id, bill.input_tokens, bill.output_tokens)
        add_call(tx, CountedCall(*counted, charged_micros, day_of(now_seconds)))
        self.log_fields["cost_micros"] = charged_micros
        self._overrun_micros = bill.cost_micros - charged_micros
        if self._overrun_micros:  # more than was held: the operator's loss
            self.log_fields["overrun_micros"] = self._overrun_micros
            add_overrun(tx, day_of(now_seconds), self._model.id, self._overrun_micros)

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


async def _waited(fault: UpstreamFault) -> bool:
    """Waits as long as the upstream asked for before a second try; False if that is too long."""
    wait_seconds = _RETRY_SECONDS if fault.retry_after_seconds is None else fault.retry_after_seconds
    if wait_seconds > _LONGEST_RETRY_SECONDS:
        return False
    await asyncio.sleep(wait_seconds)
    return True
