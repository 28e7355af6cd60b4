"""Long answers are made while they are read, short ones have a length, and an account has few of the long ones open."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from svc.errors import ApiError
from svc.inference.media_engines import Slots
from svc.server.http.head import Context
from svc.server.sse import Drain
from svc.server.state import MANY_LONG, Request, State
from svc.server.streamed import json_array, streamed
from tests.support.cases import each
from tests.support.waiting import run_ready

PIECE = b"x" * 200_000


class Exchange:
    """One request for a streamed answer, whose reader takes a piece whenever `read` is called."""

    def __init__(self, pieces: AsyncGenerator[bytes, None], state: dict[str, Any], method: str = "GET") -> None:
        self.messages: asyncio.Queue[Any] = asyncio.Queue(maxsize=1)
        self.context = Context({}, account_id="user_1")
        scope = {"type": "http", "method": method, "headers": [], "svc": self.context}
        self.task = asyncio.create_task(self._run(pieces, scope, cast(State, SimpleNamespace(**state))))

    async def _run(self, pieces: AsyncGenerator[bytes, None], scope: dict[str, Any], state: State) -> None:
        answer = await streamed(Request(scope, self._receive, state), pieces)
        await answer(scope, self._receive, self.messages.put)

    async def _receive(self) -> dict[str, Any]:
        raise NotImplementedError("the body has been read")

    async def rest(self) -> tuple[dict[bytes, bytes], bytes]:
        """The headers and the whole body of what has not been read yet."""
        start = await self.messages.get()
        pieces = []
        while True:
            message = await self.messages.get()
            pieces.append(message["body"])
            if not message.get("more_body"):
                await self.task
                return dict(start["headers"]), b"".join(pieces)


@pytest.fixture
def state() -> dict[str, Any]:
    return {"long_answers": Slots(2, error=MANY_LONG), "drain": Drain()}


async def counted(number: int, made: list[int]) -> AsyncGenerator[bytes, None]:
    try:
        for index in range(number):
            made.append(index)
            yield PIECE
    finally:
        made.append(-1)


async def test_short_answer_has_a_length_and_is_not_limited(state: dict[str, Any]) -> None:
    headers, body = await Exchange(counted(1, []), state).rest()
    assert headers[b"content-length"] == b"200000" and body == PIECE


async def test_long_answer_is_produced_as_it_is_read(state: dict[str, Any]) -> None:
    made: list[int] = []
    exchange = Exchange(counted(200, made), state)
    await run_ready()
    assert 1 <= len(made) <= 3
    headers, body = await exchange.rest()
    assert b"content-length" not in headers and len(body) == 200 * len(PIECE) and made[-1] == -1


async def test_account_has_a_limited_number_of_long_answers(state: dict[str, Any]) -> None:
    first, second = (Exchange(counted(10, []), state) for _ in range(2))
    await run_ready()
    third = Exchange(counted(10, []), state)
    with pytest.raises(ApiError) as refused:
        await third.task
    assert refused.value.code == "rate_limit_exceeded"
    await Exchange(counted(1, []), state).rest()
    await first.rest()
    await Exchange(counted(10, []), state).rest()
    second.context.disconnect()
    await second.task


async def test_early_failure_is_an_ordinary_error(state: dict[str, Any]) -> None:
    async def failing() -> AsyncGenerator[bytes, None]:
        yield b"["
        raise ApiError("storage_unavailable")

    with pytest.raises(ApiError, match="storage"):
        await Exchange(failing(), state).task


async def test_disconnect_ends_the_production(state: dict[str, Any]) -> None:
    made: list[int] = []
    exchange = Exchange(counted(200, made), state)
    await exchange.messages.get()
    exchange.context.disconnect()
    await exchange.task
    assert made[-1] == -1 and not state["long_answers"]._open and not len(state["drain"])


async def test_long_answer_is_also_sent_during_the_drain(state: dict[str, Any]) -> None:
    state["drain"].begin()
    _, body = await Exchange(counted(10, []), state).rest()
    assert body == 10 * PIECE and not len(state["drain"])


async def test_account_deletion_ends_its_answer(state: dict[str, Any]) -> None:
    exchange = Exchange(counted(200, []), state)
    await exchange.messages.get()
    await exchange.messages.get()
    await asyncio.sleep(0)
    state["drain"].end_all_of("user_1", "account_deleted")
    with pytest.raises(ApiError) as cut:
        await exchange.task
    assert cut.value.code == "invalid_api_key"


async def test_head_produces_no_body(state: dict[str, Any]) -> None:
    made: list[int] = []
    headers, body = await Exchange(counted(200, made), state, "HEAD").rest()
    assert not made and not body and headers[b"content-type"] == b"application/json"


@each("pages", [[], [[]], [[1]], [[1, 2], [], [3]], [[], [{"a": []}]]])
async def test_pages_become_one_array(pages: list[list[Any]]) -> None:
    async def source() -> AsyncIterator[list[Any]]:
        for page in pages:
            yield page

    items = [item for page in pages for item in page]
    assert orjson.loads(b"".join([piece async for piece in json_array(source())])) == items
    whole = b"".join([piece async for piece in json_array(source(), b'{"data":[', b"]}")])
    assert orjson.loads(whole) == {"data": items}
