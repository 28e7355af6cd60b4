"""The download that an administrator has started: its progress, its end, and a stop that keeps what has arrived."""

import asyncio
from pathlib import Path

import pytest

from svc.inference.local import add
from svc.inference.local.add import wanted
from svc.inference.local.downloads import Downloads
from svc.outbound.client import Outbound
from tests.support.file_server import FileServer
from tests.support.waiting import until

CONTENT = b"GGUF" + bytes(3 * 1024 * 1024)


async def nothing() -> None: ...


async def test_progress_and_end_are_shown(tmp_path: Path) -> None:
    client, ended = Outbound(), asyncio.Event()

    async def end() -> None:
        ended.set()

    downloads = Downloads(client, end)
    assert downloads.as_json() is None and downloads.running is None
    async with FileServer(CONTENT) as server:
        order = wanted(f"{server.address}/whole", tmp_path, "one", None)
        downloads.start(order)
        assert downloads.running == order
        await until(lambda: downloads.running is None)
    assert ended.is_set()
    shown = {"name": "one", "url": order.source, "running": False, "error": None}
    assert downloads.as_json() == {**shown, "bytes": len(CONTENT), "size_bytes": len(CONTENT)}
    await client.aclose()


async def test_stopped_download_continues_later(tmp_path: Path) -> None:
    client = Outbound()
    downloads = Downloads(client, nothing)
    async with FileServer(CONTENT) as server:
        downloads.start(wanted(f"{server.address}/chunks-without-end", tmp_path, "one", None))
        await until(lambda: (downloads.as_json() or {})["bytes"])
        await downloads.stop()
    shown = downloads.as_json() or {}
    assert not shown["running"] and "continue" in shown["error"]
    assert (tmp_path / add.PARTIAL / "one.gguf").stat().st_size > 0
    await client.aclose()


async def test_refused_download_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Outbound()
    downloads = Downloads(client, nothing)
    async with FileServer(b"<html>") as server:
        downloads.start(wanted(f"{server.address}/whole", tmp_path, "one", None))
        await until(lambda: downloads.running is None)
    assert (downloads.as_json() or {})["error"] == "this is no GGUF file"
    await client.aclose()
