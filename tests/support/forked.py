"""Servers and commands that are forked from one that has imported the application: the imports take two thirds of the CPU of a
start.

python -m tests.support.forked     starts a process for each line of JSON on stdin, and writes lines of JSON to stdout:
                                   the number of each new process, and the exit status of each process that has ended
"""

import atexit
import functools
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from svc.config import Config

ROOT = Path(__file__).parent.parent.parent
_OUTPUTS = ("stdout", "stderr")


class Forked:
    """A process, with what tests use of subprocess.Popen."""

    def __init__(self, parent: "_Parent", pid: int) -> None:
        self._parent = parent
        self.pid = pid

    @property
    def returncode(self) -> int | None:
        return self._parent.ended.get(self.pid)

    def poll(self) -> int | None:
        self._parent.read(0.0)
        return self.returncode

    def wait(self, timeout: float = float("inf")) -> int:
        ends = time.monotonic() + timeout
        while (status := self.returncode) is None:
            if time.monotonic() > ends:
                raise subprocess.TimeoutExpired("server", timeout)
            self._parent.read(0.05)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Parent:
    """The process that forks. `ended` holds the exit statuses of its children, as Popen has them."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.support.forked"]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
        self._process = subprocess.Popen(command, cwd=ROOT, **pipes)
        self.ended: dict[int, int] = {}
        self._started: list[int] = []
        self._rest = b""
        self._starting, self._reading = threading.Lock(), threading.Lock()
        atexit.register(self._close)

    def start(self, module: str, folder: Path, env: dict[str, str], arguments: Sequence[str]) -> Forked:
        """Start `main` of `module` with its output in `folder`."""
        assert self._process.stdin is not None
        for name in _OUTPUTS:
            (folder / name).write_bytes(b"")  # that of an earlier server in the same folder
        with self._starting:
            request = {"module": module, "folder": str(folder), "env": env, "arguments": arguments}
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            while not self._started:
                self.read(1.0)
            return Forked(self, self._started.pop())

    def read(self, seconds: float) -> None:
        """Read what the process has written, and wait for that so long."""
        assert self._process.stdout is not None
        with self._reading:
            if not select.select([self._process.stdout], [], [], seconds)[0]:
                return
            data = self._process.stdout.read(65536)
            assert data, "the process that starts servers has ended"
            *lines, self._rest = (self._rest + data).split(b"\n")
            for pid, status in map(json.loads, lines):
                if status is None:
                    self._started.append(pid)
                else:
                    self.ended[pid] = status

    def _close(self) -> None:
        self._process.communicate()


@functools.cache
def _parent() -> _Parent:
    return _Parent()


def start(module: str, folder: Path, env: dict[str, str], arguments: Sequence[str] = ()) -> Forked:
    """Run `main` of `module` in a separate process with this environment, and its output in `folder`."""
    return _parent().start(module, folder, env, arguments)


# --- the process that forks


def _requests(woken: int) -> Iterator[dict[str, Any]]:
    """Yield the requests on stdin until its end, and report the children that have ended."""
    rest = b""
    while True:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 65536)
            _report_ended()
        if 0 in ready:
            data = os.read(0, 65536)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            yield from map(json.loads, lines)


def _report_ended() -> None:
    try:
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            _tell(found[0], os.waitstatus_to_exitcode(found[1]))
    except ChildProcessError:
        pass


def _tell(pid: int, status: int | None) -> None:
    os.write(1, json.dumps([pid, status]).encode() + b"\n")


def _become(request: dict[str, Any]) -> None:
    """Give this new process the files, the environment and the arguments of a program."""
    files = [os.devnull, *(f"{request['folder']}/{name}" for name in _OUTPUTS)]
    for number, name in enumerate(files):
        opened = os.open(name, os.O_WRONLY if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = [request["module"], *request["arguments"]]


def main() -> int:
    gc.disable()  # as app.py does
    app = importlib.import_module("app")
    for step in app._first_use(Config()):  # once, not in each server
        step()
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for request in _requests(woken):
        if pid := os.fork():
            _tell(pid, None)
            continue
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as app.py does
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(woken)
        os.close(wakes)
        _become(request)
        status: int = importlib.import_module(request["module"]).main()
        return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
