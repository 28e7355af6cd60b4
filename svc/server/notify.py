"""What a supervisor such as systemd is told, by the protocol of sd_notify(3): that the service is ready, alive, and stopping."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Mapping

_SEND_SECONDS = 1.0


def notify(environ: Mapping[str, str], state: str) -> None:
    """Sends `state`, such as READY=1, to the socket that NOTIFY_SOCKET names, if there is one and somebody listens."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # Linux's abstract names begin with a NUL, which no environment can hold
        address = "\0" + address[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(_SEND_SECONDS)  # a supervisor that hangs must not take the service along
        sender.sendto(state.encode(), address)


def watchdog_seconds(environ: Mapping[str, str]) -> float | None:
    """How long the supervisor waits for a sign of life before it restarts this process; None when it does not."""
    microseconds, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", str(os.getpid()))
    if not (microseconds.isascii() and microseconds.isdigit()) or len(microseconds) > 18 or pid != str(os.getpid()):
        return None
    return int(microseconds) / 1_000_000 or None


def keep_alive(loop: asyncio.AbstractEventLoop, environ: Mapping[str, str]) -> None:
    """Sends signs of life from the event loop itself, twice as often as they are due: a loop that hangs sends none."""
    seconds = watchdog_seconds(environ)
    if seconds:
        notify(environ, "WATCHDOG=1")
        loop.call_later(seconds / 2, keep_alive, loop, environ)
