"""Requests to a model server over HTTP, in one of three formats.

chat(): request -> status -> RawAnswer (svc/inference/answer/raw_answer.py)
        -> any fault is an UpstreamFault, from which svc/inference/answer/upstream_errors.py makes the caller's error
"""

import asyncio
import contextlib
import json
import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from svc import json_text
from svc.errors import ApiError, UpstreamFault
from svc.inference.answer.passed import PassedEvents
from svc.inference.answer.raw_answer import RawAnswer, parsed
from svc.inference.answer.upstream_errors import CLIENT_FAULTS, error_object, fault_of, json_or_text, status_fault
from svc.inference.catalog import CONTEXT_LENGTH, ListedModels, Provider, is_model_name
from svc.inference.server_formats.answer import reader_of
from svc.outbound.client import Headers, Outbound, RequestHead, request_head
from svc.outbound.connection import Reply
from svc.outbound.errors import OutboundError

ANSWER_BYTES = 16 * 1024 * 1024
STREAM_BYTES = 512 * 1024 * 1024
_MODELS_BYTES = 4 * 1024 * 1024
_ANSWER_SECONDS = 3600.0
_SHORT_ANSWER_SECONDS = 10.0
_ERROR_BYTES = 64 * 1024
PATHS = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}
_MOST_HEADS = 64  # kept of each provider: callers choose some headers
_MOST_MODELS = "/models?limit=1000"  # of Messages, which lists 20 at once otherwise
_ANTHROPIC_VERSION = b"2023-06-01"


async def chat(
    client: Outbound,
    provider: Provider,
    body: bytes,
    stream: bool,
    on_sent: Callable[[], None] = lambda: None,
    api: str = "chat",
    stops: Sequence[str] = (),
    *,
    shown_as: str | None = None,
    headers: Headers = (),
) -> RawAnswer:
    """Send the request `body`, which asks for a `stream` or not, and return the answer once its head is there.

    `api` is the format of the body, and `stops` are the stop sequences of the request. The raw chunks of the answer are
    those of chat in every format. They have its bytes as well if the caller gets these, with the name `shown_as` of the
    model. `headers` are the caller's. `on_sent` is called when the server may have the request. Raises UpstreamFault,
    and ApiError `address_not_allowed`.
    """
    accept = b"text/event-stream" if stream else b"application/json"
    reply = await send(client, provider, PATHS[api], accept, body, on_sent, headers)
    reply.limit(STREAM_BYTES if stream else ANSWER_BYTES, _ANSWER_SECONDS)
    if api == "chat":
        return RawAnswer(reply, provider)
    reader = reader_of(api, stops)
    return RawAnswer(reply, provider, reader, PassedEvents(reader, shown_as, stream) if shown_as else None)


async def models(client: Outbound, provider: Provider) -> ListedModels:
    """Return the provider's own list of models: that of its first server that answers.

    Raises UpstreamFault, and ApiError `address_not_allowed`.
    """
    *others, last = provider.servers or (provider,)
    for server in others:
        with contextlib.suppress(UpstreamFault):
            return await _models(client, server)
    return await _models(client, last)


async def _models(client: Outbound, provider: Provider) -> ListedModels:
    try:
        async with asyncio.timeout(min(provider.timeout_seconds, _SHORT_ANSWER_SECONDS)):
            path = _MOST_MODELS if provider.api == "messages" else "/models"
            reply = await send(client, provider, path, b"application/json")
            async with contextlib.aclosing(reply):
                entries = parsed(await reply.read(_MODELS_BYTES), provider)
    except CLIENT_FAULTS as error:
        raise fault_of(error) from None
    if isinstance(entries, dict):
        entries = next((entries[name] for name in ("data", "models") if isinstance(entries.get(name), list)), None)
    if not isinstance(entries, list):
        raise UpstreamFault("invalid", "The answer is no list of models.")
    fields = [entry if isinstance(entry, dict) else {"id": entry} for entry in entries]
    named = ((entry.get("id") or entry.get("name"), _context_length(entry)) for entry in fields)
    return {id: context_length for id, context_length in named if is_model_name(id)}


def _context_length(entry: dict[str, Any]) -> int | None:
    """Return the context length of a model as OpenRouter, vLLM, Anthropic or llama.cpp lists it. Other values are
    ignored.

    llama.cpp may serve a shorter context than the model was trained with.
    """
    meta = entry.get("meta")
    found = meta if isinstance(meta, dict) else {}
    for value in (
        entry.get("context_length"),
        entry.get("max_model_len"),
        entry.get("max_input_tokens"),
        found.get("n_ctx"),
        found.get("n_ctx_train"),
    ):
        with contextlib.suppress(ApiError):
            return CONTEXT_LENGTH.check(value, "context_length")
    return None


async def send(
    client: Outbound,
    provider: Provider,
    path: str,
    accept: bytes,
    body: bytes = b"",
    on_sent: Callable[[], None] = lambda: None,
    headers: Headers = (),
) -> Reply:
    """Send a POST request with `body`, or a GET request without one; `path` follows the base URL. It is JSON unless
    `headers` name another type.

    Returns the answer once its head is there and its status is a success. Raises UpstreamFault, and ApiError
    `address_not_allowed`.
    """
    try:
        head = provider.heads.get((path, accept, headers)) or _head(provider, path, accept, bool(body), headers)
        reply = await client.ask(head, body, provider.timeout_seconds, on_sent, provider.account_id)
    except CLIENT_FAULTS as error:
        raise fault_of(error, before_the_answer=True) from None
    if not 200 <= reply.status < 300:
        raise await _refusal(reply, provider)
    return reply


def _head(provider: Provider, path: str, accept: bytes, posts: bool, callers: Headers) -> RequestHead:
    headers: Headers = ((b"accept", accept), *callers)
    is_form = any(name == b"content-type" for name, _ in callers)
    if posts and not is_form:
        headers += ((b"content-type", b"application/json"),)
    key = (provider.api_key or "").encode()
    if path in (PATHS["messages"], _MOST_MODELS):
        if not any(name == b"anthropic-version" for name, _ in callers):
            headers += ((b"anthropic-version", _ANTHROPIC_VERSION),)
        headers += ((b"x-api-key", key),) if key else ()
    elif key:
        headers += ((b"authorization", b"Bearer " + key),)
    head = request_head("POST" if posts else "GET", provider.base_url.rstrip("/") + path, headers)
    if not is_form and (not callers or len(provider.heads) < _MOST_HEADS):  # a form has its own boundary
        provider.heads[path, accept, callers] = head
    return head


async def dump(body: dict[str, Any], heavy: bool = False) -> bytes:
    """Return a request's body as JSON; a `heavy` one is serialized in a thread."""
    return await asyncio.to_thread(dumped, body, heavy) if heavy else dumped(body)


def dumped(body: dict[str, Any], heavy: bool = False) -> bytes:
    """Return a request's body as JSON. A `heavy` one is for a thread, and does not block the others for long."""
    if heavy:
        return json_text.dumps(body)
    try:
        return orjson.dumps(body)
    except TypeError:  # an integer of over 64 bits
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


async def _refusal(reply: Reply, provider: Provider) -> UpstreamFault:
    body = b""
    # The status is enough if the body is slow, cut or huge.
    with contextlib.suppress(TimeoutError, OutboundError):
        async with asyncio.timeout(min(provider.timeout_seconds, _SHORT_ANSWER_SECONDS)), contextlib.aclosing(reply):
            body = await reply.read(_ERROR_BYTES)
    return status_fault(
        f"The model server answered with status {reply.status}.",
        reply.status,
        error_object(json_or_text(body), provider.api_key),
        _retry_after(reply.header(b"retry-after")),
    )


def _retry_after(value: str) -> float | None:
    """Return the seconds of a `Retry-After`, which is a number or a date, or None if it is neither."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
            seconds = max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
        except (ValueError, OverflowError):
            return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
