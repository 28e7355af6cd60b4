"""One JSON object a line on stderr, written by a thread of its own so that a reader who stops reading never stops the service."""

import logging
import os
import queue
import re
import threading
import time
from typing import Any

import orjson

from svc.errors import describe
from svc.ids import timestamp

# What must never stand in a log, whoever wrote the message: tokens, keys, credentials in URLs, e-mails (contract 10).
_SECRET = re.compile(
    r"svc-v1-[0-9A-Za-z]+|eyJ[\w-]+\.[\w-]*\.?[\w-]*|(?i:bearer)\s+\S+|\bsk-[\w-]{8,}|(?<=://)[^/\s@]+@|[^\s@\"'<>]+@[^\s@\"'<>]+"
)
_QUEUE_LINES = 10_000


def redact(text: str) -> str:
    """`text` with everything that looks like a token, a key, credentials in a URL or an e-mail replaced by `[redacted]`."""
    return _SECRET.sub("[redacted]", text)


class Log:
    """Writes events as JSON lines to descriptor `fd` while it is entered; leaving waits up to a second for what is queued."""

    def __init__(self, fd: int = 2) -> None:
        self._fd = fd
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue(_QUEUE_LINES)
        self._thread = threading.Thread(target=self._write_lines, name="log", daemon=True)

    def __enter__(self) -> "Log":
        self._thread.start()
        return self

    def __call__(self, event: str, *, level: str = "info", **fields: Any) -> None:
        """Logs `event` with `fields`: str (redacted), numbers, bools; None is left out. Lines are dropped while 10,000 wait."""
        record = {"time": time.time(), "level": level, "event": event, **fields}
        try:
            self._queue.put_nowait(record)
        except queue.Full:
            pass

    def __exit__(self, *error: object) -> None:
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(1)

    def _write_lines(self) -> None:
        while (record := self._queue.get()) is not None:
            record["time"] = timestamp(record["time"])
            line = {key: redact(value) if isinstance(value, str) else value for key, value in record.items() if value is not None}
            try:
                os.write(self._fd, orjson.dumps(line, default=repr) + b"\n")
            except OSError:
                continue  # stderr is closed: there is nowhere to say so


class LogHandler(logging.Handler):
    """Passes the libraries' own log records (uvicorn, asyncio) on to `log`, with the place of an exception, not its text."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self._log(
            "library",
            level=record.levelname.lower(),
            logger=record.name,
            message=record.getMessage(),
            error=describe(error) if error else None,
        )


def capture_library_logs(log: Log) -> None:
    """Sends every library's warnings to `log`. aiosqlite and httpx stay at WARNING: below it they log SQL parameters and URLs."""
    logging.basicConfig(handlers=[LogHandler(log)], level=logging.WARNING, force=True)
    for name in ("aiosqlite", "httpx", "httpcore", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)
