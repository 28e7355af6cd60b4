"""Adding a GGUF file: names, interruptions, redirects, hashes, and what is never shown."""

import asyncio
import hashlib
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from svc.inference.local import add
from svc.inference.local.add import NotAdded, wanted
from svc.outbound.addresses import public_address
from svc.outbound.client import Outbound
from tests.support.cases import each
from tests.support.file_server import FileServer
from tests.support.loop_clock import hastened

CONTENT = b"GGUF" + os.urandom(3 * 1024 * 1024 + 5)
HASH = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
async def server() -> AsyncIterator[FileServer]:
    async with FileServer(CONTENT) as server:
        yield server


async def added(source: str, folder: Path, name: str | None = "one", sha256: str | None = None, **options: bool) -> Any:
    """Add a file; return the progress as (bytes, size)."""
    progress: list[tuple[int, int | None]] = []
    client = Outbound()
    try:
        order = wanted(source, folder, name, sha256, **options)
        assert await add.add(order, client, lambda *now: progress.append(now)) == order.path
    finally:
        await client.aclose()
    return progress


def files_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


async def test_download_shows_its_progress_and_only_the_whole_file(server: FileServer, tmp_path: Path) -> None:
    progress = await added(f"{server.address}/whole", tmp_path, sha256=HASH.upper())
    assert files_in(tmp_path) == ["one.gguf"] and (tmp_path / "one.gguf").read_bytes() == CONTENT
    assert progress[-1] == (len(CONTENT), len(CONTENT)) and len(progress) >= 3


async def test_interrupted_download_continues(server: FileServer, tmp_path: Path) -> None:
    await hastened(added(f"{server.address}/cut", tmp_path, sha256=HASH))
    assert server.ranges[0] == 0 and 0 < server.ranges[1] < len(CONTENT)
    assert files_in(tmp_path) == ["one.gguf"]


async def test_download_continues_in_the_next_command(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(NotAdded, match="interrupted 5 times"):
        await hastened(added(f"{server.address}/always-cut", tmp_path))
    assert server.asked["/always-cut"] == 5 and server.ranges == sorted(server.ranges)
    assert files_in(tmp_path) == [".partial/one.gguf", ".partial/one.json"]
    before = (tmp_path / ".partial" / "one.gguf").stat().st_size
    with pytest.raises(NotAdded):
        await hastened(added(f"{server.address}/always-cut", tmp_path))
    assert server.ranges[5] == before > 0


async def test_server_that_sends_less_than_the_range_makes_no_whole_file(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(NotAdded, match="bytes have arrived"):
        await hastened(added(f"{server.address}/short-parts", tmp_path))
    assert files_in(tmp_path) == [".partial/one.gguf", ".partial/one.json"]


async def test_another_address_begins_anew(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(NotAdded):
        await hastened(added(f"{server.address}/always-cut", tmp_path))
    await added(f"{server.address}/whole", tmp_path, sha256=HASH)
    assert server.ranges[-1] == 0


@each("what", ("no-ranges", "later", "unknown-size"))
async def test_whole_file_comes_from_every_kind_of_server(server: FileServer, tmp_path: Path, what: str) -> None:
    await hastened(added(f"{server.address}/{what}", tmp_path / what, sha256=HASH))
    assert files_in(tmp_path / what) == ["one.gguf"]


async def test_file_that_changed_meanwhile_is_not_mixed(server: FileServer, tmp_path: Path) -> None:
    await hastened(added(f"{server.address}/changed", tmp_path))
    assert (tmp_path / "one.gguf").read_bytes() == CONTENT[:4] + b"other" + CONTENT[9:]


async def test_partial_file_that_is_whole_needs_no_byte(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(NotAdded):
        await hastened(added(f"{server.address}/always-cut", tmp_path))
    (tmp_path / ".partial" / "one.gguf").write_bytes(CONTENT)
    server.asked.clear()
    await added(f"{server.address}/always-cut", tmp_path, sha256=HASH)
    assert server.asked["/always-cut"] == 1 and files_in(tmp_path) == ["one.gguf"]


async def test_redirects_are_followed_to_a_limit(server: FileServer, tmp_path: Path) -> None:
    await added(f"{server.address}/redirect?/redirect?{server.address}/whole", tmp_path, sha256=HASH)
    with pytest.raises(NotAdded, match="more than 5"):
        await added(f"{server.address}/loop", tmp_path, "two")
    with pytest.raises(NotAdded, match="cannot be used"):
        await added(f"{server.address}/redirect?ftp://example.com/x", tmp_path, "two")
    assert files_in(tmp_path) == ["one.gguf"]


async def test_wrong_hash_leaves_nothing(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(NotAdded, match=HASH):
        await added(f"{server.address}/whole", tmp_path, sha256="0" * 64)
    assert files_in(tmp_path) == []


async def test_file_that_is_no_gguf_is_refused_at_its_first_bytes(tmp_path: Path) -> None:
    async with FileServer(b"<html>" + bytes(10**6)) as server:
        for what in ("whole", "chunks-without-end"):
            with pytest.raises(NotAdded, match="no GGUF"):
                await added(f"{server.address}/{what}", tmp_path)
    async with FileServer(b"GG") as server:
        with pytest.raises(NotAdded, match="no GGUF"):
            await added(f"{server.address}/whole", tmp_path)
    assert files_in(tmp_path) == []


@each("what", ("status-404", "status-403", "status-204"))
async def test_refusal_of_the_server_is_final(server: FileServer, tmp_path: Path, what: str) -> None:
    with pytest.raises(NotAdded):
        await added(f"{server.address}/{what}", tmp_path)
    assert files_in(tmp_path) == []


async def test_file_larger_than_the_disk_is_refused_before_a_byte(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(NotAdded, match="MiB free"):
        await added(f"{server.address}/announces-more", tmp_path)
    assert files_in(tmp_path) == [] and server.asked["/announces-more"] == 1


class Disk(NamedTuple):
    free: int


async def test_download_without_end_stops_before_the_disk_is_full(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = 300 * 1024**2

    def usage(path: Path) -> Disk:
        return Disk(full - sum(one.stat().st_size for one in tmp_path.rglob("*") if one.is_file()))

    monkeypatch.setattr(shutil, "disk_usage", usage)
    with pytest.raises(NotAdded, match="MiB free"):
        await added(f"{server.address}/chunks-without-end", tmp_path)
    assert files_in(tmp_path) == []


async def test_copy_of_a_file_continues_after_an_interruption(tmp_path: Path) -> None:
    source, folder = tmp_path / "source.gguf", tmp_path / "models"
    source.write_bytes(CONTENT)
    order = wanted(str(source), folder, None, HASH)
    assert order.path == folder / "source.gguf"
    seen: list[int] = []

    def stop(done: int, size: int | None) -> None:
        seen.append(done)
        if len(seen) == 2:
            raise KeyboardInterrupt

    client = Outbound()
    with pytest.raises(KeyboardInterrupt):
        await add.add(order, client, stop)
    assert files_in(folder) == [".partial/source.gguf", ".partial/source.json"]
    await add.add(order, client, lambda done, size: seen.append(done))
    assert seen[2] > seen[1] and (folder / "source.gguf").read_bytes() == CONTENT
    assert files_in(folder) == ["source.gguf"]


@each("name", ("a b", "ä", "../x", "a/b", ".hidden", "x" * 65, "a\n"))
def test_names_are_those_of_model_ids(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotAdded, match="name"):
        wanted("/x/y.gguf", tmp_path, name, None)


@each("source", ("ftp://example.com/a.gguf", "http://", "https://user@example.com/a.gguf", "https://exa mple.com/a"))
def test_addresses_are_checked(tmp_path: Path, source: str) -> None:
    with pytest.raises(NotAdded):
        wanted(source, tmp_path, None, None)


def test_name_is_by_default_that_of_the_file(tmp_path: Path) -> None:
    order = wanted("https://example.com/a%2Db.GGUF?download=true#x", tmp_path, None, None)
    assert order.path.name == "a-b.gguf" and order.source == "https://example.com/a%2Db.GGUF?download=true"


async def test_existing_name_is_refused_without_replace(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "one.GGUF").write_bytes(b"GGUF old")
    with pytest.raises(add.NameTaken):
        await added(f"{server.address}/whole", tmp_path)
    await added(f"{server.address}/whole", tmp_path, replace=True)
    assert files_in(tmp_path) == ["one.GGUF"] and (tmp_path / "one.GGUF").read_bytes() == CONTENT


async def test_two_at_once_do_not_share_a_file(server: FileServer, tmp_path: Path) -> None:
    order, client = wanted(f"{server.address}/whole", tmp_path, "one", HASH), Outbound()
    results = await asyncio.gather(*(add.add(order, client, lambda *_: None) for _ in range(2)), return_exceptions=True)
    await client.aclose()
    assert sorted(type(one).__name__ for one in results) == ["NotAdded", "PosixPath"]
    assert (tmp_path / "one.gguf").read_bytes() == CONTENT


async def test_private_addresses_and_plain_http_are_refused_where_they_are_not_allowed(
    server: FileServer, tmp_path: Path
) -> None:
    client = Outbound(allow=public_address)
    order = wanted(f"{server.address}/whole", tmp_path, "one", None)
    with pytest.raises(NotAdded, match="not allowed"):
        await add.add(order, client, lambda *_: None)
    await client.aclose()
    client = Outbound()
    with pytest.raises(NotAdded, match="not allowed"):
        await add.add(order._replace(any_address=False), client, lambda *_: None)
    await client.aclose()
    assert server.asked.total() == 0 and files_in(tmp_path) == []
