"""An answer with tools that ends early: the part until then is stored, and its money is exact."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from svc.billing import wallet
from svc.config import Config
from tests.conftest import Clocks, Service, serving
from tests.support.money import assert_exact, watch
from tests.support.search_engine import SearchEngine
from tests.support.wire import listening_sockets

GOAL = 'say one\ntool search_web {"query": "a"}\n---\nsay two\ntool search_web {"query": "b"}\n---\nsay three'
PRICE = 5_000


@pytest.fixture
async def engine() -> AsyncIterator[SearchEngine]:
    async with SearchEngine("searxng") as engine:
        yield engine


@pytest.fixture
async def service(config: Config, clocks: Clocks, engine: SearchEngine) -> AsyncIterator[Service]:
    async with serving(config, clocks, engine.catalog(micros_per_search=PRICE)) as service:
        watch(service.config.data_dir / "service.db")
        yield service


async def test_client_that_leaves_at_any_event_has_an_exact_answer_so_far(
    service: Service, clocks: Clocks, engine: SearchEngine
) -> None:
    signed_up = await service.sign_up()
    await service.state["db"].write(
        wallet.book, signed_up["user"]["id"], 200_000, description="", now_seconds=clocks.now
    )
    headers = {"authorization": f"Bearer {signed_up['access_token']}", "x-service-tools": "search_web"}
    body = {"model": "builtin/script", "stream": True, "messages": [{"role": "user", "content": GOAL}]}
    statuses = set()
    async with listening_sockets(service.app) as wire, wire.client(headers=headers, timeout=30) as client:
        for events in range(9):
            clocks.advance(10)
            async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
                conversation = answer.headers["x-service-conversation"]
                lines = answer.aiter_lines()
                for _ in range(2 * events):
                    await anext(lines)
            shown = f"/conversations/{conversation}"

            async def ended(shown: str = shown) -> bool:
                return not (await client.get(shown)).json()["answering"]

            await ends(ended)
            message = (await client.get(f"{shown}/messages")).json()["data"][0]
            statuses.add(message["status"])
            results = [step for step in message["steps"] if "tool_result" in step]
            assert message["answer"]["cost_micros"] >= PRICE * len(results)
            assert_exact(service.config.data_dir / "service.db")
    assert statuses <= {"stopped", "complete"} and "stopped" in statuses


async def ends(condition: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(1_000):
        if await condition():
            return
    raise AssertionError("the answer does not end")
