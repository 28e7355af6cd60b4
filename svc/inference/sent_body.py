"""The body that a chat call sends to each model that it asks.

the caller's request -> output limits and the model's name -> without what its server refuses (field_support.py)
  -> the format of its server (server_formats/request.py) -> JSON
"""

import asyncio
import contextlib
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from svc.errors import ApiError, UpstreamFault
from svc.inference import cache_marks, field_support, upstream
from svc.inference.answer.normalize import text_size_bytes
from svc.inference.catalog import Model
from svc.inference.chat_request import for_fallback, for_operator
from svc.inference.effort_needs import NEEDS, demanded, needs_of
from svc.inference.efforts import nearest_effort
from svc.inference.first_body import FirstBody, first_body
from svc.inference.model_call import Engines
from svc.inference.passed_request import PassedRequest
from svc.inference.server_formats import seals
from svc.inference.server_formats.chat_parts import SEALED, SUMMARY
from svc.inference.server_formats.names import in_callers_words
from svc.inference.server_formats.request import request_for
from svc.outbound.client import Headers

DEFAULT_OUTPUT_TOKENS = 4096
LEAST_OUTPUT_TOKENS = 16
_LIMITS = ("max_completion_tokens", "max_tokens")
# How often a limit above the model's own is divided by four. A model with a price always gets a limit.
_MOST_LOWERED = 2


class CallerFormat(NamedTuple):
    """What of the caller's format is needed to ask a server of another format.

    `names` are the caller's names of fields of chat. `summary` is how reasoning is to be summed up: None if the caller
    does not see it.
    """

    names: Mapping[str, str] = {}
    summary: str | None = "auto"


class SentBody:
    """A chat request `body` to `first_model`, as its server and that of its fallback get it.

    `added` names the fields that this service has added: they are left out for a model server that refuses them. If
    the body is `heavy`, with many values or long texts, the constructor must run off the event loop. For a model with a
    price, `first` is the first body, and `limits` are the output limits, which the hold may lower.

    `caller_request` has the caller's bytes: a server of its format gets them. If the format is not chat, `body`
    has only its sizes.
    """

    first: FirstBody | None = None
    limits: Mapping[str, int] = {}
    _lowered = 0  # how often the limit was lowered
    _left_out: frozenset[str] = frozenset()  # the added fields that the last request lacked
    # By model: the fields that it refuses in this call, and whether later calls may rely on it.
    _refused: Mapping[str, dict[str, bool]] = {}
    _reasoning_refusal: UpstreamFault | None = None
    _caller_request: PassedRequest | None = None

    def __init__(
        self,
        first_model: Model,
        body: dict[str, Any],
        added: Collection[str],
        engines: Engines,
        account_id: str,
        heavy: bool,
        format: "CallerFormat",
        caller_request: PassedRequest | None = None,
    ) -> None:
        self._first_model = first_model
        self._body = body
        self._added = frozenset(added)
        self._engines = engines
        self._account_id = account_id
        self._heavy = heavy
        self._format = format
        if caller_request is not None:
            self._caller_request = caller_request
        if first_model.paid:
            self.first = self._first_of(first_model)

    def shorten(self, messages: list[dict[str, Any]]) -> None:
        """Send only some of the messages from now on. The hold covers them."""
        self._body = {**self._body, "messages": messages}

    def wanted_tokens(self) -> tuple[int, list[str]]:
        """Return the output limit of the request, or the default, and the names of the fields with a limit."""
        limit_fields = [name for name in _LIMITS if self._body.get(name) is not None]
        limits = [int(self._body[name]) for name in limit_fields if self._body[name] >= 1]
        return min(limits, default=DEFAULT_OUTPUT_TOKENS), limit_fields

    def _first_of(self, model: Model) -> FirstBody:
        """Return the body for the first attempt, with the output limit that a full wallet could pay.

        No later body is larger than the hold. `FRAME_TOKENS` covers the longer name `max_completion_tokens`. What the
        model is known to refuse is never sent to it in this call. For a fallback, such fields, its name and its format
        are counted.
        """
        wanted, limit_fields = self.wanted_tokens()
        self.limits = dict.fromkeys(limit_fields or ("max_tokens",), wanted)
        if not limit_fields:
            self._added |= {"max_tokens"}
        whole = self.with_limits(model)
        if model.provider is None:
            return first_body(whole, self._heavy)
        body = self._in_its_form(model, whole)
        if self._left_out:
            self._refused = {model.id: dict.fromkeys(self._left_out, False)}
        first = first_body(body, self._heavy, model.api, self._caller_request_for(model))
        first.input_tokens += sum(NEEDS[need].most_bytes for need in needs_of(model, whole))
        if model.fallback:
            fallback = self._engines.catalog.known(model.fallback)
            sizes = [first.input_tokens]
            if body is not whole and not self._has_skeleton:
                sizes.append(first_body(whole, self._heavy).input_tokens)
            if fallback and (fallback.api != "chat" or self._has_skeleton) and self.can_travel(fallback):
                of_fallback = self._in_its_form(fallback, self.with_limits(fallback))
                sizes.append(first_body(of_fallback, self._heavy, fallback.api).input_tokens)
            first.input_tokens = max(sizes) + text_size_bytes(fallback.name if fallback else model.fallback)
        return first

    @property
    def _has_skeleton(self) -> bool:
        """Whether the request is in Responses or Messages for a server of that format: `body` has only its sizes."""
        return self._caller_request is not None and self._caller_request.api != "chat"

    def _caller_request_for(self, model: Model) -> PassedRequest | None:
        """Return the caller's request, if the server of `model` has its format."""
        caller_request = self._caller_request
        return caller_request if caller_request is not None and caller_request.api == model.api else None

    def with_limits(self, model: Model) -> dict[str, Any]:
        """Return the chat request for `model`. Raises ApiError for a passed request that chat has no place for."""
        caller = self._caller_request
        if caller is not None and caller.as_chat is not None and model.api != caller.api:
            body = {**caller.as_chat(model), **self.limits, "model": model.name}
            if model.provider is not None and not model.byok:
                body = for_operator(body, model)[0]
            return cache_marks.for_model(body, model, asked=False)
        body = {**self._body, **self.limits, "model": model.name}
        if model is self._first_model:
            return body
        body = for_fallback(body, self._first_model.extra_fields - model.extra_fields)
        if model.api == "chat" and self._first_model.api != "chat":
            body = field_support.without(body, {seals.FIELD})
        return cache_marks.for_model(body, model, asked=False)

    def can_travel(self, model: Model) -> bool:
        """Return whether the format of the model's server has a place for all of the request."""
        if model.api == "chat" and not self._has_skeleton:
            return True
        with contextlib.suppress(ApiError):
            return bool(self._in_its_form(model, self.with_limits(model)))
        return False

    async def json_for(self, model: Model) -> bytes:
        """Return the JSON for a `model` with a provider. Raises ApiError for what cannot travel in its format."""
        if self._heavy and (model.api != "chat" or self._has_skeleton):
            body = await asyncio.to_thread(lambda: self._in_its_form(model, self.with_limits(model)))
        else:
            body = self._in_its_form(model, self.with_limits(model))
        if self.first and (written := self.first.json_of(body)):
            return written
        if (caller_request := self._caller_request_for(model)) is None:
            return await upstream.dump(body, self._heavy)
        return await asyncio.to_thread(caller_request.json_of, body) if self._heavy else caller_request.json_of(body)

    def _in_its_form(self, model: Model, body: dict[str, Any]) -> dict[str, Any]:
        """Return `body` in the form that `model` accepts, with what this service adds to it."""
        if model.api != "chat":
            if (caller_request := self._caller_request_for(model)) is not None:
                return self._without_refused(model, caller_request.for_model(model, self.limits), self._added)
            body |= {SEALED: True, SUMMARY: self._format.summary}
            self._added |= {SEALED, SUMMARY, "reasoning_content"}
            optional = self._added | needs_of(model, body)
            return request_for(model, self._without_refused(model, body, optional), self._format.names)
        if body.get("stream") and not (options := body.get("stream_options") or {}).get("include_usage"):
            body["stream_options"] = {**options, "include_usage": True}
            self._added = self._added if options else self._added | {"stream_options"}
        if model.efforts and (wanted := body.get("reasoning_effort")) is not None:
            effort = nearest_effort(wanted, model.efforts)
            body = {**body, "reasoning_effort": effort} if effort else field_support.without(body, ["reasoning_effort"])
        optional = self._added
        if "tools" in body or "functions" in body:
            optional |= needs_of(model, body)
        return self._without_refused(model, body, optional) if optional else body

    def _without_refused(self, model: Model, body: dict[str, Any], optional: frozenset[str]) -> dict[str, Any]:
        """Return `body` without those of its `optional` fields that `model` refuses."""
        unsupported = self._engines.field_support.unsupported(model, self._account_id, self._engines.clock())
        if self._refused:
            unsupported = unsupported.union(self._refused.get(model.id, ()))
        self._left_out = unsupported & optional
        return field_support.without(body, self._left_out) if self._left_out else body

    def passes_answer_of(self, model: Model) -> bool:
        """Return whether the caller gets the answer of `model` as it comes: that of a chat server is repaired."""
        return self._has_skeleton and self._caller_request_for(model) is not None

    @property
    def headers(self) -> Headers:
        """Those of the caller for a server of its format."""
        return self._caller_request.headers if self._caller_request else ()

    @property
    def hosted_micros(self) -> int:
        """The most that the tools cost which the vendor runs."""
        return self._caller_request.hosted_micros if self._caller_request else 0

    def accepted(self, model: Model, answers: bool) -> None:
        """Note that `model` has taken the last body, and whether it `answers`: then what it refuses is remembered."""
        if self.first:
            self.first.written = b""  # there is no other attempt
        if self._caller_request is not None:
            self._caller_request.forget()
        if self._refused and answers:
            refused = self._refused.get(model.id, {})
            learned = [field for field, learnable in refused.items() if learnable]
            self._engines.field_support.remember(model, self._account_id, learned, self._engines.clock())

    def cause_of(self, fault: UpstreamFault, api: str) -> UpstreamFault:
        """Return the fault of a server with the format `api` as it is reported, with the caller's names of fields.

        If both forms of reasoning are refused, report the first refusal: the caller has not sent the second.
        """
        reported = f"{fault.error['param']} {fault.error['message']}" if fault.error else ""
        if self._reasoning_refusal and fault.status == 400 and re.search(r"(?i)effort|thinking", reported):
            fault = self._reasoning_refusal
        passes = self._has_skeleton and self._caller_request is not None and self._caller_request.api == api
        if fault.error is not None and fault.status in (400, 422) and not passes:
            fault.error = in_callers_words(fault.error, api, self._format.names)
        return fault

    async def note_refusal(self, fault: UpstreamFault, model: Model) -> bool:
        """Note what `model` has refused. Return True if it should be asked again in another form."""
        fields = field_support.refused_fields(fault, self._added)
        passes = self.passes_answer_of(model)
        sent = self._body
        if self._has_skeleton and not passes and fault.status in (400, 422):
            sent = self.with_limits(model)
        if not passes and (needs := demanded(fault, needs_of(model, sent))):
            fields, self._reasoning_refusal = needs, fault
        if fields := fields - self._left_out:
            names = {"reasoning_effort" if field in NEEDS else field for field in fields}
            callers = field_support.without({**self._body, "model": ""}, names)  # the model's name is the operator's
            text = (await upstream.dump(callers, self._heavy)).lower()
            learnable = {field: field_support.is_learnable(field, sent, text) for field in fields}
            if self._first_model.paid and not learnable.get("stream_options", True):
                del learnable["stream_options"]  # without it tokens are not counted, which a caller must not cause
            self._refused = {**self._refused, model.id: {**self._refused.get(model.id, {}), **learnable}}
            return bool(learnable)
        limit = 0 if self._body.get("max_tokens") is not None else self.limits.get("max_tokens", 0)
        if limit > LEAST_OUTPUT_TOKENS and self._lowered < _MOST_LOWERED and field_support.limit_too_large(fault):
            self._lowered += 1
            self.limits = {"max_tokens": max(limit // 4, LEAST_OUTPUT_TOKENS)}
            return True
        return False
