"""One paid call of a model: hold the worst case, ask the engine, settle what it cost (contract 4 and 6).

    reserve() -> a hold in the wallet, the output limited to what it affords (402)
    stream() / complete() -> attempts until the first byte -> engine (built-in | HTTP) -> svc/wire.py writes it anew
    settle() -> the debit, at most the hold, exactly once: after success, fault, interrupt or a caller who left
"""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

from svc import builtin, upstream, wallet, wire
from svc.catalog import BUILTIN, Catalog, Model
from svc.chat_request import drop_aiming_fields
from svc.db import Database
from svc.errors import ApiError, UpstreamFault
from svc.ids import new_id, random_base62
from svc.outbound import Outbound

IMAGE_TOKENS = 8192
DEFAULT_OUTPUT_TOKENS = 4096
LEAST_OUTPUT_TOKENS = 16
_LONGEST_RETRY_SECONDS = 5.0
_RETRY_SECONDS = 0.2


@dataclass(frozen=True)
class Engines:
    """What every call needs of the process: the catalog, the way out, the wallet's database, the clock in Unix seconds."""

    catalog: Catalog
    outbound: Outbound
    db: Database
    clock: Callable[[], float]


@dataclass(frozen=True)
class Payer:
    """Whose wallet pays, and under which request and key it stands in the ledger."""

    account_id: str
    request_id: str
    key_id: str | None


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
        self._reserved = self._settled = False
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
        return self._writer.content()

    @property
    def usage(self) -> dict[str, int]:
        """The tokens of the call; none when it ended without any output, which costs nothing (contract 6)."""
        if self._answer is not None:
            usage = self._answer["usage"]
        elif self._answered or self._writer.text_bytes:
            usage = self._writer.usage
        else:
            usage = {}
        return {name: usage.get(name, 0) for name in ("prompt_tokens", "completion_tokens", "total_tokens")}

    # --- money

    async def reserve(self) -> None:
        """Holds the worst case of a paid call. Raises ApiError `insufficient_funds`, `storage_unavailable`."""
        if self.paid and not self._reserved:
            await self._engines.db.write(self.reserve_in)

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
        amount_micros = wallet.cost_micros(prices, input_tokens, granted * choices)
        wallet.hold(tx, self._payer.account_id, self._hold_id, amount_micros, self._engines.clock())
        self._reserved = True
        self._body = {**self._body, **dict.fromkeys(limits or ("max_tokens",), granted)}

    async def settle(self) -> None:
        """Pays for the call as far as it came, and releases the rest of its hold. Raises ApiError `storage_unavailable`."""
        if self.paid and not self._settled:
            await self._engines.db.write(self.settle_in)
            self._settled = True

    def settle_in(self, tx: sqlite3.Connection) -> None:
        """`settle` inside a transaction, for instance the one that ends an agent run. Without a hold it does nothing."""
        if not self.paid or self._settled:
            return
        usage = self.usage
        self.cost_micros = wallet.settle(
            tx,
            self._payer.account_id,
            self._hold_id,
            wallet.cost_micros(self._model.prices, usage["prompt_tokens"], usage["completion_tokens"]),
            model=self._model.id,
            input_tokens=usage["prompt_tokens"],
            output_tokens=usage["completion_tokens"],
            request_id=self._payer.request_id,
            key_id=self._payer.key_id,
            now_seconds=self._engines.clock(),
        )
        self.facts["cost_micros"] = self.cost_micros

    # --- the answer

    async def stream(self) -> AsyncGenerator[dict[str, Any], None]:
        """The answer's chunks in the shape of wire.md. Raises ApiError for a fault of the upstream, at any moment."""
        try:
            async with contextlib.aclosing(self._raw()) as answers:
                async for raw in answers:
                    for chunk in self._writer.feed(raw):
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
        except UpstreamFault as fault:
            raise self._caller_error(fault) from fault
        finally:
            self._note_usage()
        return self._answer

    def _note_usage(self) -> None:
        usage = self.usage
        self.facts.update(input_tokens=usage["prompt_tokens"], output_tokens=usage["completion_tokens"])

    async def _raw(self) -> AsyncGenerator[dict[str, Any], None]:
        """The engine's raw answers. Before the first one, an operator's provider gets a second try and then the fallback."""
        began = time.monotonic()
        fault: UpstreamFault | None = None
        answered = False
        async for model in self._attempts():
            if fault and model is self._model and not await _waited(fault):
                continue
            self._model = model
            try:
                async with contextlib.aclosing(self._engine(model)) as answers:
                    async for raw in answers:
                        answered = True
                        yield raw
                return
            except UpstreamFault as error:
                if answered or not upstream.retriable(error):
                    raise
                fault = error
            finally:
                self.facts.update(upstream_model=model.id, upstream_ms=round((time.monotonic() - began) * 1000, 1))
        raise fault or UpstreamFault("invalid")

    async def _attempts(self) -> AsyncGenerator[Model, None]:
        model = self._model
        yield model
        if model.provider is None:
            return
        yield model
        fallback = await self._engines.catalog.find(model.fallback) if model.fallback else None
        if fallback and fallback.kind == model.kind and not fallback.dearer_than(model):
            yield fallback

    def _engine(self, model: Model) -> AsyncGenerator[dict[str, Any], None]:
        body = {**self._body, "model": model.name}
        if model.provider is None:
            return builtin.chat(model.name, body, self._engines.clock)
        return upstream.chat(self._engines.outbound, model.provider, drop_aiming_fields(body))

    def _caller_error(self, fault: UpstreamFault) -> ApiError:
        provider = self._model.provider
        return upstream.caller_error(fault, provider=provider.name if provider else BUILTIN, byok=False)


async def chat_model(catalog: Catalog, wanted: Any, default_model: str | None) -> Model:
    """The chat model that a request names, else the account's default, the operator's, or the built-in assistant (contract 4).

    Raises ApiError `invalid_value`, `model_not_found`.
    """
    model_id = wanted or default_model or catalog.default_model or f"{BUILTIN}/assistant"
    if not isinstance(model_id, str):
        raise ApiError("invalid_value", "model must be a string, an id of GET /v1/models.", param="model")
    model = await catalog.find(model_id)
    if model is None:
        raise ApiError("model_not_found", f"There is no model {model_id[:200]!r} here. GET /v1/models lists them.", param="model")
    if model.kind != "chat":
        raise ApiError("invalid_value", f"{model_id!r} is no chat model but one for {model.kind}.", param="model")
    return model


async def _waited(fault: UpstreamFault) -> bool:
    """Waits as long as the upstream asked for before a second try; False if that is too long (contract 4)."""
    wait_seconds = _RETRY_SECONDS if fault.retry_after_seconds is None else fault.retry_after_seconds
    if wait_seconds > _LONGEST_RETRY_SECONDS:
        return False
    await asyncio.sleep(wait_seconds)
    return True
