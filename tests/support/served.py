"""The server's `run` in this process: its start, its signals and its end, without the cost of a process.

It needs the main thread, so the test is not a coroutine. Its client runs on an event loop of another thread.
"""

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from starlette.applications import Starlette

from svc.config import Config, from_environ
from svc.server.http.protocol import Protocol
from svc.server.serve import Server, run
from tests.support import tiny_app
from tests.support.server import RunningServer

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_START_SECONDS = 30


class Outcome(NamedTuple):
    status: int
    stdout: str
    stderr: str


class _ThisProcess:
    """What `RunningServer` uses of a process."""

    pid = os.getpid()

    def send_signal(self, number: int) -> None:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler):
            return  # the server has ended, or does not listen yet: the signal would end the tests
        os.kill(os.getpid(), number)


def served(
    tmp_path: Path,
    env: Mapping[str, str] | None = None,
    play: Callable[[RunningServer], Awaitable[None]] | None = None,
    create_app: Callable[[Config], Starlette] = tiny_app.create_app,
    **deadlines: float,
) -> Outcome:
    """Serve `create_app` as a start with `env` does, until `play` has returned and a SIGTERM has ended it, or the start
    fails. `deadlines` are attributes of `Server` or `Protocol`.
    """
    settings = {"SVC_PORT": "0", "SVC_DATA_DIR": str(tmp_path / "data"), "SVC_DISCOVER": "0", **(env or {})}
    out, err = tmp_path / "stdout", tmp_path / "stderr"
    faults: list[BaseException] = []
    ended = threading.Event()

    def client() -> None:
        try:
            if server := _listening(out, tmp_path, settings, ended):
                try:
                    asyncio.run(_played(server, play))
                finally:
                    server.send_signal(signal.SIGTERM)
        except BaseException as fault:
            faults.append(fault)

    with _restored(), _with(deadlines), out.open("w") as stdout, err.open("w") as stderr:
        thread = threading.Thread(target=client)
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            thread.start()
            try:
                status = run(lambda: replace(from_environ(settings), log_fd=stderr.fileno()), create_app)
            finally:
                ended.set()
                thread.join()
    for fault in faults:
        raise fault
    return Outcome(status, out.read_text(), err.read_text())


async def _played(server: RunningServer, play: Callable[[RunningServer], Awaitable[None]] | None) -> None:
    if play is not None:
        async with asyncio.timeout(60):
            await play(server)


def _listening(out: Path, folder: Path, settings: Mapping[str, str], ended: threading.Event) -> RunningServer | None:
    """Wait for the first line of the server. Return None if the start fails."""
    deadline = time.monotonic() + _START_SECONDS
    while not ended.wait(0.002):
        assert time.monotonic() < deadline, "the server did not start"
        line, end, _ = out.read_text().partition("\n") if out.exists() else ("", "", "")
        if end:
            plain = settings.get("SVC_TLS") == "proxy"
            process, data_dir = _ThisProcess(), Path(settings["SVC_DATA_DIR"])
            return RunningServer(process, folder, data_dir, line.removeprefix("listening on "), plain=plain)  # type: ignore[arg-type]
    return None


@contextlib.contextmanager
def _with(deadlines: Mapping[str, float]) -> Iterator[None]:
    owners = {name: Protocol if hasattr(Protocol, name) else Server for name in deadlines}
    before = {name: getattr(owner, name) for name, owner in owners.items()}
    try:
        for name, value in deadlines.items():
            setattr(owners[name], name, value)
        yield
    finally:
        for name, owner in owners.items():
            setattr(owner, name, before[name])


@contextlib.contextmanager
def _restored() -> Iterator[None]:
    """Undo what `run` changes for its whole process."""
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    files, mask = resource.getrlimit(resource.RLIMIT_NOFILE), os.umask(0o077)
    collections, log = gc.get_threshold(), logging.getLogger("uvicorn.error")
    filters, level = list(log.filters), log.level
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.umask(mask)
        resource.setrlimit(resource.RLIMIT_NOFILE, files)
        gc.set_threshold(*collections)
        log.filters[:] = filters
        log.setLevel(level)
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):  # it would end this process
                thread.cancel()
