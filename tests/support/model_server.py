"""An OpenAI-compatible model server of the tests' own on loopback, which records what it is asked and misbehaves on
command.

    async with ModelServer() as server:        # or: python tests/support/model_server.py --port 0   (prints its port)
        server.base_url                        # http://127.0.0.1:<port>/v1
        server.requests[-1].body, .headers     # what it got; `.gone` is set when the client left before the answer's
        end await server.stop(); await server.start()   # down, all connections cut; and back on the same port

The command is the model's name; several are joined with `+` (`no-usage+no-done`). Anything else, like `ok`, answers
"Hello, world!" in five chunks, with usage (7, 5, 12) on a separate chunk if `include_usage` asks for it, as OpenAI
does. What it says is made in tests/support/model_answers.py and model_media.py, how it says it here.

What it says
    echo                 the last user message's text, in one chunk a word
    unicode              text of every kind: newlines, `data:`, U+2028, NUL, emoji, CJK
    halves               an emoji as two chunks, each with one half of its UTF-16 form
    refusal              what it says as a refusal, from the first delta on
    tools                two calls of the first tool offered (or of `look_up`), arguments in pieces
    tools-bare           the same without index, id and type, whole in one chunk, finish reason `stop`, arguments as
    objects reasoning            `reasoning_content` before the text
    script               the `say TEXT` and `tool NAME JSON` lines of the last user message, up to the next `---` in
    each
                         call of a tool loop; after the last section "All done."
    bad-calls            two calls: names that no function can have, arguments that are no JSON and no object
    odd-fields           fields in the first delta and its calls that are not OpenAI's; returned: those that must come
    back echo-key             the Authorization header that it got, as text
    no-usage, odd-usage  usage never, or as nonsense; usage-always: on each chunk, asked for or not
    bills-bytes          a prompt token for each byte of the request's body; usage-<N>: so many, and no output tokens
    no-ids               chunks without id, object, created, model, index and role
    no-finish            no finish reason
    error-200            `{"error": {...}}` with status 200; error-mid-stream: after two chunks
    html-200             a page
    endless              text without end; times-<N>: each chunk has N times the text
On /audio/transcriptions (the same text)
    usage-seconds-<N>, usage-tokens-<N>    reports so many (and 5 output tokens)
On /images/generations (PNGs of one pixel) and /audio/speech (a tone, 2 seconds)
    seconds-<N>          speaks so long; wav-for-all: WAV whatever was asked for; fewer, too-many, none: not `n`
    pictures url-only, data-url   links in the place of base64; bad-picture: no base64; huge: 2 MB of it
    other-file, last-lost    base64 of another file; in the last one's place a link to nothing
    no-response-format   400 for a request that names one
    mid-line, mid-event, mid-bare    after two chunks an error as `error: {...}`, as `event: error`, as an object
    without choices
When it says it
    late-usage-<N>ms     waits before the usage, after the finish reason
    slow-<N>ms           waits before the head; drip-<N>ms: before each chunk
    silent               never answers; silent-after-<N>-chunks: stops talking in the middle
    waits                waits for `release.set()` of the test; waits-after-<N>-chunks: in the middle; waits-for-usage:
                         before the usage, after the finish reason. `waiting` counts these answers
    bytewise             each byte in a packet of its own
How it says it
    no-done, two-done    without `[DONE]`, with two
    linger               keeps the connection open and silent after `[DONE]`
    broken-json          the third event is not JSON; bad-utf8: it holds bytes that are no UTF-8
    cr-only, crlf        the line ends; comments: a comment before each event
    long-line            one line without end; huge-head: a head without end
    until-close          no Content-Length and no chunks: the end of the connection ends the body
    gzip                 compressed, though nobody asked
    json-for-stream, stream-for-json    the other form than was asked for
How it breaks
    cut-after-<N>-chunks, reset-after-<N>-chunks    closes or resets the connection after N events
    cut-at-byte-<N>      closes it after N bytes of head and body
    cut-head             closes it before the head
How it refuses
    status-<NNN>         with an error object as OpenAI's; fail-once: 503 the first time that this name is asked
    refuse-429           429 without Retry-After; retry-after-<TEXT>: with it (`date` is a date in 3 s)
    quote-key            401 that quotes the Authorization header
    error-text, error-detail, error-list, error-message, error-bare, error-html, error-huge, error-empty    400 with
    such a body error-errors, error-capital, error-nested, error-raw, error-inner    the same, as proxies and clouds say
    it refuses-<FIELD>      400 for a request, or a message in it, that has the field; small-output: for a limit over
    1024 too-large            400 that says that the output limit is too large, whatever it is
    too-long-<FORM>      the prompt is too long, in a form of `TOO_LONG`; context-<N>: if the request has over N tokens,
                         window-<N>: if they are more together with its output limit
    strict               400 for messages that are not as OpenAI's, in Groq's words: other fields, odd calls
    quotes               400, the first time that the request holds the text `SAY:MESSAGE|PARAM`, with that message and
    param then-503             503 for what nothing before has refused
    redirect             302 to another address
"""

import argparse
import asyncio
import contextlib
import gzip
import json
import socket
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

if not __package__:
    sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.support import model_media
from tests.support.model_answers import Wanted
from tests.support.too_long_errors import TOO_LONG

MID_ERRORS = {
    "mid-line": b'error: {"code": 500, "message": "the request exceeds the context size"}',
    "mid-event": b'event: error\ndata: {"message": "the request exceeds the context size"}',
    "mid-bare": b'data: {"detail": "the request exceeds the context size"}',
}


@dataclass
class Seen:
    """A request as it arrived, and when (monotonic seconds)."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    came_at: float
    raw: bytes = b""
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def model(self) -> str:
        return str(self.body.get("model", "")) if isinstance(self.body, dict) else ""


class Hangup(Exception):
    """Ends the connection at this point."""


class ModelServer:
    """The server; `models` is what GET /v1/models lists, and `answers` makes what it says."""

    def __init__(
        self,
        port: int = 0,
        models: tuple[str | dict[str, object], ...] = ("ok", "tools"),
        answers: type[Wanted] = Wanted,
    ) -> None:
        self.port = port
        self.answers = answers
        self.models = models
        self.always: frozenset[str] = frozenset()  # commands for every request, whatever its model
        self.requests: list[Seen] = []
        self.connections_made = 0
        self.release = asyncio.Event()
        self.waiting = 0
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, limit=1024 * 1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def wait(self) -> None:
        self.waiting += 1
        await self.release.wait()

    async def stop(self) -> None:
        """Stops listening and cuts every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def answer(self, connection: "Connection", seen: Seen) -> "Answer":
        return Answer(connection, seen)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self.connections_made += 1
        connection = Connection(self, reader, writer)
        try:
            await connection.serve()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, Hangup):
            pass
        finally:
            self._connections.discard(task)
            connection.abandon()
            writer.close()


class Connection:
    def __init__(self, server: ModelServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server = server
        self.reader = reader
        self.writer = writer
        self._buffer = bytearray()  # bytes would be copied at each read
        self._reading: asyncio.Task[bytes] | None = None

    async def serve(self) -> None:
        while True:
            seen = await self._request()
            self.server.requests.append(seen)
            answering = asyncio.ensure_future(self.server.answer(self, seen).send())
            self._reading = self._reading or asyncio.ensure_future(self.reader.read(65536))
            try:
                # A handler that reads while it answers notices when the client disconnects.
                await asyncio.wait({answering, self._reading}, return_when=asyncio.FIRST_COMPLETED)
                # Mid-write the leaving shows as a failed write first.
                cut_off = answering.done() and isinstance(answering.exception(), ConnectionError)
                if cut_off or (not answering.done() and self._left()):
                    seen.gone.set()
                    return
                await answering
            finally:
                answering.cancel()
                await asyncio.gather(answering, return_exceptions=True)

    def _left(self) -> bool:
        assert self._reading is not None
        return self._reading.exception() is not None or not self._reading.result()

    def abandon(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            if self._reading.done() and not self._reading.cancelled():
                self._reading.exception()

    async def _more(self) -> None:
        reading, self._reading = self._reading or asyncio.ensure_future(self.reader.read(65536)), None
        data = await reading
        if not data:
            raise Hangup
        self._buffer += data

    async def _request(self) -> Seen:
        while b"\r\n\r\n" not in self._buffer:
            await self._more()
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        start, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))
        while len(self._buffer) < length:
            await self._more()
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        method, path, _ = start.split(" ", 2)
        if headers.get("content-type", "").startswith("multipart/form-data"):
            return Seen(method, path, headers, model_media.form(headers["content-type"], body), time.monotonic(), body)
        with contextlib.suppress(ValueError):
            # A large body is parsed in a thread: tests measure the event loop that this server shares with the service.
            document = json.loads(body) if len(body) < 65536 else await asyncio.to_thread(json.loads, body)
            return Seen(method, path, headers, document, time.monotonic(), body)
        return Seen(method, path, headers, body, time.monotonic(), body)


class Answer:
    """One answer, as the commands in the model's name want it."""

    paths: tuple[str, ...] = ("/chat/completions", "/images/generations", "/audio/speech", "/audio/transcriptions")

    def __init__(self, connection: Connection, seen: Seen) -> None:
        self.server = connection.server
        self.writer = connection.writer
        self.seen = seen
        self.wanted = self.server.answers(seen.body if isinstance(seen.body, dict) else {}, seen.headers)
        self.commands = self.wanted.commands = self.wanted.commands | self.server.always
        self._sent_bytes = 0

    async def send(self) -> None:
        if self.seen.path.partition("?")[0].endswith("/models") and self.seen.method == "GET":
            names = [name if isinstance(name, dict) else {"id": name} for name in self.server.models]
            listed = [{"object": "model", "created": 1, "owned_by": "tests", **entry} for entry in names]
            await self._reply(200, json.dumps({"object": "list", "data": listed}).encode())
        elif self.seen.path.endswith("/generated/picture.png"):
            await self._reply(200, model_media.PNG, content_type="image/png")
        elif self.seen.path.endswith(self.paths) and self.seen.body == {}:
            missing = {"message": "Missing required parameter: 'model'.", "type": "invalid_request_error"}
            await self._reply(400, json.dumps({"error": missing}).encode())
        elif self.seen.path.endswith(self.paths):
            if not await self._refused():
                await self._answer()
        else:
            await self._reply(404, b'{"detail": "Not Found"}')

    async def _refused(self) -> bool:
        """What all routes have in common: delays, broken connections and refusals."""
        if "silent" in self.commands:
            await asyncio.sleep(3600)
        if "waits" in self.commands:
            await self.server.wait()
        if wait_ms := self.wanted.given(r"slow-(\d+)ms"):
            await asyncio.sleep(int(wait_ms) / 1000)
        if "cut-head" in self.commands:
            raise Hangup
        if "huge-head" in self.commands:
            await self._write(b"HTTP/1.1 200 OK\r\n")
            while True:
                await self._write(b"x-filler: " + b"x" * 8000 + b"\r\n")
        told = [seen for seen in self.server.requests if seen.model == self.seen.model]
        if "quotes" in self.commands:
            told = [seen for seen in told if Wanted(seen.body, {}).said() == self.wanted.said()]
        asked_before = len(told) > 1
        if refusal := self._refusal(asked_before):
            await self._reply(*refusal)
        return refusal is not None

    def _refusal(self, asked_before: bool) -> tuple[int, bytes, bytes] | None:
        return self.wanted.refusal(asked_before)

    async def _answer(self) -> None:
        if self.seen.path.endswith("/images/generations"):
            await self._images()
        elif self.seen.path.endswith("/audio/speech"):
            await self._speech()
        elif self.seen.path.endswith("/audio/transcriptions"):
            await self._transcription()
        elif "html-200" in self.commands:
            await self._reply(200, b"<!doctype html><title>Welcome</title>", content_type="text/html")
        elif (form := self.wanted.given(r"too-long-([\w-]+)")) in TOO_LONG:
            # a stream that was accepted
            error = json.dumps(TOO_LONG[form][1]).encode()
            await self._reply(200, b"data: %b\n\n" % error, content_type="text/event-stream")
        elif "error-200" in self.commands:
            await self._reply(200, b'{"error": {"message": "the model is out of memory", "code": 500}}')
        elif bool(self.seen.body.get("stream")) ^ bool({"json-for-stream", "stream-for-json"} & self.commands):
            await self._stream()
        else:
            await self._reply(200, json.dumps(self.wanted.completion()).encode())

    async def _images(self) -> None:
        if refusal := model_media.refuses_response_format(self.seen.body, self.commands):
            await self._reply(400, refusal)
            return
        body = json.dumps(model_media.images(self.seen.body, self.commands, self.server.base_url)).encode()
        await self._reply(200, body.ljust(49 << 20) if "over-48-mib" in self.commands else body)

    async def _speech(self) -> None:
        seconds = float(self.wanted.given(r"seconds-(\d+)") or 2)
        content_type, pieces = model_media.speech(self.seen.body, self.commands, seconds)
        await self._write(
            f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
        )
        for number, piece in enumerate(pieces):
            await self._pause(number)
            await self._body(piece, framed=True)
        await self._write(b"0\r\n\r\n")

    async def _transcription(self) -> None:
        content_type, pieces = model_media.transcription(self.seen.body, self.commands, self.wanted.given)
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
        await self._write(head.encode())
        for number, piece in enumerate(pieces):
            await self._pause(number)
            await self._body(piece, framed=True)
        await self._write(b"0\r\n\r\n")

    # How it says it.

    async def _stream(self) -> None:
        framed = "until-close" not in self.commands
        framing = b"transfer-encoding: chunked\r\n" if framed else b"connection: close\r\n"
        await self._write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n" + framing + b"\r\n")
        if "long-line" in self.commands:
            await self._body(b"data: ", framed)
            while True:
                await self._body(b"x" * 65536, framed)
        end = b"\r" if "cr-only" in self.commands else b"\r\n" if "crlf" in self.commands else b"\n"
        for number, event in enumerate(self._events(end)):
            await self._pause(number)
            if number == 2 and (told := next((MID_ERRORS[name] for name in MID_ERRORS.keys() & self.commands), b"")):
                await self._body(told + end * 2, framed)
                break
            if "waits-for-usage" in self.commands and b'"choices": []' in event:
                await self.server.wait()
            if (wait_ms := self.wanted.given(r"late-usage-(\d+)ms")) and b'"choices": []' in event:
                await asyncio.sleep(int(wait_ms) / 1000)
            comment = b": still here" + end * 2 if "comments" in self.commands else b""
            await self._body(comment + event + end * 2, framed)
        if "linger" in self.commands:
            await asyncio.sleep(3600)
        if not framed:
            raise Hangup
        await self._write(b"0\r\n\r\n")

    def _events(self, end: bytes) -> Iterator[bytes]:
        """Return the events without their blank lines; `end` ends a line."""
        return (b"data: " + data for data in self.wanted.events())

    async def _pause(self, number: int) -> None:
        if self.wanted.given(r"cut-after-(\d+)-chunks") == str(number):
            raise Hangup
        if self.wanted.given(r"reset-after-(\d+)-chunks") == str(number):
            linger = struct.pack("ii", 1, 0)
            self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.writer.transport.abort()
            raise Hangup
        if self.wanted.given(r"silent-after-(\d+)-chunks") == str(number):
            await asyncio.sleep(3600)
        if self.wanted.given(r"waits-after-(\d+)-chunks") == str(number):
            await self.server.wait()
        if wait_ms := self.wanted.given(r"drip-(\d+)ms"):
            await asyncio.sleep(int(wait_ms) / 1000)

    async def _body(self, data: bytes, framed: bool) -> None:
        await self._write(b"%x\r\n%b\r\n" % (len(data), data) if framed else data)

    async def _reply(
        self, status: int, body: bytes, extra: bytes = b"", content_type: str = "application/json"
    ) -> None:
        if "gzip" in self.commands:
            body, extra = gzip.compress(body), b"content-encoding: gzip\r\n"
        framed = "until-close" not in self.commands
        extra += b"content-length: %d\r\n" % len(body) if framed else b"connection: close\r\n"
        await self._write(
            f"HTTP/1.1 {status} Status\r\ncontent-type: {content_type}\r\n".encode() + extra + b"\r\n" + body
        )
        if not framed:
            raise Hangup

    async def _write(self, data: bytes) -> None:
        if limit := self.wanted.given(r"cut-at-byte-(\d+)"):
            data, cut = data[: int(limit) - self._sent_bytes], len(data) > int(limit) - self._sent_bytes
            self._sent_bytes += len(data)
            if cut:
                self.writer.write(data)
                raise Hangup
        pieces = [data[i : i + 1] for i in range(len(data))] if "bytewise" in self.commands else [data]
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)  # drain() alone does not yield while there is room


async def _main() -> None:
    parser = argparse.ArgumentParser(description="An OpenAI-compatible model server for tests.")
    parser.add_argument("--port", type=int, default=0)
    server = ModelServer(parser.parse_args().port)
    await server.start()
    print(server.port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main())
