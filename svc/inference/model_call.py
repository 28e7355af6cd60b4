"""The parts that all calls of a model share.

reserve() -> a hold of the highest possible cost (402) -> the engine, with retries and a fallback before the first
answer
end() -> the debit, at most the hold, exactly once: after success, a fault, an interrupt or a disconnect

The table of costs after an early end: "Money" in svc/OPERATING.md.
"""

import asyncio
import random
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from svc.billing import more_funds, wallet
from svc.billing.usage import UsageCounter, UsagePlace, add_call, add_overrun
from svc.db import Database
from svc.errors import ApiError, CallerStopped, ClientGone, UpstreamFault
from svc.groups import Group
from svc.ids import day_of, new_id
from svc.inference import fault_log, servers
from svc.inference.answer import upstream_errors
from svc.inference.catalog import Catalog, Model, Provider
from svc.inference.claim import Claim
from svc.inference.context_lengths import ContextLengths
from svc.inference.field_support import FieldSupport
from svc.metrics import Metrics
from svc.outbound.client import Outbound
from svc.retry import retry_write
from svc.workers import Mode

T = TypeVar("T")
_LONGEST_RETRY_SECONDS = 5.0
_RETRY_SECONDS = 0.2
_OF_CALLER = (ClientGone, CallerStopped)


@dataclass(frozen=True)
class Engines:
    """The parts of the process that calls need.

    `outbound` reaches the operator's model servers, `guarded` those of users. `clock` returns Unix seconds.
    `field_support` remembers which fields the model servers refuse, and `context_lengths` how long a prompt may be.
    `payments`: accounts can add funds.
    """

    catalog: Catalog
    outbound: Outbound
    guarded: Outbound
    db: Database
    usage: UsageCounter
    clock: Callable[[], float]
    metrics: Metrics
    context_lengths: ContextLengths
    field_support: FieldSupport
    payments: bool = False

    def way_to(self, provider: Provider) -> Outbound:
        """Return the client for a provider. The provider's owner decides which addresses are allowed."""
        return self.guarded if provider.byok else self.outbound


@dataclass(slots=True)
class Payer:
    """The account that pays, with the request and the key that the ledger names, and its group.

    `claim` keeps the answer to a request with an Idempotency-Key, in the transactions of the hold and the settlement.
    """

    account_id: str
    request_id: str
    key_id: str | None
    group: Group | None
    claim: Claim | None = None


@dataclass(slots=True)
class Bill:
    """The tokens and the cost of a call. The ledger shows `description`, or the tokens."""

    input_tokens: int
    output_tokens: int
    cost_micros: int
    description: str | None = None
    cached_input_tokens: int = 0


class ModelCall:
    """One call of a model, from its hold to its settlement. Each kind of call adds `hold_in` and `bill`.

    `async with call:` reserves, and settles exactly once, however the block ends. The transaction that stores an
    agent's run also reserves its first call. The one that stores the run's end also ends the last call.
    `paid` is whether the model has a price. `also` is written with the settlement. `log_fields` are for the log: model,
    amounts, cost in micros, upstream time in milliseconds. With over 30 attributes CPython would give each object a
    dictionary, which takes 5 % of a chat.
    """

    interrupt: Any = None  # of the answer: a ToolAnswer uses it, and has the two below
    known: Mapping[str, Any] = {}
    fit: Any = None  # the ContextFit of a session or a run
    tool_fields: Mapping[str, Any] = {}
    _choice: servers.Choice[Provider] | None = None  # among the servers of a provider with several addresses

    def __init__(self, model: Model, engines: Engines, payer: Payer) -> None:
        self._first_model = self._model = model
        self.paid = model.paid
        self._engines = engines
        self._payer = payer
        # Made here, so that a hold is settled even if the task that wrote it was cancelled.
        self._hold_id = new_id("hold", engines.clock(), random.randbytes) if self.paid else ""
        self.log_fields: dict[str, Any] = {"model": model.id}
        self.cost_micros = self._held_micros = 0
        self.also: Callable[[sqlite3.Connection], object] | None = None
        self._reserved = False  # there may be a hold
        self.settled = False  # the cost is on disk
        self._caller_ended = False  # the caller ended the call, and pays for the input as well
        self._failed = False  # it ended early for another reason: the caller pays only for the output that it has
        self._bill: Bill | None = None  # the settled one
        self._asked_at: float | None = None  # when the current attempt began, in monotonic seconds

    @property
    def request_id(self) -> str:
        return self._payer.request_id

    @property
    def claim(self) -> Claim | None:
        return self._payer.claim

    def hold_in(self, tx: sqlite3.Connection) -> None:
        """Hold the highest possible cost of a paid call, with `hold`."""
        raise NotImplementedError

    def bill(self) -> Bill:
        """Return the cost so far, at the prices of the model that answers."""
        raise NotImplementedError

    # --- money

    async def __aenter__(self) -> Self:
        try:
            await self.reserve()
            # Requests that arrived together reach this point one after another, and only then are they sent on. Each
            # half stays in the caches of the CPU, and a model server is woken once: 25 % of a busy server's free chat.
            await asyncio.sleep(0)
        except BaseException:
            await self.end()
            raise
        return self

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Awaitable[None]:
        return self.end(error)

    async def reserve(self) -> None:
        """Hold the highest possible cost of a paid call. Raises ApiError `insufficient_funds`,
        `spending_limit_reached`, `storage_unavailable`, and with a claim `quota_exceeded`.
        """
        db, payer, due = self._engines.db, self._payer, None
        claim = payer.claim
        if self._reserved or not (self.paid or claim):
            return
        self._reserved = self.paid  # even if this task is cancelled
        if claim:
            self.also = claim.settle_in
        try:
            if payer.group is not None:
                allowance_micros, now_seconds = payer.group.allowance_micros, self._engines.clock()
                due = db.look_up(wallet.allowance_due, payer.account_id, allowance_micros, now_seconds)
            # Unsynced: a power failure can only take a hold whose call has ended with it, and which the next start
            # would release. The settlement, which is synced, cannot be on disk without it.
            if due or claim:
                await db.write_as("first" if due else "unsynced", self.reserve_in)
            else:
                await db.write_as("unsynced", self.hold_in)
        except ApiError:
            self._reserved = False
            if claim:
                self.also = None
            raise

    def reserve_in(self, tx: sqlite3.Connection) -> None:
        """Reserve in a transaction of the caller, after the allowance. Raises what `reserve` does."""
        if claim := self._payer.claim:
            claim.claim_in(tx)
        if self.paid:
            if (group := self._payer.group) is not None:
                wallet.top_up(tx, self._payer.account_id, group.allowance_micros, self._engines.clock())
            self.hold_in(tx)
            self._reserved = True

    def hold(self, tx: sqlite3.Connection, amount_micros: int) -> None:
        self._held_micros = amount_micros
        payer, engines = self._payer, self._engines
        try:
            wallet.hold(tx, payer.account_id, self._hold_id, amount_micros, engines.clock(), payer.key_id)
        except ApiError as refusal:
            if refusal.code != "insufficient_funds":
                raise
            groups, micros = engines.catalog.groups, payer.group.allowance_micros if payer.group else 0
            contact = groups and groups.contact
            raise more_funds.advised(refusal, micros, engines.clock(), contact, payments=engines.payments) from None

    def spendable_micros(self, tx: sqlite3.Connection) -> int:
        return wallet.spendable_micros(tx, self._payer.account_id, self._payer.key_id, self._engines.clock())

    async def end(self, error: BaseException | None = None) -> None:
        """Charge the cost so far and release the rest of the hold; cancellations wait. A second call does nothing.

        `error` is the exception that ended the call early. Raises ApiError `storage_unavailable`. Then the cost is
        charged once there is room, or the hold is released by the next start.
        """
        if error is not None:
            self.note_early_end(of_caller=isinstance(error, _OF_CALLER))
        if not self.settled and (self._reserved or self.also):
            mode: Mode = "first" if self.paid else "unsynced"  # a run's end, which is synced, follows
            write: Callable[[], Awaitable[object]]
            write = partial(self._engines.db.write_as, mode, self._settle_in, self.also or (lambda tx: None))
            if claim := self._payer.claim:
                write = partial(claim.settled_by, write)
            await retry_write(write, self.note_unstored)
        self._note_settled()

    def note_early_end(self, *, of_caller: bool) -> None:
        """Note who has ended the call before its end. What was noted first counts, and nothing after its settlement."""
        if not (self.settled or self._caller_ended or self._failed):
            self._caller_ended, self._failed = of_caller, not of_caller

    def note_unstored(self, refusal: ApiError) -> None:
        """Note that the settlement cannot be stored now, so that the client gets an error."""
        self.note_early_end(of_caller=False)
        if claim := self._payer.claim:
            claim.release()

    async def end_with(self, record: Callable[[sqlite3.Connection], T]) -> T:
        """End the call in one transaction with `record`, which replaces `also`, and return its result. It may be
        repeated. Raises ApiError.
        """
        result = await self._engines.db.write(self._settle_in, record)
        self._note_settled()
        if claim := self._payer.claim:
            claim.settled()
        return result

    def _settle_in(self, tx: sqlite3.Connection, record: Callable[[sqlite3.Connection], T]) -> T:
        if self._reserved:
            self._debit_in(tx)
        return record(tx)

    def _debit_in(self, tx: sqlite3.Connection) -> None:
        bill, payer, now_seconds = self.bill(), self._payer, self._engines.clock()
        charged_micros: int | None = 0
        if self._held_micros:
            charged_micros = wallet.settle(
                tx,
                payer.account_id,
                self._hold_id,
                bill.cost_micros,
                model=self._model.id,
                input_tokens=bill.input_tokens,
                output_tokens=bill.output_tokens,
                request_id=payer.request_id,
                key_id=payer.key_id,
                description=bill.description,
                cached_input_tokens=bill.cached_input_tokens,
                now_seconds=now_seconds,
            )
        if charged_micros is None:  # the hold had ended before
            return
        self._bill, self.cost_micros = bill, charged_micros
        used = (bill.input_tokens, bill.output_tokens, charged_micros, 1, bill.cached_input_tokens)
        add_call(tx, self._usage_place(now_seconds), *used)
        self.log_fields["cost_micros"] = charged_micros
        if overrun_micros := bill.cost_micros - charged_micros:  # the operator's loss
            self.log_fields["overrun_micros"] = overrun_micros
            add_overrun(tx, day_of(now_seconds), self._model.id, overrun_micros)

    def _usage_place(self, now_seconds: float) -> UsagePlace:
        payer = self._payer
        group = payer.group.name if payer.group else ""
        return (payer.account_id, payer.key_id, self._model.id, day_of(now_seconds), group)

    def _note_settled(self) -> None:
        """Count the call once, even if it costs nothing."""
        if self.settled:
            return
        self.settled = True
        self.also = None  # this breaks the cycle of references: `also` refers to the run, and the run to this call
        bill, engines = self._bill, self._engines
        if not self.paid:
            bill = self.bill()
            used = (bill.input_tokens, bill.output_tokens, bill.cached_input_tokens)
            engines.usage.count(self._usage_place(engines.clock()), *used)
        if bill is not None:
            if bill.cost_micros > self.cost_micros:
                engines.metrics.count_overrun(bill.cost_micros - self.cost_micros)
            used = (bill.input_tokens, bill.output_tokens, bill.cached_input_tokens)
            engines.metrics.count_call(self._model.counted_as, *used, self.cost_micros)

    # --- the engine

    async def tried(self, ask: Callable[[Model], Awaitable[T]]) -> T:
        """Return the engine's first answer. An operator's provider gets a second attempt and then the fallback.

        Raises ApiError for a fault of the model server. Call `ended` at the end of the answer.
        """
        self._began_at = asked_at = time.monotonic()
        tries = 0
        while True:
            tries += 1
            self._asked_at = asked_at
            try:
                answer = await ask(self._model)
                seconds = time.monotonic() - asked_at
                self._engines.metrics.first_answer_seconds.observe(seconds, (self._model.counted_as,))
                return answer
            except UpstreamFault as fault:
                self.ended(fault)
                if await self.note_refusal(fault):
                    tries -= 1  # asked again in another form, which is not a second attempt
                elif self._choice and self._choice.has_other(fault, self._engines.clock()):
                    tries -= 1  # nor is another server
                elif not upstream_errors.retriable(fault) or not await self._try_again(fault, tries):
                    raise self.caller_error(fault) from fault
            asked_at = time.monotonic()

    def server_of(self, provider: Provider) -> Provider:
        """Return the server to ask: the provider itself, or the first one of its servers that has not failed."""
        if provider.servers is None:
            return provider
        if self._choice is None:
            engines = self._engines
            self._choice = servers.Choice(provider.servers, self.server_key(), engines.clock(), engines.metrics)
        return self._choice.server()

    def server_key(self) -> bytes:
        """Return the key by which a provider's server is chosen."""
        return servers.key_of(self._payer.request_id)

    def ended(self, fault: UpstreamFault | None = None) -> None:
        """Count the current attempt, if there is one, and note for the log which model answered and how
        long it took.
        """
        if self._asked_at is None:
            return
        ended_at, metrics = time.monotonic(), self._engines.metrics
        metrics.upstream_seconds.observe(ended_at - self._asked_at, (self._model.counted_as,))
        if fault is not None:
            metrics.faults.add(self._model.counted_as, fault.kind)
        self.log_fields["upstream_model"] = self._model.id
        self.log_fields["upstream_ms"] = round((ended_at - self._began_at) * 10_000) / 10
        self._asked_at = None

    async def note_refusal(self, fault: UpstreamFault) -> bool:
        """Note that the model server has done nothing. Return True if it should be asked at once in another form."""
        return False

    def can_ask(self, fallback: Model) -> bool:
        """Return whether the request can be sent to the fallback, in the format of its server."""
        return True

    async def _try_again(self, fault: UpstreamFault, tries: int) -> bool:
        """Return whether there is another attempt: after a pause the second one, and after that the fallback.

        If all servers of a provider have failed, there is no second attempt.
        """
        model = self._model
        if model is not self._first_model or model.provider is None or model.provider.byok:
            return False
        wait_seconds = _RETRY_SECONDS if fault.retry_after_seconds is None else fault.retry_after_seconds
        if tries == 1 and not (self._choice and self._choice.is_over) and wait_seconds <= _LONGEST_RETRY_SECONDS:
            await asyncio.sleep(wait_seconds)
            return True
        fallback = await self._engines.catalog.find(model.fallback) if model.fallback else None
        if fallback is None or fallback.kind != model.kind or fallback.dearer_than(model):
            return False
        if not self.can_ask(fallback):
            return False
        # The line of an answer by the fallback says why the model that was asked for has not answered.
        cause = fault_log.log_fields(fault, byok=False, model_name=model.name)
        self.log_fields |= {name.replace("upstream", "asked"): value for name, value in cause.items()}
        self._model, self._choice = fallback, None
        return True

    def caller_error(self, fault: UpstreamFault) -> ApiError:
        """Count the fault and return the error for the caller."""
        self.ended(fault)
        owner, byok = self._model.owner, self._model.byok
        self.log_fields.update(fault_log.log_fields(fault, byok=byok, model_name=self._model.name))
        return upstream_errors.caller_error(fault, provider=owner, byok=byok)
