"""One call of a model: which engine answers, one more try, the fallback, and its answer written anew (contract 4).

ChatCall.stream / .complete -> _raw(): attempts until the first byte -> engine (built-in | HTTP) -> svc/wire.py
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

from svc import builtin, upstream, wire
from svc.catalog import BUILTIN, Catalog, Model
from svc.chat_request import drop_aiming_fields
from svc.errors import ApiError, UpstreamFault
from svc.ids import random_base62
from svc.outbound import Outbound

_LONGEST_RETRY_SECONDS = 5.0
_RETRY_SECONDS = 0.2


class ChatCall:
    """One chat-completions request to `model`. `body` has been checked; `clock` gives Unix seconds.

    `facts` collects what the log may know: model, tokens, upstream time.
    """

    def __init__(
        self, model: Model, body: dict[str, Any], *, catalog: Catalog, outbound: Outbound, clock: Callable[[], float]
    ) -> None:
        self._model = model
        self._body = body
        self._catalog = catalog
        self._outbound = outbound
        self._clock = clock
        self._identity = {"id": "chatcmpl-" + random_base62(29), "created": int(clock()), "model": model.id}
        self.facts: dict[str, Any] = {"model": model.id}

    async def stream(self) -> AsyncGenerator[dict[str, Any], None]:
        """The answer's chunks in the shape of wire.md. Raises ApiError for a fault of the upstream, at any moment."""
        options = self._body.get("stream_options") or {}
        writer = wire.ChunkWriter(**self._identity, include_usage=bool(options.get("include_usage")), request=self._body)
        try:
            async with contextlib.aclosing(self._raw()) as answers:
                async for raw in answers:
                    for chunk in writer.feed(raw):
                        yield chunk
            for chunk in writer.finish():
                yield chunk
        except UpstreamFault as fault:
            raise self._caller_error(fault) from fault
        finally:
            self._note_usage(writer.usage)

    async def complete(self) -> dict[str, Any]:
        """The answer as one `chat.completion`. Raises ApiError for a fault of the upstream."""
        try:
            async with contextlib.aclosing(self._raw()) as answers:
                raw = await anext(answers)
            answer = wire.completion(raw, **self._identity, request=self._body)
        except UpstreamFault as fault:
            raise self._caller_error(fault) from fault
        self._note_usage(answer["usage"])
        return answer

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
        fallback = await self._catalog.find(model.fallback) if model.fallback else None
        if fallback and fallback.kind == model.kind and not fallback.dearer_than(model):
            yield fallback

    def _engine(self, model: Model) -> AsyncGenerator[dict[str, Any], None]:
        body = {**self._body, "model": model.name}
        if model.provider is None:
            return builtin.chat(model.name, body, self._clock)
        return upstream.chat(self._outbound, model.provider, drop_aiming_fields(body))

    def _caller_error(self, fault: UpstreamFault) -> ApiError:
        provider = self._model.provider
        return upstream.caller_error(fault, provider=provider.name if provider else BUILTIN, byok=False)

    def _note_usage(self, usage: dict[str, Any] | None) -> None:
        if usage:
            self.facts.update(input_tokens=usage["prompt_tokens"], output_tokens=usage["completion_tokens"])


async def _waited(fault: UpstreamFault) -> bool:
    """Waits as long as the upstream asked for before a second try; False if that is too long (contract 4)."""
    wait_seconds = _RETRY_SECONDS if fault.retry_after_seconds is None else fault.retry_after_seconds
    if wait_seconds > _LONGEST_RETRY_SECONDS:
        return False
    await asyncio.sleep(wait_seconds)
    return True
