"""Imports that are interrupted: by a crash, a shutdown and the deletion of the account."""

import asyncio
import dataclasses
import json
import os
import shutil
from pathlib import Path
from typing import Any

from svc.content import imports
from tests.conftest import PASSWORD, Clocks, Config, Service, bearer, serving
from tests.routes.test_imports import IMPORT, Headers, begin, ended, get, imported, listed
from tests.support import exports

MANY = json.dumps([{**exports.librechat(), "conversationId": f"{number}"} for number in range(120)]).encode()
FEW = [exports.chatgpt(), exports.claude()]


async def begun(service: Service, headers: Headers) -> str:
    """The id of an import that has stored some of its conversations."""
    started: str = (await begin(service, headers, MANY, "application/json"))["id"]
    while (report := await get(service, headers, f"{IMPORT}/{started}"))["counts"]["imported"] < 3:
        assert report["status"] == "reading", report
        await asyncio.sleep(0.005)
    return started


async def test_crash_during_an_import_fails_it_and_it_can_be_repeated(
    config: Config, clocks: Clocks, tmp_path: Path
) -> None:
    async with serving(config, clocks) as service:
        headers = await service.bearer()
        started = await begun(service, headers)
        shutil.copytree(config.data_dir, tmp_path / "crashed", ignore=shutil.ignore_patterns("status"))
        await service.client.delete(f"{IMPORT}/{started}", headers=headers)
    async with serving(dataclasses.replace(config, data_dir=tmp_path / "crashed"), clocks) as service:
        report = await get(service, headers, f"{IMPORT}/{started}")
        assert (report["status"], report["reason"]) == ("failed", imports.INTERRUPTED)
        there = report["counts"]["imported"]
        assert there >= 3
        again = await imported(service, headers, MANY)
        assert again["status"] == "done" and again["counts"]["skipped"] in (there, there + 1)
        assert again["counts"]["imported"] + again["counts"]["skipped"] == 120
        query = "SELECT count(*), count(DISTINCT conversation_id) FROM messages"
        assert await service.state["db"].read(lambda conn: tuple(conn.execute(query).fetchone())) == (480, 120)
        assert (await service.client.delete(f"{IMPORT}/{started}", headers=headers)).status_code == 204
        assert (await service.client.delete(f"{IMPORT}/{again['id']}", headers=headers)).status_code == 204
        assert await listed(service, headers, "/conversations") == []


async def test_shutdown_fails_an_import_with_a_reason(service: Service) -> None:
    headers = await service.bearer()
    started = await begun(service, headers)
    service.state["drain"].begin()
    while service.state["open_imports"]:
        await asyncio.sleep(0.005)
    report = await service.state["db"].read(
        lambda conn: conn.execute("SELECT status, reason FROM imports WHERE id = ?", (started,)).fetchone()
    )
    assert tuple(report) == ("failed", imports.INTERRUPTED)
    service.state["drain"].draining = False
    assert (await get(service, headers, f"{IMPORT}/{started}"))["status"] == "failed"


async def test_deletion_of_the_account_leaves_no_row_and_no_file(service: Service) -> None:
    session = await service.sign_up()
    headers, account_id = bearer(session["access_token"]), session["user"]["id"]
    for export in FEW:
        await imported(service, headers, export)
    await begun(service, headers)
    answer = await service.client.request("DELETE", "/user/me", json={"password": PASSWORD}, headers=headers)
    assert answer.status_code == 204, answer.text
    while service.state["open_imports"]:
        await asyncio.sleep(0.005)

    def left(conn: Any) -> list[str]:
        tables = conn.execute(
            "SELECT t.name FROM pragma_table_list AS t, pragma_table_info(t.name) AS c WHERE c.name = 'account_id' AND t.type = 'table'"
        ).fetchall()
        return [name for (name,) in tables if conn.execute(f"SELECT 1 FROM {name} WHERE account_id = ?", (account_id,)).fetchone()]  # fmt: skip

    assert await service.state["db"].read(left) == []
    assert service.state["process_pools"]["imports"].at_work() == 0
    names = {path.name for path in service.config.data_dir.iterdir()}
    assert not any(name.startswith("tmp") for name in names), names


async def test_files_of_an_import_are_closed(service: Service) -> None:
    headers = await service.bearer()
    await imported(service, headers, exports.chatgpt())

    def open_files() -> int:
        links = [os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.lexists(entry.path)]
        return sum("(deleted)" in link and str(service.config.data_dir) in link for link in links)

    while open_files():  # closed in a thread
        await asyncio.sleep(0.005)
    assert service.state["import_slots"]._open == {}


async def test_conversation_that_is_being_answered_fails(service: Service) -> None:
    headers = await service.bearer()
    nodes = [exports.node("q", None, "user", "One", 1_700_000_001)]
    await imported(service, headers, [exports.chatgpt_chat("c", "Count", exports.mapping(*nodes), "q")])
    await service.state["db"].write(lambda tx: tx.execute("UPDATE conversations SET answering = 1") and None)
    nodes.append(exports.node("q2", "q", "assistant", "Two", 1_700_000_003))
    report = await imported(service, headers, [exports.chatgpt_chat("c", "Count", exports.mapping(*nodes), "q2")])
    assert report["conversations"][0]["status"] == "failed"
    assert "being answered" in report["conversations"][0]["reason"]
    await service.state["db"].write(lambda tx: tx.execute("UPDATE conversations SET answering = 0") and None)
    assert (await ended(service, headers, report["id"]))["status"] == "done"
