"""The log: JSON lines on stderr. A thread writes them, so that a blocked stderr does not block the service."""

import contextlib
import logging
import os
import re
import threading
import time
from collections import deque
from typing import Any

import orjson

from svc.errors import describe
from svc.ids import timestamp

# Secrets and email addresses, which no log line may contain. Each alternative must take linear time: a slow search
# blocks the event loop from any thread.
_SECRET = re.compile(
    r"""
    svc-v1-[0-9A-Za-z]+                         # our keys
    | eyJ[\w.-]+                                # JWTs
    | (?i:bearer)\s+\S+
    | \b(?:sk|rk|whsec)[-_][\w-]{8,}            # common vendors' keys
    | (?<=://)[^/\s@]*@                         # credentials in a URL
    | (?<![^\s@"'<>])[^\s@"'<>]+@[^\s"'<>]*     # email addresses
    """,
    re.VERBOSE,
)
# Every secret contains one of these marks, in lower case with `-` for `_` and `k` for `c`. A line without them needs no
# search by _SECRET: that saves 15 of the 300 microseconds of CPU of a free chat (165,000 instructions).
_MARKS = (b"k-", b"@", b"eyj", b"bearer")
_AS_MARKS = bytes(range(256)).lower().translate(bytes.maketrans(b"_c", b"-k"))
_QUEUE_LINES = 10_000
_PAUSE_SECONDS = 0.05
_TEXT_CHARACTERS = 2_000
_KEPT_BYTES = 2 * 1024 * 1024  # of the newest lines, for `svc request`


def redact(text: str) -> str:
    """Replace what looks like a secret or an email address by `[redacted]`."""
    return _SECRET.sub("[redacted]", text)


class Log(logging.Handler):
    """Writes events to descriptor `fd` in a `with` block, whose end waits up to a second for them."""

    def __init__(self, fd: int = 2) -> None:
        super().__init__(logging.WARNING)
        self._fd = fd
        self._waiting: deque[dict[str, Any]] = deque()
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._write_lines, name="log", daemon=True)

    def __enter__(self) -> "Log":
        self._thread.start()
        return self

    def __call__(self, event: str, *, level: str = "info", **fields: Any) -> None:
        """Log `event` with `fields`: texts (redacted, up to 2,000 characters), numbers and bools. None is left out.

        It never waits: lines are dropped while 10,000 are queued.
        """
        self.add({"time": time.time(), "level": level, "event": event, **fields})

    def add(self, record: dict[str, Any]) -> None:
        """Log a line with `time` (Unix seconds), `level`, `event` and fields. It takes over `record`."""
        if len(self._waiting) < _QUEUE_LINES:
            self._waiting.append(record)

    def emit(self, record: logging.LogRecord) -> None:
        """Log the record of a library, with the place of an exception and without its text."""
        error = record.exc_info[1] if record.exc_info else None
        try:
            message = record.getMessage()
        except Exception:  # arguments that do not fit the message; logging would write a traceback to stderr
            message = str(record.msg)
        self(
            "library",
            level=record.levelname.lower(),
            logger=record.name,
            message=message.partition("\n")[0],  # asyncio appends the text of the exception
            error=describe(error) if error else None,
        )

    def lines_of(self, request_id: str) -> list[str]:
        """Return the lines about a request, the oldest first, as far as they are among the newest 2 MiB of the log."""
        mark = b'"request_id":%b,' % orjson.dumps(request_id)
        return [line.decode().rstrip() for line in self._kept.copy() if mark in line.replace(b"}\n", b",")]

    def __exit__(self, *error: object) -> None:
        self._ending.set()
        self._thread.join(1)

    def _write_lines(self) -> None:
        # It polls: waking it for each line would cost every request a switch of threads.
        while not self._ending.wait(_PAUSE_SECONDS):
            self._write_waiting()
        self._write_waiting()

    def _write_waiting(self) -> None:
        lines: list[bytes] = []
        while self._waiting:
            with contextlib.suppress(Exception):  # a value that cannot be converted to text
                while self._waiting:
                    lines.append(_line(self._waiting.popleft()))
        self._keep(lines)
        data = b"".join(lines)
        with contextlib.suppress(OSError):  # stderr is closed
            while data:
                data = data[os.write(self._fd, data) :]

    def _keep(self, lines: list[bytes]) -> None:
        self._kept.extend(lines)
        self._kept_bytes += sum(map(len, lines))
        while self._kept_bytes > _KEPT_BYTES:
            self._kept_bytes -= len(self._kept.popleft())


def _line(record: dict[str, Any]) -> bytes:
    record["time"] = timestamp(record["time"])
    try:
        line = orjson.dumps(record, None, orjson.OPT_APPEND_NEWLINE)
        if line.find(b":null") >= 0:  # `in` is slower: it raises and discards a TypeError first
            record = {name: value for name, value in record.items() if value is not None}
            line = orjson.dumps(record, None, orjson.OPT_APPEND_NEWLINE)
        if len(line) <= _TEXT_CHARACTERS and max(map(line.translate(_AS_MARKS).find, _MARKS)) < 0:
            return line
    except TypeError:  # a number or a text that JSON does not accept
        pass
    shown = {name: _loggable(value) for name, value in record.items() if value is not None}
    return orjson.dumps(shown, None, orjson.OPT_APPEND_NEWLINE)


def _loggable(value: Any) -> bool | int | float | str:
    if isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 2**63):
        return value
    return redact(str(value)[:_TEXT_CHARACTERS].encode("utf-8", "backslashreplace").decode())


def capture_library_logs(log: Log) -> None:
    """Send every library's warnings to `log`. Below WARNING aiosqlite and httpx log SQL parameters and URLs."""
    logging.basicConfig(handlers=[log], level=logging.WARNING, force=True)
