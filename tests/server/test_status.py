"""The socket in the data folder reports what the server does, to the folder's owner alone, while the server runs."""

import asyncio
import stat
from pathlib import Path

import pytest

from svc.server import status
from svc.version import VERSION
from tests.conftest import Service


async def test_status_names_the_service_and_its_work(service: Service) -> None:
    service.clocks.advance(60)
    async with asyncio.timeout(20):  # the service itself writes now and then
        while (told := await asyncio.to_thread(status.ask, service.config.data_dir))["svc_writer_waiting_jobs"]:
            await asyncio.sleep(0.01)
    assert (told["version"], told["base_url"]) == (VERSION, service.config.base_url)
    assert told["started_at"] == "2026-09-21T14:13:20.000Z" and told["draining"] is False
    assert told["svc_open_answers"] == told["svc_open_runs"] == 0


async def test_socket_is_private_and_removed_at_shutdown(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)  # longer than the address of a socket may be
    folder.mkdir()
    async with status.status_socket(folder, {"status": lambda: {"one": 1}}):
        assert stat.S_IMODE((folder / "status").stat().st_mode) == 0o600
        assert await asyncio.to_thread(status.ask, folder) == {"one": 1}
    assert list(folder.iterdir()) == [] and status.ask(folder) is None


async def test_stale_socket_is_replaced_and_means_no_server(tmp_path: Path) -> None:
    async with status.status_socket(tmp_path, {}):
        (tmp_path / "status").rename(tmp_path / "kept")
    (tmp_path / "kept").rename(tmp_path / "status")
    assert status.ask(tmp_path) is None
    async with status.status_socket(tmp_path, {"status": lambda: {"two": 2}}):
        assert await asyncio.to_thread(status.ask, tmp_path) == {"two": 2}


def test_missing_folder_has_no_server(tmp_path: Path) -> None:
    assert status.ask(tmp_path / "none") is None


async def test_silent_connection_does_not_block_others(tmp_path: Path) -> None:
    async with status.status_socket(tmp_path, {"status": lambda: {"one": 1}}):
        silent = [await asyncio.open_unix_connection(tmp_path / "status") for _ in range(20)]
        assert await asyncio.to_thread(status.ask, tmp_path) == {"one": 1}
        for _, writer in silent:
            writer.close()


async def test_unknown_or_long_line_gets_no_answer(tmp_path: Path) -> None:
    async with status.status_socket(tmp_path, {"status": lambda: {"one": 1}}):
        for line in ("", "other", "x" * 1_000_000):
            with pytest.raises((ValueError, OSError)):
                await asyncio.to_thread(status.ask, tmp_path, line)
        assert await asyncio.to_thread(status.ask, tmp_path) == {"one": 1}


async def test_invalid_answer_is_an_error(tmp_path: Path) -> None:
    server = await asyncio.start_unix_server(lambda _, writer: writer.close(), tmp_path / "status")
    with pytest.raises((ValueError, OSError)):
        await asyncio.to_thread(status.ask, tmp_path)
    server.close()
