"""One chat call, paid or free: hold the worst case, ask the engine, settle what it cost (contract 4 and 6; paid_call.py).

reserve() -> a hold in the wallet, the output limited to what it affords (402)
stream() / complete() -> attempts until the first byte -> engine (built-in | HTTP) -> svc/inference/wire.py writes it anew
settle() -> the debit, at most the hold, exactly once: after success, fault, interrupt or a caller who left
"""

import contextlib
import sqlite3
from collections.abc import AsyncGenerator
from typing import Any

from svc.billing import wallet
from svc.builtin import provider
from svc.errors import UpstreamFault
from svc.ids import random_base62
from svc.inference import upstream, wire
from svc.inference.catalog import Model
from svc.inference.chat_request import drop_aiming_fields
from svc.inference.paid_call import Bill, Engines, PaidCall, Payer

IMAGE_TOKENS = 8192
DEFAULT_OUTPUT_TOKENS = 4096
LEAST_OUTPUT_TOKENS = 16


class ChatCall(PaidCall):
    """One chat-completions request to `model`; `body` has been checked."""

    def __init__(self, model: Model, body: dict[str, Any], engines: Engines, payer: Payer) -> None:
        super().__init__(model, engines, payer)
        self._body = body
        self.begun = False  # whether there is anything of an answer
        self._answered = False  # to its end
        options = body.get("stream_options") or {}
        self._identity: Any = {"id": "chatcmpl-" + random_base62(29), "created": int(engines.clock()), "model": model.id}
        self._writer = wire.ChunkWriter(**self._identity, include_usage=bool(options.get("include_usage")), request=body)
        self._answer: dict[str, Any] | None = None

    @property
    def message(self) -> dict[str, Any]:
        """The assistant's message, as far as it has come."""
        if self._answer is not None:
            first: dict[str, Any] = self._answer["choices"][0]["message"]
            return first
        return self._writer.content()

    @property
    def finish_reason(self) -> str | None:
        """Why the answer ended; None for one that was cut off."""
        if self._answer is not None:
            reason: str = self._answer["choices"][0]["finish_reason"]
            return reason
        return self._writer.finish_reason()

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

    def reserve_in(self, tx: sqlite3.Connection) -> None:
        """`reserve` inside a transaction. The output is limited to what the wallet affords (contract 6)."""
        if not self.paid:
            return
        prices, choices = self._asked.prices, int(self._body.get("n") or 1)
        input_tokens = wire.text_bytes(self._body) + IMAGE_TOKENS * wire.image_parts(self._body)
        limits = {name: int(self._body[name]) for name in ("max_completion_tokens", "max_tokens") if self._body.get(name)}
        wanted = min(limits.values(), default=DEFAULT_OUTPUT_TOKENS)
        available_micros = wallet.available_micros(tx, self._payer.account_id)
        affordable = wallet.affordable_output_tokens(prices, input_tokens, available_micros) // choices
        # Below the least useful answer the hold is tried as it is, and refused with what is missing.
        granted = min(wanted, max(affordable, LEAST_OUTPUT_TOKENS))
        self.hold(tx, wallet.cost_micros(prices, input_tokens, granted * choices))
        self._body = {**self._body, **dict.fromkeys(limits or ("max_tokens",), granted)}

    def bill(self) -> Bill:
        usage = self.usage
        tokens = (usage["prompt_tokens"], usage["completion_tokens"])
        return Bill(*tokens, wallet.cost_micros(self._model.prices, *tokens))

    def void(self) -> None:
        self._answer = None  # what was streamed has been had

    # --- the answer

    async def stream(self) -> AsyncGenerator[dict[str, Any], None]:
        """The answer's chunks in the shape of wire.md. Raises ApiError for a fault of the upstream, at any moment."""
        try:
            async with contextlib.aclosing(self.with_retries(self._engine)) as answers:
                async for raw in answers:
                    for chunk in self._writer.feed(raw):
                        self.begun = True
                        yield chunk
            last = self._writer.finish()
            self._answered = True
            for chunk in last:
                yield chunk
        except UpstreamFault as fault:
            raise self.caller_error(fault) from fault
        finally:
            self._note_usage()

    async def complete(self) -> dict[str, Any]:
        """The answer as one `chat.completion`. Raises ApiError for a fault of the upstream."""
        try:
            async with contextlib.aclosing(self.with_retries(self._engine)) as answers:
                raw = await anext(answers)
            self._answer = wire.completion(raw, **self._identity, request=self._body)
            self.begun = True
        except UpstreamFault as fault:
            raise self.caller_error(fault) from fault
        finally:
            self._note_usage()
        return self._answer

    def _note_usage(self) -> None:
        usage = self.usage
        self.log_fields.update(input_tokens=usage["prompt_tokens"], output_tokens=usage["completion_tokens"])

    def _engine(self, model: Model) -> AsyncGenerator[dict[str, Any], None]:
        body = {**self._body, "model": model.name}
        if model.provider is None:
            return provider.chat(model.name, body, self._engines.clock)
        body = body if model.provider.byok else drop_aiming_fields(body)
        return upstream.chat(self._engines.way_to(model.provider), model.provider, body)
