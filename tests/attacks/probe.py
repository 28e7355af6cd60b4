"""What others notice of an attack: a process of its own that asks a server again and again until its stdin ends.

python -m tests.attacks.probe HOST PORT CA TOKEN PID
-> one line of JSON: the longest waits in milliseconds, the CPU time that the server used during the longest, and failures
"""

import json
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

OWN_ADDRESS = "127.0.0.2"
PAUSE_SECONDS = 0.01
PATIENCE_SECONDS = 30.0


class Probe:
    """Two threads: `/healthz` over one connection, and a small write over a new connection each time."""

    def __init__(self, host: str, port: int, ca: str, token: str, pid: int) -> None:
        self._address = (host, port)
        self._tls = ssl.create_default_context(cafile=ca)
        body = b'{"name": "somebody else"}'
        auth = f"host: {host}\r\nauthorization: Bearer {token}\r\n".encode()
        self._health = b"GET /healthz HTTP/1.1\r\n" + auth + b"\r\n"
        self._write = b"PATCH /user/me HTTP/1.1\r\n" + auth
        self._write += b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
        self._tasks = Path(f"/proc/{pid}/task")
        self._over = threading.Event()
        self._connection: ssl.SSLSocket | None = None
        self.found = {"asked": 0, "wait_ms": 0.0, "stall_ms": 0.0, "writes": 0, "write_ms": 0.0, "failures": 0}

    def run(self) -> None:
        threads = [threading.Thread(target=self._repeat, args=(each,), daemon=True) for each in (self._ask, self._change)]
        for thread in threads:
            thread.start()
        sys.stdin.read()
        self._over.set()
        for thread in threads:
            thread.join(PATIENCE_SECONDS + 5)
        print(json.dumps(self.found), flush=True)

    def _repeat(self, exchange: Callable[[], None]) -> None:
        while not self._over.is_set():
            try:
                exchange()
            except (OSError, AssertionError):
                self.found["failures"] += 1
                self._connection = None
                time.sleep(0.1)
            time.sleep(PAUSE_SECONDS)

    def _ask(self) -> None:
        self._connection = self._connection or self._connect()
        busy, began = self._busy_ms(), time.monotonic()
        try:
            self._exchange(self._connection, self._health)
        finally:
            wait_ms = (time.monotonic() - began) * 1000
            self.found["asked"] += 1
            self.found["wait_ms"] = max(self.found["wait_ms"], wait_ms)
            # A machine that others use makes everything wait: only what the server itself computed meanwhile held up its loop.
            self.found["stall_ms"] = max(self.found["stall_ms"], min(wait_ms, self._busy_ms() - busy))

    def _change(self) -> None:
        began = time.monotonic()
        try:
            with self._connect() as connection:
                self._exchange(connection, self._write)
        finally:
            self.found["writes"] += 1
            self.found["write_ms"] = max(self.found["write_ms"], (time.monotonic() - began) * 1000)

    def _connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(self._address, PATIENCE_SECONDS, (OWN_ADDRESS, 0))
        return self._tls.wrap_socket(plain, server_hostname=self._address[0])

    def _exchange(self, connection: ssl.SSLSocket, request: bytes) -> None:
        connection.sendall(request)
        answer = b""
        while b"}" not in answer:
            piece = connection.recv(65536)
            assert piece
            answer += piece
        assert answer.startswith(b"HTTP/1.1 200")

    def _busy_ms(self) -> float:
        """The CPU time of all threads of the server."""
        total = 0
        for task in self._tasks.iterdir():
            try:
                total += int((task / "schedstat").read_text().split()[0])
            except OSError:  # the thread has just ended
                continue
        return total / 1e6


if __name__ == "__main__":
    host, port, ca, token, pid = sys.argv[1:]
    Probe(host, int(port), ca, token, int(pid)).run()
