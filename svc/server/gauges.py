"""The gauges of `/metrics` and of `svc status`."""

import asyncio
import contextlib
import platform
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

from svc.billing import wallet
from svc.certificates import check_certificate
from svc.config import Config
from svc.errors import ApiError, StartError
from svc.metrics import Reading
from svc.secrets import DATABASE, backup_made_at
from svc.server.state import State
from svc.version import VERSION


def at_work(state: State) -> list[Reading]:
    """Return the gauges of this process's own work, without waiting."""
    writing, reading = state.db.waiting()
    return [
        ("svc_open_answers", {}, len(state.drain)),
        ("svc_open_runs", {}, len(state.open_runs)),
        ("svc_writer_waiting_jobs", {}, writing),
        ("svc_reader_waiting_jobs", {}, reading),
        ("svc_body_bytes", {}, state.bodies.taken_bytes),
        *(("svc_workers", {"makes": name}, shop.at_work()) for name, shop in state.process_pools.items()),
    ]


def began_at(state: State) -> float:
    return state.clock() - (state.config.monotonic() - state.started_at)


async def readings(state: State) -> list[Reading]:
    found: list[Reading] = [
        ("svc_build_info", {"version": VERSION, "python": platform.python_version()}, 1),
        *at_work(state),
        ("process_start_time_seconds", {}, began_at(state)),
    ]
    with contextlib.suppress(ApiError):  # without a database these are left out
        holds, held_micros = await state.db.read(wallet.held_in_all)
        found += [("svc_holds", {}, holds), ("svc_held_micros", {}, held_micros)]
    return found + await asyncio.to_thread(lambda: [*_on_disk(state.config), *_of_process()])


def _on_disk(config: Config) -> Iterator[Reading]:
    database = config.data_dir / DATABASE
    with contextlib.suppress(StartError, OSError):
        if config.tls != "proxy":
            yield "svc_certificate_expiry_timestamp_seconds", {}, check_certificate(config)
    yield "svc_last_backup_timestamp_seconds", {}, backup_made_at(config.data_dir)
    for name, path in (("svc_database_bytes", database), ("svc_wal_bytes", database.with_name(f"{database.name}-wal"))):
        with contextlib.suppress(OSError):
            yield name, {}, path.stat().st_size
    with contextlib.suppress(OSError):
        yield "svc_disk_free_bytes", {}, shutil.disk_usage(config.data_dir).free


def _of_process() -> Iterator[Reading]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield "process_cpu_seconds_total", {}, used.ru_utime + used.ru_stime
    yield "process_max_fds", {}, resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    with contextlib.suppress(OSError):  # only Linux has these
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        yield "process_resident_memory_bytes", {}, pages * resource.getpagesize()
        yield "process_open_fds", {}, len(list(Path("/proc/self/fd").iterdir()))
