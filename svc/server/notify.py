"""Notifications to a supervisor such as systemd (sd_notify(3)): the service is ready, alive, or stopping."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Mapping

_SEND_SECONDS = 1.0


def notify(environ: Mapping[str, str], state: str) -> None:
    """Send `state`, such as READY=1, to the socket that NOTIFY_SOCKET names. Errors are ignored."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # an abstract name of Linux begins with NUL, which no environment variable can contain
        address = "\0" + address[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(_SEND_SECONDS)  # a supervisor may hang
        sender.sendto(state.encode(), address)


def watchdog_seconds(environ: Mapping[str, str]) -> float | None:
    """Return how long the supervisor waits for a WATCHDOG=1 before it restarts this process; None if it does not."""
    microseconds, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", str(os.getpid()))
    if not (microseconds.isascii() and microseconds.isdigit()) or len(microseconds) > 18 or pid != str(os.getpid()):
        return None
    return int(microseconds) / 1_000_000 or None


def keep_alive(loop: asyncio.AbstractEventLoop, environ: Mapping[str, str]) -> None:
    """Send WATCHDOG=1 from the event loop, twice as often as required: a loop that hangs sends none."""
    seconds = watchdog_seconds(environ)
    if seconds:
        notify(environ, "WATCHDOG=1")
        loop.call_later(seconds / 2, keep_alive, loop, environ)
