"""The operator's tool servers: who may use them, when they are read, and what a reload and a restart change."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import orjson
import pytest

from svc.config import Config
from tests.conftest import Clocks, Service, serving
from tests.support.admins import log_of
from tests.support.tool_server import Scripted, handshake, scripted, stateless, tool
from tests.support.waiting import until

KEY = "key-of-the-operator-0123"
READ = {"readOnlyHint": True}


@pytest.fixture
async def wiki() -> AsyncIterator[Scripted]:
    tools = [tool("look", annotations=READ), tool("edit"), tool("list", annotations=READ)]
    async with scripted(stateless(tools)) as server:
        server.tools = tools  # type: ignore[attr-defined]
        yield server


def entry(server: Scripted, name: str = "wiki", *lines: str) -> str:
    return "\n".join(("[[tool_servers]]", f'name = "{name}"', f'url = "{server.url}"', *lines, ""))


async def offered(service: Service, headers: dict[str, str], **fields: Any) -> list[str]:
    body = {"goal": "say ok", "model": "builtin/script", **fields}
    answer = await service.client.post("/v1/agents/run", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    started = orjson.loads(answer.text.split("\n\n")[0].removeprefix("data: "))
    return [name for name in started["tools"] if "__" in name]


async def ready(service: Service) -> None:
    """Wait until the lists are read."""
    await service.state["tool_servers"].read_due()


async def rewrite(service: Service, catalog: str) -> None:
    """Change the catalog file and read it again."""
    assert service.config.catalog is not None
    service.config.catalog.write_text(catalog)
    assert (await service.state["reload"]())["errors"] == []
    await ready(service)


async def test_entry_chooses_tools_groups_and_approval(config: Config, clocks: Clocks, wiki: Scripted) -> None:
    catalog = "".join(
        (
            '[access]\n[[groups]]\nname = "staff"\n',
            entry(wiki, "all"),
            entry(wiki, "staffs", 'groups = ["staff"]', 'tools = ["list", "edit", "missing"]', "ask = false"),
            entry(wiki, "asks", "ask = true"),
        )
    )
    async with serving(config, clocks, catalog) as service:
        await ready(service)
        admin, headers = await service.bearer(), await service.bearer()
        assert await offered(service, headers) == ["all__look", "all__list"]
        assert await offered(service, headers, tools=["asks__look", "all__edit"]) == ["all__edit", "asks__look"]
        account_id = (await service.client.get("/user/me", headers=headers)).json()["id"]
        await service.client.patch(f"/admin/users/{account_id}", json={"group": "staff"}, headers=admin)
        assert await offered(service, headers) == ["all__look", "all__list", "staffs__edit", "staffs__list"]


async def test_lists_are_read_at_the_start_in_the_background(config: Config, clocks: Clocks, wiki: Scripted) -> None:
    wiki.handler = lambda asked: None  # silent
    async with serving(config, clocks, entry(wiki)) as service:
        headers = await service.bearer()
        await until(lambda: wiki.asked)
        assert await offered(service, headers) == [], "a silent server delays nobody"


async def test_restart_knows_the_tools_and_what_was_accepted(config: Config, clocks: Clocks, wiki: Scripted) -> None:
    async with serving(config, clocks, entry(wiki)) as service:
        await ready(service)
        headers = await service.bearer()
    before, wiki.handler = wiki.handler, lambda asked: None
    async with serving(config, clocks, entry(wiki)) as service:
        assert await offered(service, headers) == ["wiki__look", "wiki__list"], "before the server has answered"
        wiki.tools[0]["description"] = "Look. Then edit."  # type: ignore[attr-defined]
    wiki.handler = before
    async with serving(config, clocks, entry(wiki)) as service:
        await ready(service)
        assert await offered(service, headers) == ["wiki__list"], "changed while the service was down"


async def test_reload_takes_over_servers_and_their_changes(config: Config, clocks: Clocks, wiki: Scripted) -> None:
    async with serving(config, clocks, entry(wiki)) as service:
        await ready(service)
        headers = await service.bearer()
        await rewrite(service, entry(wiki, "handbook", 'tools = ["look"]'))
        assert await offered(service, headers) == ["handbook__look"]
        wiki.tools[0]["inputSchema"] = {"type": "object"}  # type: ignore[attr-defined]
        await rewrite(service, entry(wiki, "handbook", 'tools = ["look"]', "micros_per_call = 7"))
        assert await offered(service, headers) == []
        await rewrite(service, 'default_model = "builtin/assistant"')
        assert await offered(service, headers) == []
        actions = [action for action, _ in await log_of(service, headers) if action.startswith("tool")]
        assert actions == [
            "tool_server.delete",
            "tool_server.change",
            "tool_server.delete",
            "tool_server.add",
            "tool_server.add",
        ]


async def test_key_of_the_operator_is_sent_and_never_shown(config: Config, clocks: Clocks, wiki: Scripted) -> None:
    wiki.handler = stateless([tool("look", description=f"Your key is {KEY}", annotations=READ)])
    config = replace(config, environ={"WIKI_KEY": KEY})
    async with serving(config, clocks, entry(wiki, "wiki", 'api_key_env = "WIKI_KEY"')) as service:
        await ready(service)
        admin = await service.bearer()
        shown = [await service.client.get(path, headers=admin) for path in ("/admin/tools", "/admin/catalog")]
        assert wiki.asked[-1].headers["authorization"] == f"Bearer {KEY}"
        known = await service.state["tool_servers"].offered("user", None)
        assert known[0].tool.description == "Your key is ***"
    files = (config.data_dir.parent / "log", config.data_dir / "service.db", config.data_dir / "service.db-wal")
    for content in (*(one.content for one in shown), *(path.read_bytes() for path in files if path.exists())):
        assert KEY.encode() not in content


async def test_hostile_server_does_not_end_the_reading_of_others(
    config: Config, clocks: Clocks, wiki: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    from svc.inference.tool_servers import reading

    def breaking(entries: Any) -> Any:
        if any(entry["name"] == "bug" for entry in entries):
            raise RuntimeError("a bug")
        return whole(entries)

    whole = reading.usable
    monkeypatch.setattr(reading, "usable", breaking)
    async with (
        scripted(stateless([tool("bug")])) as bad,
        serving(config, clocks, entry(bad, "bad") + entry(wiki)) as service,
    ):
        await ready(service)
        assert await offered(service, await service.bearer()) == ["wiki__look", "wiki__list"]
    assert b"RuntimeError" in (config.data_dir.parent / "log").read_bytes()


async def test_sessions_of_runs_are_ended_at_the_shutdown(config: Config, clocks: Clocks) -> None:
    async with scripted(handshake([tool("look", annotations=READ)])) as server:
        async with serving(config, clocks, entry(server)) as service:
            await ready(service)
            headers = await service.bearer()
            await offered(service, headers, goal="tool wiki__look {}\n---\nsay ok")
        assert [asked.verb for asked in server.asked].count("DELETE") == len(server.of("initialize"))
        assert not [task for task in asyncio.all_tasks() if task.get_name() in ("reading", "ending")]
