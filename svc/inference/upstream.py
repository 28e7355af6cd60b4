"""The engine for one OpenAI-compatible model server over HTTP.

chat(): request -> status -> RawAnswer, which svc/inference/raw_answer.py reads
        -> any fault becomes an UpstreamFault, which svc/inference/upstream_errors.py turns into what the caller sees
"""

import asyncio
import contextlib
import math
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from svc import json_text
from svc.errors import UpstreamFault
from svc.inference.catalog import Provider
from svc.inference.raw_answer import RawAnswer, parsed
from svc.inference.upstream_errors import CLIENT_FAULTS, error_object, fault_of, json_or_text
from svc.outbound.client import Outbound
from svc.outbound.connection import Reply
from svc.outbound.errors import OutboundError

_ANSWER_BYTES = 16 * 1024 * 1024
_STREAM_BYTES = 512 * 1024 * 1024
_MODELS_BYTES = 4 * 1024 * 1024
_SHORT_ANSWER_SECONDS = 10.0
_ERROR_BYTES = 64 * 1024


# --- asking


async def chat(
    client: Outbound, provider: Provider, body: dict[str, Any], on_sent: Callable[[], None] = lambda: None, heavy: bool = False
) -> "RawAnswer":
    """The answer to the chat request `body`, once its head is there.

    Without `stream` the one raw answer comes; a provider that streams all the same gives chunks, and one that sends JSON though
    a stream was asked for gives that answer as the only chunk. svc/inference/wire.py reads all of it. `on_sent` is called when
    the server may have the request; what is `heavy` is written off the event loop. Raises UpstreamFault, and ApiError
    `address_not_allowed`.
    """
    data = await dump(body, heavy)
    stream = bool(body.get("stream"))
    accept = b"text/event-stream" if stream else b"application/json"
    reply = await send(client, provider, "POST", "/chat/completions", accept, data, provider.timeout_seconds, on_sent)
    return RawAnswer(reply, provider, _STREAM_BYTES if stream else _ANSWER_BYTES)


async def models(client: Outbound, provider: Provider) -> list[dict[str, Any]]:
    """The provider's own list of models, each with a string `id`. Raises UpstreamFault, and ApiError `address_not_allowed`."""
    timeout_seconds = min(provider.timeout_seconds, _SHORT_ANSWER_SECONDS)
    reply = await send(client, provider, "GET", "/models", b"application/json", b"", timeout_seconds)
    try:
        async with asyncio.timeout(timeout_seconds):
            document = parsed(await reply.read(_MODELS_BYTES), provider)
    except CLIENT_FAULTS as error:
        raise fault_of(error) from None
    finally:
        await reply.aclose()
    entries = document
    if isinstance(document, dict):
        entries = next((document[name] for name in ("data", "models") if isinstance(document.get(name), list)), None)
    if not isinstance(entries, list):
        raise UpstreamFault("invalid", "The answer is no list of models.")
    objects = [{"id": entry} if isinstance(entry, str) else entry for entry in entries]
    named = [{**entry, "id": entry.get("id") or entry.get("name")} for entry in objects if isinstance(entry, dict)]
    return [entry for entry in named if isinstance(entry["id"], str) and entry["id"]]


async def send(
    client: Outbound,
    provider: Provider,
    method: str,
    path: str,
    accept: bytes,
    body: bytes,
    timeout_seconds: float,
    on_sent: Callable[[], None] = lambda: None,
) -> Reply:
    """The provider's answer, once its head is there and its status is a success; `path` follows the base URL, `body` is JSON.

    Raises UpstreamFault, and ApiError `address_not_allowed`.
    """
    headers = [(b"accept", accept), (b"user-agent", b"svc")]
    if body:
        headers.append((b"content-type", b"application/json"))
    if provider.api_key:
        headers.append((b"authorization", b"Bearer " + provider.api_key.encode()))
    url = provider.base_url.rstrip("/") + path
    try:
        reply = await client.send(
            method, url, headers, body, timeout_seconds=timeout_seconds, on_sent=on_sent, account_id=provider.account_id
        )
    except CLIENT_FAULTS as error:
        raise fault_of(error, before_the_answer=True) from None
    if not 200 <= reply.status < 300:
        raise await _refusal(reply, provider)
    return reply


async def dump(body: dict[str, Any], heavy: bool = False) -> bytes:
    """A request's body as JSON; what is `heavy` is written off the event loop."""
    try:
        if not heavy:
            return orjson.dumps(body)
    except TypeError:  # an integer of over 64 bits: it goes on digit by digit
        pass
    return await asyncio.to_thread(json_text.dumps, body)


# --- reading refusals


async def _refusal(reply: Reply, provider: Provider) -> UpstreamFault:
    body = b""
    # The status says enough where the body is slow, cut or huge.
    with contextlib.suppress(TimeoutError, OutboundError):
        try:
            async with asyncio.timeout(min(provider.timeout_seconds, _SHORT_ANSWER_SECONDS)):
                async for chunk in reply:
                    body += chunk
                    if len(body) > _ERROR_BYTES:
                        body = b""
                        break
        finally:
            await reply.aclose()
    return UpstreamFault(
        "status",
        f"The model server answered with status {reply.status}.",
        status=reply.status,
        error=error_object(json_or_text(body), provider.api_key),
        retry_after_seconds=_retry_after(reply.header(b"retry-after")),
    )


def _retry_after(value: str | None) -> float | None:
    """The seconds of a `Retry-After`, given as a number or as a date; None where it is neither."""
    try:
        seconds = float(value or "")
    except ValueError:
        try:
            date = parsedate_to_datetime(value or "")
            seconds = (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
        except (ValueError, OverflowError):
            return None
        return max(0.0, seconds)
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
