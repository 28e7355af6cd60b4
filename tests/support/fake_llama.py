"""A helper process that speaks as llama.cpp's server does, for tests without a real model.

    python -m tests.support.fake_llama        in place of svc.inference.local.helper

The text after the magic of the "GGUF" file says what happens while it loads:
    wait PATH            until that file exists
    refuse TEXT          it ends with that log
    crash TEXT           it dies of a signal

The words of a question are the answer, except:
    die                  kills the process after the words before it
    wait PATH            waits there until that file exists
    touch PATH           makes that file
    most                 the most calls that it had at once
    order NAME           the setting of that name, as the service gave it
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "tests.support.fake_llama")
_LOCK = threading.Lock()
_calls = _most = 0


def gguf(text: str = "") -> bytes:
    return b"GGUF" + text.encode()


def _wait_for(path: str) -> None:
    while not Path(path).exists() and os.getppid() == _order["parent"]:
        time.sleep(0.005)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: Any) -> None: ...

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] != f"Bearer {_order['key']}":
            self.send_error(401)
            return
        global _calls, _most
        with _LOCK:
            _calls += 1
            _most = max(_most, _calls)
        try:
            words = self._words(body["messages"][-1]["content"].split())
            (self._stream if body.get("stream") else self._answer)(body["model"], words)
        finally:
            with _LOCK:
                _calls -= 1

    def _words(self, words: list[str]) -> Iterator[str]:
        them = iter(words)
        for word in them:
            if word == "die":
                os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(60)
            elif word == "wait":
                _wait_for(next(them))
            elif word == "touch":
                Path(next(them)).touch()
            elif word == "order":
                yield f"{_order[next(them)]} "
            else:
                yield f"most={_most} " if word == "most" else f"{word} "

    def _answer(self, model: str, words: Iterator[str]) -> None:
        text = "".join(words)
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 3, "completion_tokens": len(text.split())}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        answer = {"id": "x", "object": "chat.completion", "created": 1, "model": model}
        self._send("application/json", json.dumps({**answer, "choices": choices, "usage": usage}).encode())

    def _send(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, model: str, words: Iterator[str]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        count = 0
        for word in words:
            count += 1
            self._event(model, {"content": word}, None)
        self._event(model, {}, "stop", usage={"prompt_tokens": 3, "completion_tokens": count})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, model: str, delta: dict[str, str], reason: str | None, **more: Any) -> None:
        chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": model, **more}
        chunk["choices"] = [{"index": 0, "delta": delta, "finish_reason": reason}]
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.flush()


def main() -> None:
    with open(_order["path"], "rb") as file:
        command, _, argument = file.read(4096)[4:].rstrip(b"\0").decode("latin-1").partition(" ")
    print("loading the model", file=sys.stderr, flush=True)
    if command == "wait":
        _wait_for(argument)
    elif command in ("refuse", "crash"):
        print(argument, file=sys.stderr, flush=True)
        if command == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        sys.exit(1)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _order = json.loads(sys.stdin.readline())
    main()
