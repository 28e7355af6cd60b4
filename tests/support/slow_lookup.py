"""svc/outbound/resolver_process.py with test names: `slow…` is never answered, `fast…` is 127.0.0.1, other names are unknown."""

import runpy
import socket
import time
from pathlib import Path
from typing import Any


def getaddrinfo(host: bytes, *arguments: Any, **options: Any) -> list[tuple[Any, ...]]:
    if host.startswith(b"slow"):
        time.sleep(3600)
    if host.startswith(b"fast"):
        return [(None, None, None, "", ("127.0.0.1", 0))]
    raise OSError("no such name")


if __name__ == "__main__":
    socket.getaddrinfo = getaddrinfo  # type: ignore[assignment]
    runpy.run_path(str(Path(__file__).parents[2] / "svc/outbound/resolver_process.py"), run_name="__main__")
