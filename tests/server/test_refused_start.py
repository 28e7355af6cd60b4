"""A start that is refused ends with one line and status 1, every time: no thread outlives the event loop."""

import concurrent.futures
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from svc.db import open_database
from svc.errors import StartError
from svc.schema import APPLICATION_ID, newest_schema
from tests.support.databases import prepare
from tests.support.server import APP, COMMAND, start_fails


def damaged(folder: Path) -> None:
    (folder / "service.db").write_bytes(b"junk" * 5_000)


def newer(folder: Path) -> None:
    schema, migrations = newest_schema()
    prepare(folder / "service.db", schema, [*migrations, "SELECT 1;"])


def foreign(folder: Path) -> None:
    header = bytearray(4096)
    header[:16], header[68:72] = b"SQLite format 3\0", (APPLICATION_ID + 1).to_bytes(4, "big")
    (folder / "service.db").write_bytes(header)


def short_master_key(folder: Path) -> None:
    (folder / "master.key").write_bytes(b"short")


def wrong_catalog(folder: Path) -> Mapping[str, str]:
    (folder / "catalog.toml").write_text('unknown = "entry"\n')
    return {"SVC_CATALOG": str(folder / "catalog.toml")}


def wrong_certificate(folder: Path) -> Mapping[str, str]:
    (folder / "a.pem").write_text("no certificate")
    return {"SVC_TLS": "files", "SVC_TLS_CERT": str(folder / "a.pem"), "SVC_TLS_KEY": str(folder / "a.pem")}


def no_room_for_certificates(folder: Path) -> None:
    (folder / "tls").touch()


def lost_master_key(folder: Path) -> None:
    prepare(folder / "service.db", *newest_schema())
    with contextlib.closing(sqlite3.connect(folder / "service.db")) as conn, conn:
        conn.execute("UPDATE installation SET key_check = zeroblob(32)")
        conn.execute(
            "INSERT INTO accounts (id, email, email_key, created_at) VALUES ('a', 'a@example.com', 'a@example.com', 1)"
        )
        conn.execute(
            "INSERT INTO providers (id, account_id, name, base_url, sealed_key, api_key_hint, created_at) "
            "VALUES ('p', 'a', 'mine', 'https://a.example', x'00', '…', 1)"
        )


# What makes a start fail, in the order in which the start reaches it.
KINDS: dict[str, Callable[[Path], Mapping[str, str] | None]] = {
    function.__name__: function
    for function in (
        short_master_key,
        damaged,
        foreign,
        newer,
        lost_master_key,
        wrong_catalog,
        wrong_certificate,
        no_room_for_certificates,
    )
}


def refused(folder: Path, kind: str) -> tuple[int, str, str]:
    data = folder / "data"
    data.mkdir(parents=True)
    return start_fails(folder, KINDS[kind](data), COMMAND if kind == "damaged" else (APP,))


def assert_one_line(outcome: tuple[int, str, str]) -> None:
    status, stdout, stderr = outcome
    assert (status, stdout, stderr.count("\n")) == (1, "", 1) and stderr.startswith("svc: "), outcome


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.soak)])
def test_refused_start_is_one_line_and_status_1(tmp_path: Path, times: int) -> None:
    kinds = [*KINDS] * times
    with concurrent.futures.ThreadPoolExecutor(4) as starts:  # side by side: the machine is busy, and threads end late
        for outcome in starts.map(refused, (tmp_path / str(number) for number in range(len(kinds))), kinds):
            assert_one_line(outcome)


async def test_a_refused_database_leaves_no_thread(tmp_path: Path) -> None:
    damaged(tmp_path)
    before = set(threading.enumerate())
    for _ in range(20):
        with pytest.raises(StartError):
            await open_database(tmp_path / "service.db")
        left = [thread for thread in set(threading.enumerate()) - before if "asyncio" not in thread.name]
        assert left == []
