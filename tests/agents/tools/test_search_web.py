"""What a search of the web finds and costs in a run."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from svc.agents.tools.offered import offered_to
from svc.billing import wallet
from svc.config import Config
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.admins import ask
from tests.support.money import assert_exact, watch
from tests.support.search_engine import FOUND, KEY, SearchEngine
from tests.support.waiting import until

PRICE = 5_000
SEARCH = 'tool search_web {"query": "lighthouses"}\n---\nsay done'
RESULTS = [
    {"number": number, "title": title, "url": url, "snippet": snippet, "published": published}
    for number, (title, url, snippet, published) in enumerate(FOUND, 1)
]


@pytest.fixture
async def engine() -> AsyncIterator[SearchEngine]:
    async with SearchEngine("brave") as engine:
        yield engine


@pytest.fixture
async def service(config: Config, clocks: Clocks, engine: SearchEngine) -> AsyncIterator[Service]:
    async with serving(config, clocks, engine.catalog(PRICE)) as service:
        watch(service.config.data_dir / "service.db")
        yield service


@pytest.fixture
async def admin(service: Service) -> dict[str, str]:
    return await service.bearer()


@pytest.fixture
async def person(service: Service, admin: dict[str, str]) -> dict[str, str]:
    """Headers of an account that can pay for two searches, and for no third one."""
    session = await service.sign_up()
    await service.state["db"].write(wallet.book, session["user"]["id"], 14_999, description="", now_seconds=1.0)
    return bearer(session["access_token"])


async def run(service: Service, headers: dict[str, str], goal: str = SEARCH, **fields: Any) -> list[dict[str, Any]]:
    body = {"goal": goal, "model": "builtin/script", **fields}
    answer = await service.client.post("/v1/agents/run", json=body, headers=headers)
    assert answer.status_code == 200 and KEY not in answer.text, answer.text
    assert_exact(service.config.data_dir / "service.db")
    return [orjson.loads(block[6:]) for block in answer.text.split("\n\n")[:-1]]


def result_of(events: list[dict[str, Any]]) -> dict[str, Any]:
    (result,) = (event for event in events if event["type"] == "tool_result")
    return result


async def rows_of(service: Service, headers: dict[str, str]) -> list[dict[str, Any]]:
    ledger = (await service.client.get("/billing/ledger", headers=headers)).json()["data"]
    return [row for row in ledger if row["amount_micros"] < 0]


async def test_search_finds_and_is_a_row_of_the_ledger_and_of_usage(
    service: Service, person: dict[str, str], engine: SearchEngine, admin: dict[str, str]
) -> None:
    events = await run(service, person)
    assert events[0]["tools"][-2:] == ["search_web", "fetch_url"], "[search] makes both available"
    result = result_of(events)
    assert (result["ok"], result["result"]) == (True, RESULTS)
    assert (events[-1]["type"], events[-1]["cost_micros"]) == ("final", PRICE)
    assert [asked.query for asked in engine.requests] == ["lighthouses"]
    (row,) = await rows_of(service, person)
    assert (row["amount_micros"], row["model"], row["description"]) == (
        -PRICE,
        "search:brave",
        "search:brave: 1 search",
    )
    usage = (await service.client.get("/billing/usage", headers=person)).json()["data"]
    (of_search,) = (one for one in usage if one["model"] == "search:brave")
    assert (of_search["requests"], of_search["cost_micros"]) == (1, PRICE)
    record = (await service.client.get(f"/v1/agents/runs/{events[0]['run_id']}", headers=person)).json()
    assert record["cost_micros"] == PRICE
    of_record = [{name: one[name] for name in ("number", "url", "title")} for one in RESULTS]
    assert record["sources"] == [{"kind": "web", **source} for source in of_record] and record["citations"] == []
    spending = (await ask(service, "GET", "/admin/usage?by=model", admin)).json()
    assert {row["key"]: row["cost_micros"] for row in spending["data"]}["search:brave"] == PRICE
    assert 'svc_upstream_duration_seconds_count{provider="brave"} 1' in (await service.client.get("/metrics")).text


async def test_tools_with_a_price_say_it(service: Service, person: dict[str, str]) -> None:
    account_id = (await service.client.get("/user/me", headers=person)).json()["id"]
    state, caller = SimpleNamespace(**service.state), SimpleNamespace(id=account_id, auth="session", group=None)
    tools = (await offered_to(state, caller)).tools  # type: ignore[arg-type]
    prices = {name: tool.price_micros for name, tool in tools.items() if tool.price_micros}
    assert prices == {"search_web": PRICE, "generate_image": 20_000}


async def test_failed_search_is_a_result_and_costs_nothing(
    service: Service, person: dict[str, str], engine: SearchEngine
) -> None:
    for status, answer in ((429, b'{"error": "quota"}'), (401, KEY.encode()), (500, b""), (200, b"<html>")):
        engine.status, engine.answer = status, answer
        events = await run(service, person)
        assert not result_of(events)["ok"] and "search engine" in result_of(events)["result"]
        assert (events[-1]["type"], events[-1]["cost_micros"]) == ("final", 0)
    assert len(engine.requests) == 4 and await rows_of(service, person) == []


async def test_search_that_the_wallet_cannot_pay_ends_the_run_and_is_not_sent(
    service: Service, person: dict[str, str], engine: SearchEngine
) -> None:
    call = 'tool search_web {"query": "lighthouses"}\n'
    *events, last = await run(service, person, call * 4 + "---\nsay done")
    assert [event["ok"] for event in events if event["type"] == "tool_result"] == [True, True]
    assert (last["type"], last["error"]["code"], last["cost_micros"]) == ("error", "insufficient_funds", 2 * PRICE)
    assert len(engine.requests) == 2 and len(await rows_of(service, person)) == 2


async def test_limits_of_the_key_and_of_the_account_count_searches(
    service: Service, person: dict[str, str], engine: SearchEngine
) -> None:
    key = await service.make_key(person)
    path = f"/user/api-keys/{key['id']}"
    limited = await service.client.patch(path, json={"monthly_limit_micros": PRICE + 1}, headers=person)
    assert limited.status_code == 200, limited.text
    assert (await run(service, bearer(key["key"])))[-1]["type"] == "final"
    last = (await run(service, bearer(key["key"])))[-1]
    assert (last["type"], last["error"]["code"]) == ("error", "spending_limit_reached")
    assert len(engine.requests) == 1
    (row,) = await rows_of(service, person)
    assert row["key_id"] == key["id"]
    other = await service.client.patch("/user/settings", json={"monthly_limit_micros": PRICE}, headers=person)
    assert other.status_code == 200, other.text
    last = (await run(service, person))[-1]
    assert (last["type"], last["error"]["code"]) == ("error", "spending_limit_reached")


async def test_search_without_a_price_needs_no_wallet_and_counts_in_usage(
    config: Config, clocks: Clocks, engine: SearchEngine
) -> None:
    async with serving(config, clocks, engine.catalog()) as service:
        headers = await service.bearer()
        events = await run(service, headers)
        assert result_of(events)["result"] == RESULTS and events[-1]["cost_micros"] == 0
        usage = (await service.client.get("/billing/usage", headers=headers)).json()["data"]
        assert {"search:brave": 1}.items() <= {one["model"]: one["requests"] for one in usage}.items()
        assert await rows_of(service, headers) == []


async def test_reload_adds_and_removes_the_engine(
    service: Service, admin: dict[str, str], person: dict[str, str], engine: SearchEngine
) -> None:
    assert service.config.catalog is not None
    service.config.catalog.write_text("default_model = 'builtin/echo'")
    assert (await ask(service, "POST", "/admin/reload", admin)).json()["errors"] == []
    tools = (await run(service, person))[0]["tools"]
    assert "search_web" not in tools and "fetch_url" not in tools and engine.requests == []
    service.config.catalog.write_text(engine.catalog(PRICE - 1))
    assert (await ask(service, "POST", "/admin/reload", admin)).json()["errors"] == []
    assert (await run(service, person))[-1]["cost_micros"] == PRICE - 1


async def test_search_in_progress_ends_with_its_run_and_costs_nothing(
    service: Service, person: dict[str, str], engine: SearchEngine
) -> None:
    async def silent(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    engine.play = silent
    running = asyncio.create_task(run(service, person))
    await until(lambda: engine.requests)
    runs = (await service.client.get("/v1/agents/runs", headers=person)).json()["data"]
    stopped = await service.client.post(f"/v1/agents/runs/{runs[0]['id']}/stop", headers=person)
    assert stopped.status_code == 202
    last = (await running)[-1]
    assert (last["type"], last["reason"], last["cost_micros"]) == ("stopped", "requested", 0)
