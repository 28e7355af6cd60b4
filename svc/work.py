"""One paid call of a model: hold the worst case, ask the engine, settle what it cost (contract 4 and 6).

reserve() -> a hold in the wallet, the output limited to what it affords (402)
stream() / complete() -> attempts until the first byte -> engine (built-in | HTTP) -> svc/wire.py writes it anew
settle() -> the debit, at most the hold, exactly once: after success, fault, interrupt or a caller who left
"""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

from svc import builtin, upstream, wallet, wire
from svc.catalog import BUILTIN, Model
from svc.chat_request import drop_aiming_fields
from svc.engines import Engines, Payer
from svc.errors import ApiError, UpstreamFault
from svc.ids import new_id, random_base62
from svc.usage import Call

IMAGE_TOKENS = 8192
DEFAULT_OUTPUT_TOKENS = 4096
LEAST_OUTPUT_TOKENS = 16
_LONGEST_RETRY_SECONDS = 5.0
_RETRY_SECONDS = 0.2
_SETTLE_LATER_SECONDS = 2.0


class ChatCall:
    """One chat-completions request to `model`; `body` has been checked.

    `facts` collects what the log may know: model, tokens, cost in micros, upstream time in milliseconds.
    """

    def __init__(self, model: Model, body: dict[str, Any], engines: Engines, payer: Payer) -> None:
        self._asked = self._model = model
        self._body = body
        self._engines = engines
        self._payer = payer
        # Made here, so that a hold whose writing nobody waited for is settled all the same.
        self._hold_id = new_id("hold", engines.clock())
        self._held_micros = 0
        self._reserved = self._settled = False
        self.begun = False  # whether there is anything of an answer
        self._answered = False  # to its end
        self.cost_micros = 0
        options = body.get("stream_options") or {}
        self._identity: Any = {"id": "chatcmpl-" + random_base62(29), "created": int(engines.clock()), "model": model.id}
        self._writer = wire.ChunkWriter(**self._identity, include_usage=bool(options.get("include_usage")), request=body)
        self._answer: dict[str, Any] | None = None
        self.facts: dict[str, Any] = {"model": model.id}

    @property
    def paid(self) -> bool:
        """Whether the model has a price."""
        return any(self._asked.prices.values())

    @property
    def message(self) -> dict[str, Any]:
        """The assistant's message, as far as it has come."""
        if self._answer is not None:
            first: dict[str, Any] = self._answer["choices"][0]["message"]
            return first
        return self._writer.content()

    @property
    def usage(self) -> dict[str, int]:
        """The tokens of the call; none when it ended without any output, which costs nothing (contract 6)."""
        if self._answer is not None:
            usage = self._answer["usage"]
        elif self._answered:
            usage = self._writer.usage
        else:
            usage = self._usage_so_far() if self._writer.text_bytes else {}
        return {name: usage.get(name, 0) for name in ("prompt_tokens", "completion_tokens", "total_tokens")}

    def _usage_so_far(self) -> dict[str, int]:
        # What a model server counts on the way may be a mere placeholder (0 until the end): it is not less than was produced.
        reported, produced = self._writer.usage, wire.estimated_tokens(self._writer.text_bytes)
        prompt = reported["prompt_tokens"] or wire.estimated_tokens(wire.text_bytes(self._body))
        completion = max(reported["completion_tokens"], produced)
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}

    # --- money

    async def reserve(self) -> None:
        """Holds the worst case of a paid call. Raises ApiError `insufficient_funds`, `storage_unavailable`."""
        if not self.paid or self._reserved:
            return
        self._reserved = True  # from here on there may be a hold, even if this task is cancelled
        try:
            await self._engines.db.write(self.reserve_in)
        except ApiError:
            self._reserved = False
            raise

    def reserve_in(self, tx: sqlite3.Connection) -> None:
        """`reserve` inside a transaction. The output is limited to what the wallet affords (contract 6)."""
        if not self.paid:
            return
        prices, choices = self._asked.prices, self._body.get("n") or 1
        input_tokens = wire.text_bytes(self._body) + IMAGE_TOKENS * wire.image_parts(self._body)
        limits = {name: self._body[name] for name in ("max_completion_tokens", "max_tokens") if self._body.get(name)}
        wanted = min(limits.values(), default=DEFAULT_OUTPUT_TOKENS)
        available_micros = wallet.available_micros(tx, self._payer.account_id)
        affordable = wallet.affordable_output_tokens(prices, input_tokens, available_micros) // choices
        # Below the least useful answer the hold is tried as it is, and refused with what is missing.
        granted = min(wanted, max(affordable, LEAST_OUTPUT_TOKENS))
        self._held_micros = wallet.cost_micros(prices, input_tokens, granted * choices)
        wallet.hold(tx, self._payer.account_id, self._hold_id, self._held_micros, self._engines.clock())
        self._reserved = True
        self._body = {**self._body, **dict.fromkeys(limits or ("max_tokens",), granted)}

    async def settle(self) -> None:
        """Pays for the call as far as it came, and releases the rest of its hold; waits through cancellations.

        Raises ApiError `storage_unavailable`; then it is paid once there is room.
        """
        if self._reserved and not self._settled:
            await _through_cancellations(self._settle())
        self.mark_settled()

    async def _settle(self) -> None:
        try:
            await self._engines.db.write(self.settle_in)
        except ApiError:
            self._answer = None  # its caller gets the error in its place, and pays nothing
            asyncio.ensure_future(self._settle_later())
            raise

    async def _settle_later(self) -> None:
        """Tries until it is written. Where the process ends before, the next start releases the hold."""
        while True:
            await asyncio.sleep(_SETTLE_LATER_SECONDS)
            try:
                await self._engines.db.write(self.settle_in)
                return
            except ApiError as error:
                if error.code == "shutting_down":
                    return

    def mark_settled(self) -> None:
        """To be called when the transaction of `settle_in` is on disk. Counts a call that costs nothing."""
        if not self.paid and not self._settled:
            input_tokens, output_tokens = self._tokens()
            day = wallet.day_of(self._engines.clock())
            self._engines.usage.count(Call(self._payer.account_id, self._model.id, input_tokens, output_tokens, day))
        self._settled = True

    def settle_in(self, tx: sqlite3.Connection) -> None:
        """`settle` of a paid call inside a transaction, for instance the one that ends an agent run; a further one is nothing."""
        if not self.paid or (self._held_micros and not wallet.is_held(tx, self._payer.account_id, self._hold_id)):
            return
        now_seconds = self._engines.clock()
        input_tokens, output_tokens = self._tokens()
        cost_micros = wallet.cost_micros(self._model.prices, input_tokens, output_tokens)
        self.cost_micros = wallet.settle(
            tx,
            self._payer.account_id,
            self._hold_id,
            cost_micros,
            model=self._model.id,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            request_id=self._payer.request_id,
            key_id=self._payer.key_id,
            now_seconds=now_seconds,
        )
        day = wallet.day_of(now_seconds)
        wallet.count_usage(tx, self._payer.account_id, self._model.id, input_tokens, output_tokens, self.cost_micros, day)
        self.facts["cost_micros"] = self.cost_micros
        if cost_micros > self.cost_micros:  # more than was held: the operator's loss (contract 6)
            self.facts["overrun_micros"] = cost_micros - self.cost_micros

    def _tokens(self) -> tuple[int, int]:
        usage = self.usage
        return usage["prompt_tokens"], usage["completion_tokens"]

    # --- the answer

    async def stream(self) -> AsyncGenerator[dict[str, Any], None]:
        """The answer's chunks in the shape of wire.md. Raises ApiError for a fault of the upstream, at any moment."""
        try:
            async with contextlib.aclosing(self._raw()) as answers:
                async for raw in answers:
                    for chunk in self._writer.feed(raw):
                        self.begun = True
                        yield chunk
            last = self._writer.finish()
            self._answered = True
            for chunk in last:
                yield chunk
        except UpstreamFault as fault:
            raise self._caller_error(fault) from fault
        finally:
            self._note_usage()

    async def complete(self) -> dict[str, Any]:
        """The answer as one `chat.completion`. Raises ApiError for a fault of the upstream."""
        try:
            async with contextlib.aclosing(self._raw()) as answers:
                raw = await anext(answers)
            self._answer = wire.completion(raw, **self._identity, request=self._body)
            self.begun = True
        except UpstreamFault as fault:
            raise self._caller_error(fault) from fault
        finally:
            self._note_usage()
        return self._answer

    def _note_usage(self) -> None:
        input_tokens, output_tokens = self._tokens()
        self.facts.update(input_tokens=input_tokens, output_tokens=output_tokens)

    async def _raw(self) -> AsyncGenerator[dict[str, Any], None]:
        """The engine's raw answers. Before the first one, an operator's provider gets a second try and then the fallback."""
        began = time.monotonic()
        tries, answered = 0, False
        while True:
            tries += 1
            try:
                async with contextlib.aclosing(self._engine(self._model)) as answers:
                    async for raw in answers:
                        answered = True
                        yield raw
                return
            except UpstreamFault as fault:
                if answered or not upstream.retriable(fault) or not await self._try_again(fault, tries):
                    raise
            finally:
                self.facts.update(upstream_model=self._model.id, upstream_ms=round((time.monotonic() - began) * 1000, 1))

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

    def _engine(self, model: Model) -> AsyncGenerator[dict[str, Any], None]:
        body = {**self._body, "model": model.name}
        if model.provider is None:
            return builtin.chat(model.name, body, self._engines.clock)
        body = body if model.provider.byok else drop_aiming_fields(body)
        return upstream.chat(self._engines.way_to(model.provider), model.provider, body)

    def _caller_error(self, fault: UpstreamFault) -> ApiError:
        provider = self._model.provider
        if provider is None:
            return upstream.caller_error(fault, provider=BUILTIN, byok=False)
        return upstream.caller_error(fault, provider=provider.name, byok=provider.byok)


async def _waited(fault: UpstreamFault) -> bool:
    """Waits as long as the upstream asked for before a second try; False if that is too long (contract 4)."""
    wait_seconds = _RETRY_SECONDS if fault.retry_after_seconds is None else fault.retry_after_seconds
    if wait_seconds > _LONGEST_RETRY_SECONDS:
        return False
    await asyncio.sleep(wait_seconds)
    return True


async def _through_cancellations(work: Coroutine[Any, Any, None]) -> None:
    """Waits for the end of `work` whatever happens to this task; a cancellation meanwhile is raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # looked at, so that nobody complains of it
        raise cancelled
    task.result()
