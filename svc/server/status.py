"""The state of the running server: the gauges of `/metrics`, and a socket in the data folder for commands.

Only the folder's owner can open the socket.

svc status, doctor, reload -> <data folder>/status: one line, `status`, `settings` or `reload` -> one JSON document ->
the end
"""

import asyncio
import contextlib
import inspect
import os
import platform
import resource
import shutil
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from svc.billing import wallet
from svc.certificates import check_certificate
from svc.config import Config
from svc.errors import ApiError, StartError
from svc.ids import timestamp
from svc.metrics import Reading
from svc.secrets import DATABASE, backup_made_at
from svc.server.state import State
from svc.version import VERSION

_NAME = "status"
_TIMEOUT_SECONDS = 5.0
_ANSWER_BYTES = 1024 * 1024


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


def server_states(state: State) -> list[dict[str, Any]]:
    several = (provider.servers for provider, _ in state.models.catalog.servers() if provider.servers)
    return [one for servers in several for one in servers.states(state.metrics, state.clock())]


def began_at(state: State) -> float:
    return state.clock() - (state.config.monotonic() - state.started_at)


async def readings(state: State) -> list[Reading]:
    found: list[Reading] = [
        ("svc_build_info", {"version": VERSION, "python": platform.python_version()}, 1),
        *at_work(state),
        ("process_start_time_seconds", {}, began_at(state)),
    ]
    for one in server_states(state):
        labels = {"provider": one["provider"], "server": one["server"]}
        found.append(("svc_server_skipped", labels, int(one["skipped"])))
    with contextlib.suppress(ApiError):  # without a database these are left out
        sums = await state.db.read(wallet.held_in_all)
        found += [("svc_holds", {}, sums["holds"]), ("svc_held_micros", {}, sums["held_micros"])]
    return found + await asyncio.to_thread(lambda: [*_of_system(state.config)])


def _of_system(config: Config) -> Iterator[Reading]:
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
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield "process_cpu_seconds_total", {}, used.ru_utime + used.ru_stime
    yield "process_max_fds", {}, resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    with contextlib.suppress(OSError):  # only Linux has these
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        yield "process_resident_memory_bytes", {}, pages * resource.getpagesize()
        yield "process_open_fds", {}, len(list(Path("/proc/self/fd").iterdir()))


# --- the socket for commands


def now(state: State) -> dict[str, Any]:
    """Return the server's version, process and start, and the gauges of its work by name."""
    return {
        "version": VERSION,
        "pid": os.getpid(),
        "base_url": state.config.base_url,
        "started_at": timestamp(began_at(state)),
        "draining": state.drain.draining,
        "tools_without_reasoning": state.engines.field_support.without_effort(state.clock()),
        "servers": server_states(state),
        "local_models": state.local_models.listing(),
        **{"_".join((name, *labels.values())): number for name, labels, number in at_work(state)},
    }


def settings(config: Config) -> dict[str, Any]:
    absolute = {name: str(path.absolute()) for name, path in config.files.items()}
    return {"environ": {**config.environ, **absolute}, "base_url": config.base_url}


@contextlib.asynccontextmanager
async def status_socket(folder: Path, answers: Mapping[str, Callable[..., Any]]) -> AsyncIterator[None]:
    """Answer each line on the socket in `folder` by the function that its first word names, while the block runs.

    The second word, if there is one, is its argument. It may return an awaitable.

    Raises OSError if the file system has no sockets.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                name, *argument = (await reader.readline()).decode("latin-1").split(None, 1)
            if name in answers:
                found = answers[name](*map(str.strip, argument))
                writer.write(orjson.dumps(await found if inspect.isawaitable(found) else found))
        except (TimeoutError, OSError, ValueError, TypeError):
            pass  # the command has disconnected, or sends no line, a wrong one, or too long a one
        finally:
            writer.close()

    with _address(folder) as address:  # a socket that a crash left there is replaced
        server = await asyncio.start_unix_server(answer, address)
    (folder / _NAME).chmod(0o600)
    try:
        yield
    finally:
        server.close()
        (folder / _NAME).unlink(missing_ok=True)


def ask(folder: Path, line: str = "status", timeout_seconds: float = _TIMEOUT_SECONDS) -> Any:
    """Return the answer to `line` of the server of this data folder, or None if none runs.

    Raises OSError, and ValueError if the answer is not JSON.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout_seconds)
        try:
            with _address(folder) as address:
                connection.connect(address)
        except (FileNotFoundError, ConnectionRefusedError):  # no folder, no socket, or one left by a crash
            return None
        connection.sendall(line.encode() + b"\n")
        with connection.makefile("rb") as answer:
            return orjson.loads(answer.read(_ANSWER_BYTES))


@contextlib.contextmanager
def _address(folder: Path) -> Iterator[str]:
    """Yield the socket's address by an open descriptor: a path may be longer than the 107 bytes of an address."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{_NAME}" if Path("/proc/self/fd").exists() else str(folder / _NAME)
    finally:
        os.close(descriptor)
