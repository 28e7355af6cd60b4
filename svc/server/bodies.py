"""Reading a request's body: bounded, counted as it arrives, JSON only where JSON is expected."""

import json
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, TypeVar

import orjson
from starlette.requests import Request

from svc.bounded import read_bounded
from svc.errors import ApiError
from svc.server.body_budget import KIB, MIB
from svc.server.state import State

T = TypeVar("T")

# How many JSON values one body may hold: an object takes up to 35 times its bytes, and a parser keeps every thread waiting
# (this many take it 30 ms).
MOST_JSON_VALUES = 100_000
_JSON_DEPTH = 100
_INTEGER_DIGITS = 1000
_LONG_INTEGER = re.compile(rb"[0-9]{19}")
_BIG_JSON_BYTES = 64 * KIB
_SLICE_BYTES = 64 * KIB


async def read_body(request: Request[State], limit_bytes: int) -> bytes:
    """The request's body.

    Raises ApiError `PAYLOAD_TOO_LARGE` over `limit_bytes`, as soon as that is known, `overloaded` where its address or account
    holds too much already, and `unsupported_media_type` for a coded (compressed) body.
    """
    if request.headers.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
        raise ApiError("unsupported_media_type", "Send the body as it is, without a Content-Encoding.")
    too_large = ApiError("PAYLOAD_TOO_LARGE", f"The request body is over {limit_bytes} bytes. Send less.")
    length = request.headers.get("content-length", "0")
    if not re.fullmatch(r"[0-9]{1,18}", length) or int(length) > limit_bytes:
        raise too_large
    async with aclosing(_counted(request)) as chunks:
        return await read_bounded(chunks, limit_bytes, too_large)


async def _counted(request: Request[State]) -> AsyncGenerator[bytes, None]:
    budget, size_bytes = request.state.bodies, 0
    async for chunk in request.stream():
        size_bytes += len(chunk)
        budget.count(request.scope, size_bytes)
        yield chunk


async def read_json(request: Request[State], limit_bytes: int = MIB) -> dict[str, Any]:
    """The request's body as one JSON object. Raises what `read_checked` raises of itself."""
    return await read_checked(request, lambda body: body, limit_bytes)


async def read_checked(request: Request[State], check: Callable[[dict[str, Any]], T], limit_bytes: int = MIB) -> T:
    """What `check` makes of the request's body, one JSON object; a large one is parsed and checked away from the event loop.

    Raises what `read_body` raises, ApiError `unsupported_media_type` without `Content-Type: application/json`, and
    `invalid_json` for anything that is not one object of valid UTF-8 JSON, at most 100 levels deep.
    """
    kind, _, parameters = request.headers.get("content-type", "").lower().partition(";")
    charset = parameters.strip().removeprefix("charset=").strip('"')
    if kind.strip() != "application/json" or (parameters.strip().startswith("charset=") and charset not in ("utf-8", "utf8")):
        raise ApiError("unsupported_media_type")
    body = await read_body(request, limit_bytes)
    if len(body) <= _BIG_JSON_BYTES:
        return check(_parse_object(body))
    owner = request.scope.get("svc.account_id") or request.scope.get("svc.client_ip", "")
    return await request.state.offload.run(owner, lambda: check(_parse_object(body)))


def _parse_object(body: bytes) -> dict[str, Any]:
    value = parse_json(body)
    if not isinstance(value, dict):
        raise ApiError("invalid_json", "The request body must be one JSON object.")
    return value


def parse_json(body: bytes) -> Any:
    """`body` as JSON. Raises ApiError `invalid_json`: also for NaN, lone surrogates, too many values or levels."""
    openings = body.count(b"[") + body.count(b"{")
    if openings + body.count(b",") > MOST_JSON_VALUES and _values(body) > MOST_JSON_VALUES:
        raise ApiError("PAYLOAD_TOO_LARGE", f"The JSON body holds more than {MOST_JSON_VALUES} values. Send less.")
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ApiError("invalid_json", f"The request body is not valid JSON: {error.msg} at character {error.pos}.") from None
    if openings > _JSON_DEPTH and _too_deep(value):
        raise ApiError("invalid_json", f"The JSON body is nested more than {_JSON_DEPTH} levels deep.")
    # orjson makes a float of an integer beyond 64 bits; it is valid JSON by now, so the slower parser has nothing to refuse.
    return json.loads(body, parse_int=_integer) if _LONG_INTEGER.search(body) else value


def _integer(digits: str) -> int:
    if len(digits) > _INTEGER_DIGITS:
        raise ApiError("invalid_json", f"The JSON body has an integer of more than {_INTEGER_DIGITS} digits.")
    return int(digits)


def _values(body: bytes) -> int:
    """How many values `body` holds at most. Commas and brackets inside texts are none, so that it is told without the strings;
    a slice at a time, so that other threads have their turns."""
    values, position, inside = 0, 0, False
    while position < len(body) and values <= MOST_JSON_VALUES:
        end = position + _SLICE_BYTES
        backslashes = _SLICE_BYTES - len(body[position:end].rstrip(b"\\"))
        end += backslashes % 2  # never between a backslash and what it escapes
        parts = body[position:end].replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
        outside = b"".join(parts[1 if inside else 0 :: 2])
        values += outside.count(b"[") + outside.count(b"{") + outside.count(b",")
        inside ^= len(parts) % 2 == 0
        position = end
    return values


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_JSON_DEPTH):
        containers = [item for item in level if isinstance(item, dict | list)]
        level = [child for item in containers for child in (item.values() if isinstance(item, dict) else item)]
    return any(isinstance(item, dict | list) for item in level)
