"""A connection that stays open does not refer to its last request, which had the caller's token."""

import weakref
from typing import Any

from tests.support.connections import GET
from tests.support.server import hang_up
from tests.support.waiting import until
from tests.support.wire import listening_sockets


class Mark:
    """What can be referred to weakly, other than the parts of a request."""


async def test_open_connection_keeps_nothing_of_an_answered_request() -> None:
    marks: list[weakref.ref[Mark]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        scope["mark"] = mark = Mark()
        marks.append(weakref.ref(mark))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    async with listening_sockets(app) as wire:
        reader, writer = await wire.raw()
        for number in range(1, 3):
            writer.write(GET)
            await reader.readuntil(b"\r\n\r\n")
            await until(lambda: [mark() for mark in marks] == [None] * len(marks))
            assert (len(marks), len(wire.connections)) == (number, 1)
        await hang_up(writer)
