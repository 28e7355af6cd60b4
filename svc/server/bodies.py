"""From the request to its handler and back: the body, bounded and counted as it arrives, and the answer as JSON."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from svc.body_parts import add_part
from svc.errors import ApiError
from svc.json_text import AT_ONCE_BYTES, parse_json
from svc.server.http.head import Context
from svc.server.limits import SMALL_BYTES
from svc.server.web import Request, reply
from svc.shapes import Shape

_LENGTH_DIGITS = 18
# A first parameter `charset` must be UTF-8; others are ignored.
_JSON_TYPE = re.compile(rb'(?is)\s*application/json\s*(;\s*+(charset="*utf-?8"*\s*|(?!charset=).*))?')


async def read_body(request: Request, limit_bytes: int) -> bytes:
    return b"".join(await read_chunks(request, limit_bytes))


async def read_chunks(request: Request, limit_bytes: int) -> list[bytes]:
    """Return the request's body in chunks: joining many MiB would block the event loop.

    Raises ApiError `PAYLOAD_TOO_LARGE` as soon as the body is known to be over `limit_bytes`, and
    `unsupported_media_type` for a compressed body. Raises `overloaded` if all bodies, or those of its address or
    account, take too much memory.
    """
    context = request.context
    check_sent(context, limit_bytes)
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
            raise too_large(limit_bytes)
        if size_bytes > SMALL_BYTES:
            request.state.bodies.count(context, size_bytes)
        if not message["more_body"]:
            return chunks


def check_sent(context: Context, limit_bytes: int) -> None:
    """Raise ApiError if the head of a request says that its body is compressed, or over `limit_bytes`."""
    sent = context.headers
    if b"content-encoding" in sent and sent[b"content-encoding"].strip().lower() not in (b"identity", b""):
        raise ApiError("unsupported_media_type", "Send the body as it is, without a Content-Encoding.")
    length = sent.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > _LENGTH_DIGITS or int(length) > limit_bytes:
        raise too_large(limit_bytes)


def too_large(limit_bytes: int) -> ApiError:
    return ApiError("PAYLOAD_TOO_LARGE", f"The request body is over {limit_bytes} bytes. Send less.")


def endpoint_of(
    handler: Callable[..., Awaitable[Any]], status: int, shape: Shape[Any] | None, most_bytes: int, keeps_body: bool
) -> Callable[..., Awaitable[Response | None]]:
    """Give `handler` the ids in the path, and with a `shape` the request's body: one JSON object as the shape types it.

    With `keeps_body` the handler may take its bytes as well. A value that is not a Response is sent as JSON with
    `status`. A large body is parsed outside the event loop.

    With a body the endpoint raises what `read_chunks` and `shape.check` raise. It raises ApiError
    `unsupported_media_type` without `Content-Type: application/json`, and `invalid_json` if it is not one JSON object.
    """

    async def endpoint(request: Request, *caller: Any) -> Response | None:
        if shape is None:
            answer = await handler(request, *caller, **request.path_params)
        else:
            context = request.context
            content_type = context.headers.get(b"content-type", b"")
            if content_type != b"application/json" and not _JSON_TYPE.fullmatch(content_type):
                raise ApiError("unsupported_media_type")
            body = b"".join(await read_chunks(request, most_bytes))
            if len(body) <= AT_ONCE_BYTES:
                typed = _checked(shape, body)
            else:
                typed = await request.state.offload.run(context.account_id or context.client_ip, _checked, shape, body)
            if keeps_body:
                context.body = body
            del body  # up to 16 MiB, while the handler waits for a model server
            answer = await handler(request, *caller, body=typed, **request.path_params)
        return answer if answer is None or isinstance(answer, Response) else reply(answer, status)

    return endpoint


def _checked(shape: Shape[Any], body: bytes) -> Any:
    value = parse_json(body)
    if not isinstance(value, dict):
        raise ApiError("invalid_json", "The request body must be one JSON object.")
    return shape.check(value, "")
