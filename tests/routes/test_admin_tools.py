"""What administrators see of tools."""

from collections.abc import AsyncIterator

import pytest

from svc.billing import wallet
from svc.config import Config
from tests.conftest import Clocks, Service, serving
from tests.support.tool_server import Scripted, result, scripted, stateless, text, tool

TOOLS = "/admin/tools"
READ = {"readOnlyHint": True}


@pytest.fixture
async def wiki() -> AsyncIterator[Scripted]:
    tools = [tool("look", annotations=READ), tool("edit")]

    def call(asked: object) -> bytes:
        failed = b"fail" in asked.raw  # type: ignore[attr-defined]
        return result(asked, text("seen", isError=failed))  # type: ignore[arg-type]

    async with scripted(stateless(tools, call)) as server:
        server.tools = tools  # type: ignore[attr-defined]
        yield server


async def test_tools_have_calls_failures_and_cost_by_month(config: Config, clocks: Clocks, wiki: Scripted) -> None:
    catalog = f'[[tool_servers]]\nname = "wiki"\nurl = "{wiki.url}"\nmicros_per_call = 40\n'
    async with serving(config, clocks, catalog) as service:
        await service.state["tool_servers"].read_due()
        signed_up = await service.sign_up()
        admin = {"authorization": f"Bearer {signed_up['access_token']}"}
        await service.state["db"].write(
            wallet.book, signed_up["user"]["id"], 1_000, description="", now_seconds=clocks.now
        )
        await service.client.post("/user/tool-servers", json={"name": "mine", "url": wiki.url}, headers=admin)
        goal = 'tool wiki__look {}\ntool wiki__look {"at": "fail"}\ntool mine__look {}\n---\nsay ok'
        goal = f'tool calculate {{"expression": "1 / 0"}}\n{goal}'
        body = {"goal": goal, "model": "builtin/script"}
        assert (await service.client.post("/v1/agents/run", json=body, headers=admin)).status_code == 200
        wiki.tools[1]["description"] = "Edits all."  # type: ignore[attr-defined]
        assert (await service.state["reload"]())["errors"] == []
        await service.state["tool_servers"].read_due()
        found = (await service.client.get(TOOLS, headers=admin)).json()
        rows = {row.pop("name"): row for row in found["data"]}
        assert rows["wiki__look"] == {
            "source": "wiki",
            "ask": False,
            "price_micros": 40,
            "available": True,
            "calls": 2,
            "failures": 1,
            "cost_micros": 40,
        }
        assert (rows["wiki__edit"]["ask"], rows["wiki__edit"]["available"], rows["wiki__edit"]["calls"]) == (
            True,
            False,
            0,
        )
        assert (rows["calculate"]["calls"], rows["calculate"]["failures"]) == (1, 1)
        assert rows["(users' tool servers)"]["calls"] == 1 and "mine__look" not in rows
        (server,) = found["servers"]
        assert (server["name"], server["url"], server["groups"]) == ("wiki", wiki.url, None)
        assert (server["state"], server["waiting"], server["detail"]) == ("changed", ["edit"], None)
        assert found["month"] == "2026-09"
        earlier = (await service.client.get(f"{TOOLS}?month=2026-08", headers=admin)).json()["data"]
        assert sum(row["calls"] for row in earlier) == 0
        wrong = await service.client.get(f"{TOOLS}?month=x", headers=admin)
        assert wrong.status_code == 400


async def test_only_administrators_see_them(service: Service) -> None:
    await service.bearer()
    assert (await service.client.get(TOOLS, headers=await service.bearer())).status_code == 404
