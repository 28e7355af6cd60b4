"""What other clients notice of an attack: a separate process that sends requests again and again until its stdin
closes.

python -m tests.attacks.probe HOST PORT CA TOKEN PAUSE_SECONDS
a line on stdin -> a line of JSON: the longest waits in milliseconds since the last one, those under way included, and
failures
"""

import json
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable

OWN_ADDRESS = "127.0.0.2"
PATIENCE_SECONDS = 30.0


class Probe:
    """Two threads: `/healthz` over one connection, and a small write over a new connection each time."""

    def __init__(self, host: str, port: int, ca: str, token: str, pause_seconds: float) -> None:
        self._pause_seconds = pause_seconds
        self._address = (host, port)
        self._tls = ssl.create_default_context(cafile=ca)
        body = b'{"name": "somebody else"}'
        auth = f"host: {host}\r\nauthorization: Bearer {token}\r\n".encode()
        self._health = b"GET /healthz HTTP/1.1\r\n" + auth + b"\r\n"
        self._write = b"PATCH /user/me HTTP/1.1\r\n" + auth
        self._write += b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (
            len(body),
            body,
        )
        self._connection: ssl.SSLSocket | None = None
        self._asking, self._writing = threading.Lock(), threading.Lock()
        self._found = self._nothing()

    def _nothing(self) -> dict[str, float]:
        return {"asked": 0, "wait_ms": 0.0, "writes": 0, "write_ms": 0.0, "failures": 0}

    def run(self) -> None:
        for what in ((self._asking, self._ask), (self._writing, self._change)):
            threading.Thread(target=self._repeat, args=what, daemon=True).start()
        for _ in sys.stdin:
            with self._asking, self._writing:  # what is under way is waited for
                print(json.dumps(self._found), flush=True)
                self._found = self._nothing()

    def _repeat(self, under_way: threading.Lock, exchange: Callable[[], None]) -> None:
        while True:
            with under_way:
                try:
                    exchange()
                except (OSError, AssertionError):
                    self._found["failures"] += 1
                    self._connection = None
            time.sleep(self._pause_seconds)

    def _ask(self) -> None:
        self._connection = self._connection or self._connect()
        began = time.monotonic()
        try:
            self._exchange(self._connection, self._health)
        finally:
            self._note("asked", "wait_ms", began)

    def _change(self) -> None:
        began = time.monotonic()
        try:
            with self._connect() as connection:
                self._exchange(connection, self._write)
        finally:
            self._note("writes", "write_ms", began)

    def _note(self, count: str, longest: str, began: float) -> None:
        self._found[count] += 1
        self._found[longest] = max(self._found[longest], (time.monotonic() - began) * 1000)

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


if __name__ == "__main__":
    host, port, ca, token, pause_seconds = sys.argv[1:]
    Probe(host, int(port), ca, token, float(pause_seconds)).run()
