"""Reading a request's body: bounded, and counted as it arrives."""

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from svc.bounded import add_part
from svc.errors import ApiError
from svc.json_text import parse_json
from svc.server.body_budget import KIB, SMALL_BYTES
from svc.server.state import Request
from svc.shapes import Shape

_BIG_JSON_BYTES = 64 * KIB
_LENGTH_DIGITS = 18


async def read_body(request: Request, limit_bytes: int) -> bytes:
    return b"".join(await read_chunks(request, limit_bytes))


async def read_chunks(request: Request, limit_bytes: int) -> list[bytes]:
    """Return the request's body in chunks: joining many MiB would block the event loop.

    Raises ApiError `PAYLOAD_TOO_LARGE` as soon as the body is known to be over `limit_bytes`, and
    `unsupported_media_type` for a compressed body. Raises `overloaded` if all bodies, or those of its address or
    account, take too much memory.
    """
    context = request.context
    sent = context.headers
    if b"content-encoding" in sent and sent[b"content-encoding"].strip().lower() not in (b"identity", b""):
        raise ApiError("unsupported_media_type", "Send the body as it is, without a Content-Encoding.")
    length = sent.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > _LENGTH_DIGITS or int(length) > limit_bytes:
        raise _too_large(limit_bytes)
    size_bytes = 0
    chunks: list[bytes] = []
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body: bytes = message["body"]
        add_part(chunks, body)
        size_bytes += len(body)
        if size_bytes > limit_bytes:
            raise _too_large(limit_bytes)
        if size_bytes > SMALL_BYTES:
            request.state.bodies.count(context, size_bytes)
        if not message["more_body"]:
            return chunks


def _too_large(limit_bytes: int) -> ApiError:
    return ApiError("PAYLOAD_TOO_LARGE", f"The request body is over {limit_bytes} bytes. Send less.")


def with_body(
    handler: Callable[..., Awaitable[Response | None]], shape: Shape[Any], most_bytes: int
) -> Callable[..., Awaitable[Response | None]]:
    """Give `handler` the request's body, one JSON object as `shape` types it, as its last argument.

    The endpoint raises what `read_chunks` and `shape.check` raise. It raises ApiError `unsupported_media_type` without
    `Content-Type: application/json`, and `invalid_json` for a body that is not one JSON object. A large body is parsed
    outside the event loop.
    """

    async def endpoint(request: Request, *who: Any) -> Response | None:
        context = request.context
        content_type = context.headers.get(b"content-type", b"")
        if content_type != b"application/json" and not _is_json(content_type):
            raise ApiError("unsupported_media_type")
        body = b"".join(await read_chunks(request, most_bytes))
        if len(body) <= _BIG_JSON_BYTES:
            typed = shape.check(_parse_object(body), "")
        else:
            owner = context.account_id or context.client_ip
            typed = await request.state.offload.run(owner, lambda: shape.check(_parse_object(body), ""))
        return await handler(request, *who, typed)

    return endpoint


def _is_json(content_type: bytes) -> bool:
    kind, _, parameters = content_type.lower().partition(b";")
    charset = parameters.strip().removeprefix(b"charset=").strip(b'"')
    return kind.strip() == b"application/json" and (
        not parameters.strip().startswith(b"charset=") or charset in (b"utf-8", b"utf8")
    )


def _parse_object(body: bytes) -> dict[str, Any]:
    value = parse_json(body)
    if not isinstance(value, dict):
        raise ApiError("invalid_json", "The request body must be one JSON object.")
    return value
