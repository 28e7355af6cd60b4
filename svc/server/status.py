"""A socket in the data folder, which only its owner can open. Commands query the running server there.

svc status, doctor, reload -> <data folder>/status: one line, `status`, `settings` or `reload` -> one JSON document ->
the end
"""

import asyncio
import contextlib
import inspect
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from svc.config import Config
from svc.ids import timestamp
from svc.server.gauges import at_work, began_at
from svc.server.state import State
from svc.version import VERSION

_NAME = "status"
_TIMEOUT_SECONDS = 5.0
_ANSWER_BYTES = 1024 * 1024


def now(state: State) -> dict[str, Any]:
    """Return the server's version, process and start, and the gauges of its work by name."""
    gauges = {
        name + "".join(f"_{value}" for value in labels.values()): number for name, labels, number in at_work(state)
    }
    return {
        "version": VERSION,
        "pid": os.getpid(),
        "base_url": state.config.base_url,
        "started_at": timestamp(began_at(state)),
        "draining": state.drain.draining,
        **gauges,
    }


def settings(config: Config) -> dict[str, Any]:
    absolute = {name: str(path.absolute()) for name, path in config.files.items()}
    return {"environ": {**config.environ, **absolute}, "base_url": config.base_url}


@contextlib.asynccontextmanager
async def status_socket(folder: Path, answers: Mapping[str, Callable[[], Any]]) -> AsyncIterator[None]:
    """Answer each line on the socket in `folder` with `answers[line]()`, or what it awaits, while the block runs.

    Raises OSError if the file system has no sockets.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                line = (await reader.readline()).decode("latin-1").strip()
            if line in answers:
                found = answers[line]()
                writer.write(orjson.dumps(await found if inspect.isawaitable(found) else found))
        except (TimeoutError, OSError, ValueError):
            pass  # the command has disconnected, sends no line, or too long a line
        finally:
            writer.close()

    (folder / _NAME).unlink(missing_ok=True)  # left by a crash: no other process has locked the folder
    listener = socket.socket(socket.AF_UNIX)
    try:
        with _address(folder) as address:
            listener.bind(address)
        (folder / _NAME).chmod(0o600)
        server = await asyncio.start_unix_server(answer, sock=listener)
    except BaseException:
        listener.close()
        raise
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
