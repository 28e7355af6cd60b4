"""One request and its answer: uvicorn's cycle, whose last resort has the shape of our errors and which knows HTTP/1.0."""

import orjson
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from svc.errors import ApiError
from svc.ids import random_base62


class Cycle(RequestResponseCycle):
    """One request and its answer, whose last resort has the error shape."""

    async def send_500_response(self) -> None:
        headers, body = error_answer(ApiError("internal_error"))
        await self.send({"type": "http.response.start", "status": 500, "headers": [*headers, (b"connection", b"close")]})
        await self.send({"type": "http.response.body", "body": body, "more_body": False})


class UnchunkedCycle(Cycle):
    """An answer to HTTP/1.0, which knows no chunks: one without a length ends with its connection."""

    async def send(self, message: ASGISendEvent) -> None:
        self.chunked_encoding = False
        if message["type"] == "http.response.body":
            self.expected_content_length = len(message.get("body", b""))
        await super().send(message)


def error_answer(error: ApiError) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """The headers and the body of an ApiError that no application answers with."""
    body = orjson.dumps(error.body())
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "x-request-id": "req_" + random_base62(22),
        "strict-transport-security": "max-age=31536000",
        "x-content-type-options": "nosniff",
        **error.headers,
    }
    return [(name.encode(), value.encode()) for name, value in headers.items()], body
