"""The gauges of the moment, read from the application and its data folder."""

import asyncio
import os
import re
import sqlite3
from types import SimpleNamespace
from typing import cast

from svc.billing import wallet
from svc.certificates import tls_files
from svc.secrets import note_backup
from svc.server import status
from svc.server.state import State
from tests.conftest import Service


async def gauge(service: Service, name: str) -> float | None:
    text = (await service.client.get("/metrics")).text
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return None if found is None else float(found[1])


async def test_holds_have_a_count_and_micros(service: Service) -> None:
    account_id = (await service.sign_up())["user"]["id"]

    def hold_twice(tx: sqlite3.Connection) -> None:
        wallet.book(tx, account_id, 1_000, description="", now_seconds=1.0)
        wallet.hold(tx, account_id, "hold_1", 30, 1.0)
        wallet.hold(tx, account_id, "hold_2", 12, 1.0)

    assert (await gauge(service, "svc_holds"), await gauge(service, "svc_held_micros")) == (0, 0)
    await service.state["db"].write(hold_twice)
    assert (await gauge(service, "svc_holds"), await gauge(service, "svc_held_micros")) == (2, 42)


async def test_last_backup_is_0_without_a_backup(service: Service) -> None:
    folder = service.config.data_dir
    assert await gauge(service, "svc_last_backup_timestamp_seconds") == 0
    note_backup(folder, 0.0)
    os.utime(folder / "last-backup", (1_790_000_000, 1_790_000_000))
    assert await gauge(service, "svc_last_backup_timestamp_seconds") == 1_790_000_000


async def test_certificate_expiry_is_absent_without_a_certificate(service: Service) -> None:
    assert await gauge(service, "svc_certificate_expiry_timestamp_seconds") is None
    tls_files(service.config.data_dir, ["localhost"], service.clocks.now)
    days = (await gauge(service, "svc_certificate_expiry_timestamp_seconds") - service.clocks.now) / 86400  # type: ignore[operator]
    assert 396 < days < 397


async def test_waiting_and_open_work_is_measured(service: Service) -> None:
    db = service.state["db"]
    while db.waiting() != (0, 0):  # what the start still writes
        await asyncio.sleep(0.01)
    state = cast(State, SimpleNamespace(**service.state))
    writes = [asyncio.ensure_future(db.write(lambda tx: None)) for _ in range(3)]
    await asyncio.sleep(0)
    named = {(name, *labels.values()): number for name, labels, number in status.at_work(state)}
    assert (
        named["svc_writer_waiting_jobs",] >= 3  # and what the service itself writes now and then
        and named["svc_open_answers",] == 0
        and named["svc_workers", "speech"] == 0
    )
    for write in writes:
        await write
    async with asyncio.timeout(20):  # the service itself writes now and then
        while await gauge(service, "svc_writer_waiting_jobs"):
            await asyncio.sleep(0.01)


async def test_files_and_the_process_are_measured(service: Service) -> None:
    service.clocks.advance(100)
    assert await gauge(service, "process_start_time_seconds") == service.clocks.now - 100
    for name in ("svc_database_bytes", "svc_disk_free_bytes", "process_resident_memory_bytes", "process_open_fds"):
        assert await gauge(service, name) > 0, name  # type: ignore[operator]
