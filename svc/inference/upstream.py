"""The engine for one OpenAI-compatible model server over HTTP, and what the caller sees of its faults.

chat(): request -> status -> the first bytes tell what the body is, whatever its content type says
        -> `{` or `[`: one JSON answer | `<`: a page, refused | else server-sent events, each one a raw chunk
        -> any fault becomes an UpstreamFault -> caller_error()
"""

import asyncio
import contextlib
import json
import math
import re
import time
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Protocol

import httpx
import orjson

from svc.errors import ApiError, UpstreamFault
from svc.outbound.addresses import AddressNotAllowed
from svc.outbound.client import Outbound, sse_data
from svc.outbound.connection import Cut, Reply

_ANSWER_BYTES = 16 * 1024 * 1024
_STREAM_BYTES = 512 * 1024 * 1024
_EVENT_BYTES = 4 * 1024 * 1024
_ANSWER_SECONDS = 3600.0
_MODELS_BYTES = 4 * 1024 * 1024
_SHORT_ANSWER_SECONDS = 10.0
_ERROR_BYTES = 64 * 1024
_MESSAGE_CHARACTERS = 2000
_BIG_JSON_BYTES = 512 * 1024
# How long the rest of the body may take after `[DONE]`, so that the connection can be used again.
_AFTERWARDS_SECONDS = 0.05
# A shorter key is no secret but a placeholder ("ollama"), which may well stand in a model's text.
_SECRET_CHARACTERS = 12
_SECRETS = re.compile(r"(?i)\b(?:bearer\s+|sk-|gsk_|xai-|hf_|nvapi-|AIza)[^\s\"',;]{6,}")
_LONGEST_RETRY_SECONDS = 59  # wire.md 25
# Refusals that are about the operator's key, account or configuration: nothing that the caller could mend.
_NOT_THE_CALLERS = frozenset({401, 402, 403, 405, 407, 408, 411, 421, 425, 426, 429, 431})
_OWNERS_TO_SEE = frozenset({401, 402, 403, 429})
_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


class Endpoint(Protocol):
    """A model server as its owner configured it; `timeout_seconds` is to the first byte and between bytes."""

    @property
    def name(self) -> str: ...
    @property
    def base_url(self) -> str: ...
    @property
    def api_key(self) -> str | None: ...
    @property
    def timeout_seconds(self) -> float: ...


# --- asking


async def chat(client: Outbound, provider: Endpoint, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
    """The raw chunks of a chat (or, without `stream`, the one raw answer) for the request `body`, as the engine interface says.

    A provider that streams though JSON was asked for gives one answer whose `choices` hold all deltas; one that sends JSON
    though a stream was asked for gives that answer as the only chunk. svc/inference/wire.py reads both.
    Raises UpstreamFault, and ApiError `address_not_allowed`. Closing the generator ends the request at once.
    """
    stream = bool(body.get("stream"))
    if stream:
        body = {**body, "stream_options": {**(body.get("stream_options") or {}), "include_usage": True}}
    accept = b"text/event-stream" if stream else b"application/json"
    reply = await send(client, provider, "POST", "/chat/completions", accept, orjson.dumps(body), provider.timeout_seconds)
    try:
        with faults():
            async with contextlib.aclosing(_answers(reply, provider, stream)) as answers:
                if not stream:
                    yield await _assembled(answers)
                    return
                async for raw in answers:
                    yield raw
    finally:
        await reply.aclose()


async def models(client: Outbound, endpoint: Endpoint) -> list[dict[str, Any]]:
    """The provider's own list of models, each with a string `id`. Raises UpstreamFault, and ApiError `address_not_allowed`."""
    timeout_seconds = min(endpoint.timeout_seconds, _SHORT_ANSWER_SECONDS)
    reply = await send(client, endpoint, "GET", "/models", b"application/json", b"", timeout_seconds)
    try:
        with faults():
            async with asyncio.timeout(timeout_seconds):
                document = parsed(await reply.read(_MODELS_BYTES), endpoint)
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
    client: Outbound, endpoint: Endpoint, method: str, path: str, accept: bytes, body: bytes, timeout_seconds: float
) -> Reply:
    """The provider's answer, once its head is there and its status is a success; `path` follows the base URL, `body` is JSON.

    Raises UpstreamFault, and ApiError `address_not_allowed`.
    """
    headers = [(b"accept", accept), (b"user-agent", b"svc")]
    if body:
        headers.append((b"content-type", b"application/json"))
    if endpoint.api_key:
        headers.append((b"authorization", b"Bearer " + endpoint.api_key.encode()))
    url = endpoint.base_url.rstrip("/") + path
    with faults(before_the_answer=True):
        reply = await client.send(method, url, headers, body, timeout_seconds=timeout_seconds)
    if not 200 <= reply.status < 300:
        raise await _refusal(reply, endpoint)
    return reply


@contextlib.contextmanager
def faults(before_the_answer: bool = False) -> Iterator[None]:
    """Turns the client's exceptions in the block into faults; their texts are svc/outbound/client.py's and quote nothing."""
    try:
        yield
    except AddressNotAllowed:
        raise ApiError("address_not_allowed") from None
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise UpstreamFault("unreachable", str(error)) from None
    except (httpx.TimeoutException, TimeoutError):
        raise UpstreamFault("timeout") from None
    except (Cut, httpx.NetworkError) as error:
        raise UpstreamFault("unreachable" if before_the_answer else "cut", str(error)) from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError):
        raise UpstreamFault("unreachable", "The provider's address or key cannot be used.") from None
    except httpx.HTTPError as error:
        raise UpstreamFault("invalid", str(error)) from None


# --- reading answers


async def _answers(reply: Reply, endpoint: Endpoint, stream: bool) -> AsyncGenerator[dict[str, Any], None]:
    start = await _start(reply)
    if not start or start.startswith(b"<"):
        raise UpstreamFault("invalid", "The answer is neither JSON nor an event stream.")
    if start.startswith((b"{", b"[")):
        data = b"".join([chunk async for chunk in _bounded(start, reply, _ANSWER_BYTES)])
        big = len(data) > _BIG_JSON_BYTES
        yield _an_object(await asyncio.to_thread(parsed, data, endpoint) if big else parsed(data, endpoint))
        return
    chunks = _bounded(start, reply, _STREAM_BYTES if stream else _ANSWER_BYTES)
    # Without framing a cut connection looks like the end of the body: then the answer itself must have said that it ends.
    unfinished: set[Any] | None = None if _is_framed(reply) else {None}
    async with contextlib.aclosing(chunks), contextlib.aclosing(sse_data(chunks, _EVENT_BYTES)) as events:
        async for data in events:
            if (data := data.strip()) == b"[DONE]":
                await _read_out(events)
                return
            if data:
                raw = _an_object(parsed(data, endpoint))
                if unfinished is not None:
                    _note_finish(raw, unfinished)
                yield raw
    if unfinished:
        raise UpstreamFault("cut", "The connection ended before the answer did.")


async def _start(reply: Reply) -> bytes:
    """The first bytes of the body that are not blank."""
    start = b""
    async for chunk in reply:
        start = (start + chunk).lstrip(b"\xef\xbb\xbf \t\r\n")
        if start:
            break
    return start


async def _bounded(start: bytes, reply: AsyncIterable[bytes], limit_bytes: int) -> AsyncGenerator[bytes, None]:
    """The body's bytes, for so long and so many as any answer may take."""
    deadline = time.monotonic() + _ANSWER_SECONDS
    size_bytes = len(start)
    yield start
    async for chunk in reply:
        size_bytes += len(chunk)
        if size_bytes > limit_bytes:
            raise UpstreamFault("invalid", "The answer is too long.")
        if time.monotonic() > deadline:
            raise UpstreamFault("timeout", "The answer takes too long.")
        yield chunk


async def _read_out(events: AsyncGenerator[bytes, None]) -> None:
    """What comes after `[DONE]`, a second one too, means nothing; a body read to its end leaves a connection that can be kept."""
    with contextlib.suppress(TimeoutError, httpx.HTTPError, UpstreamFault):
        async with asyncio.timeout(_AFTERWARDS_SECONDS):
            async for _ in events:
                pass


async def _assembled(answers: AsyncGenerator[dict[str, Any], None]) -> dict[str, Any]:
    """One raw answer: the only one, or all chunks of a stream that was not asked for, their choices in a row."""
    whole: dict[str, Any] = {}
    choices: list[Any] = []
    async for raw in answers:
        whole.update((name, value) for name, value in raw.items() if value is not None)
        choices += raw["choices"] if isinstance(raw.get("choices"), list) else []
    return {**whole, "choices": choices}


def _is_framed(reply: Reply) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in reply.raw_headers)


def _note_finish(raw: dict[str, Any], unfinished: set[Any]) -> None:
    choices = raw.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            unfinished.discard(None)
            index = repr(choice.get("index"))
            (unfinished.discard if choice.get("finish_reason") else unfinished.add)(index)


def _an_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UpstreamFault("invalid", "The answer is no JSON object.")
    return value


def parsed(data: bytes, endpoint: Endpoint) -> Any:
    """`data` as JSON, our key blotted out. Raises UpstreamFault `invalid`, or `status` (502) for an error object."""
    key = endpoint.api_key if endpoint.api_key and len(endpoint.api_key) >= _SECRET_CHARACTERS else None
    if key:
        data = data.replace(key.encode(), b"***")
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = _parsed_loosely(data)
    if key and b"\\" in data:  # JSON can spell the key in other ways
        value = _without(key, value)
    first = value[0] if isinstance(value, list) and value else value  # Gemini wraps errors in a list
    if isinstance(first, dict) and (first.get("error") or first.get("object") == "error"):
        raise UpstreamFault("status", "The answer is an error.", status=502, error=_error_object(first, endpoint))
    return value


def _without(key: str, value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(key, "***")
    if isinstance(value, list):
        return [_without(key, item) for item in value]
    if isinstance(value, dict):
        return {name.replace(key, "***"): _without(key, item) for name, item in value.items()}
    return value


def _parsed_loosely(data: bytes) -> Any:
    # Invalid UTF-8, emoji in two halves and NaN are common enough that an answer should not fail for them.
    try:
        return json.loads(data.decode("utf-8", "replace"), parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        raise UpstreamFault("invalid", "The answer is not valid JSON.") from None


# --- reading refusals


async def _refusal(reply: Reply, endpoint: Endpoint) -> UpstreamFault:
    body = b""
    # The status says enough where the body is slow, cut or huge.
    with contextlib.suppress(TimeoutError, httpx.HTTPError):
        try:
            async with asyncio.timeout(min(endpoint.timeout_seconds, _SHORT_ANSWER_SECONDS)):
                async for chunk in reply:
                    body += chunk
                    if len(body) > _ERROR_BYTES:
                        body = b""
                        break
        finally:
            await reply.aclose()
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = body.decode("utf-8", "replace")
    return UpstreamFault(
        "status",
        f"The model server answered with status {reply.status}.",
        status=reply.status,
        error=_error_object(document, endpoint),
        retry_after_seconds=_retry_after(reply.headers.get("retry-after")),
    )


def _error_object(document: Any, endpoint: Endpoint) -> dict[str, Any] | None:
    """Our four keys out of an error body of any shape (wire.md 22), without secrets; None where it says nothing."""
    found = document[0] if isinstance(document, list) and document else document
    if isinstance(found, dict):
        inner = found.get("error")
        found = inner if isinstance(inner, dict) else {**found, "message": inner or found.get("message")}
        message = _message(found)
    else:
        message = found.strip() if isinstance(found, str) else ""
        found = {}
    if not message or message.startswith("<"):
        return None
    code = found.get("code")
    code = str(code) if isinstance(code, str | int) and not isinstance(code, bool) else None
    kept = {"message": message, "type": found.get("type"), "param": found.get("param"), "code": code}
    return {name: _blotted(value, endpoint.api_key) if isinstance(value, str) else None for name, value in kept.items()}


def _message(error: dict[str, Any]) -> str:
    for name in ("message", "detail", "msg", "error_description"):
        value = error.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
        if isinstance(value, list):  # FastAPI's list of what is wrong where
            wrong = [item for item in value if isinstance(item, dict)]
            places = [".".join(map(str, item["loc"])) if isinstance(item.get("loc"), list) else "" for item in wrong]
            return "; ".join(f"{place}: {item.get('msg')}" for place, item in zip(places, wrong, strict=True))
        if isinstance(value, dict):
            return _message(value)
    return ""


def _blotted(text: str, key: str | None) -> str:
    if key and len(key) >= 4:
        text = text.replace(key, "***")
    return _SECRETS.sub("***", text)[:_MESSAGE_CHARACTERS].encode("utf-8", "replace").decode()  # half an emoji is no text


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


# --- faults


def retriable(fault: UpstreamFault) -> bool:
    """Whether the same request may be tried again before the first byte (contract 4)."""
    return fault.kind in ("unreachable", "timeout") or (fault.kind == "status" and fault.status in (429, 502, 503, 504))


def caller_error(fault: UpstreamFault, *, provider: str, byok: bool) -> ApiError:
    """What the caller sees of a fault of `provider`, its own (`byok`) or the operator's (contract 2, wire.md 23)."""
    match fault.kind:
        case "unreachable":
            return ApiError("upstream_unreachable", f"The model server of {provider!r} cannot be reached. Try again later.")
        case "timeout":
            return ApiError("upstream_timeout", f"The model server of {provider!r} did not answer in time. Try again later.")
        case "cut":
            message = f"The answer of {provider!r} was cut off before its end. Send the request again."
            return ApiError("upstream_error", message)
        case "status":
            return _status_error(fault, provider, byok)
    return ApiError("upstream_invalid_response", f"The answer of {provider!r} makes no sense. {str(fault).capitalize()}")


def _status_error(fault: UpstreamFault, provider: str, byok: bool) -> ApiError:
    status, error = fault.status, fault.error or {}
    quoted = error.get("message") if isinstance(error.get("message"), str) else None
    retry_after_seconds = min(max(math.ceil(fault.retry_after_seconds or 0), 1), _LONGEST_RETRY_SECONDS)
    if 400 <= status < 500 and (status not in _NOT_THE_CALLERS or (byok and status in _OWNERS_TO_SEE)):
        message = quoted or f"The model server of {provider!r} refused the request with status {status}."
        kept = {name: error[name] if isinstance(error.get(name), str) else None for name in ("type", "param", "code")}
        kept["type"] = kept["type"] or _TYPES.get(status, "invalid_request_error")
        named = f"{provider}: {message}" if byok and status in _OWNERS_TO_SEE else message
        wait_seconds = retry_after_seconds if status == 429 else None
        return ApiError("upstream_error", status=status, error={"message": named, **kept}, retry_after_seconds=wait_seconds)
    if status == 408:
        return ApiError("upstream_timeout", f"The model server of {provider!r} gave up waiting. Try again later.")
    message = f"The model server of {provider!r} failed with status {status}. Try again later."
    if status == 429:
        message = f"The model server of {provider!r} is busy. Try again in a moment."
    elif status < 400:
        message = f"The model server of {provider!r} redirects elsewhere, which is not followed. Check its base_url."
    elif status >= 500 and quoted:
        message = f"The model server of {provider!r} failed: {quoted}"
    if status in (429, 503):
        return ApiError("upstream_error", message, status=503, retry_after_seconds=retry_after_seconds)
    return ApiError("upstream_error", message, status=504 if status == 504 else 502)
