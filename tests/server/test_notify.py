"""svc/server/notify.py: a supervisor, played here by a socket, hears that the service is ready, lives, and stops."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.server.notify import notify, watchdog_seconds
from tests.support.connections import TINY
from tests.support.server import running_server_sync, start_fails


class Supervisor(socket.socket):
    """The socket that NOTIFY_SOCKET names."""

    def heard(self, seconds: float = 10.0) -> str:
        """The next message, or nothing after so long."""
        self.settimeout(seconds)
        try:
            return self.recv(4096).decode()
        except TimeoutError:
            return ""

    def heard_within(self, seconds: float) -> list[str]:
        """All that is said in so long a time."""
        end = time.monotonic() + seconds
        said = []
        while (left := end - time.monotonic()) > 0:
            said.append(self.heard(left))
        return [message for message in said if message]


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    with Supervisor(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(tmp_path / "notify"))
        yield heard


def test_supervisor_gets_ready_watchdog_and_stopping(tmp_path: Path, supervisor: Supervisor) -> None:
    env = {"NOTIFY_SOCKET": supervisor.getsockname(), "WATCHDOG_USEC": "200000"}
    with running_server_sync(tmp_path, env, TINY) as server:
        assert [supervisor.heard() for _ in range(4)] == ["READY=1", *["WATCHDOG=1"] * 3]
        server.send_signal(signal.SIGSTOP)
        supervisor.heard_within(0.3)
        assert supervisor.heard_within(0.6) == []
        server.send_signal(signal.SIGCONT)
        assert supervisor.heard() == "WATCHDOG=1"
        server.send_signal(signal.SIGTERM)
        assert server.process.wait(10) == 0
    assert "STOPPING=1" in supervisor.heard_within(0.1)


def test_watchdog_of_another_process_gets_nothing(tmp_path: Path, supervisor: Supervisor) -> None:
    env = {"NOTIFY_SOCKET": supervisor.getsockname(), "WATCHDOG_USEC": "20000", "WATCHDOG_PID": "1"}
    with running_server_sync(tmp_path, env, TINY):
        assert supervisor.heard() == "READY=1"
        assert supervisor.heard_within(0.2) == []


def test_refused_start_sends_no_ready(tmp_path: Path, supervisor: Supervisor) -> None:
    env = {"NOTIFY_SOCKET": supervisor.getsockname(), "TINY_START": "refuse"}
    assert start_fails(tmp_path, env, TINY)[0] == 1
    assert supervisor.heard_within(0.05) == []


def test_notify_socket_may_be_abstract(tmp_path: Path) -> None:
    name = f"svc-test-{os.getpid()}"
    with Supervisor(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(f"\0{name}")
        notify({"NOTIFY_SOCKET": f"@{name}"}, "READY=1")
        assert supervisor.heard() == "READY=1"


@pytest.mark.parametrize("address", ["", "/nowhere", "@nobody", "x" * 200])
def test_missing_notify_socket_is_ignored(address: str) -> None:
    notify({"NOTIFY_SOCKET": address}, "READY=1")
    notify({}, "READY=1")


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({"WATCHDOG_USEC": "9" * 400}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_watchdog_interval_comes_from_the_supervisor(environ: dict[str, str], seconds: float | None) -> None:
    assert watchdog_seconds(environ) == seconds
