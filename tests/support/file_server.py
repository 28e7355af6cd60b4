"""A server of one file on loopback that breaks on command, and records the ranges that it is asked for.

The path names what happens:
    /whole, /unknown-size        the file, without its size
    /cut, /always-cut            the first answer, or each, ends in the middle
    /short-parts                 cut; then 1,000 bytes of the range
    /no-ranges, /changed         cut; then the whole file, or another one
    /redirect?TO, /loop          another address, or the same for ever
    /status-NNN, /later          a refusal; 503, and then the file
    /chunks-without-end          the file again and again
    /announces-more              a size that no disk has
"""

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import AsyncIterator
from typing import Self
from urllib.parse import unquote


class FileServer:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.asked: Counter[str] = Counter()
        self.ranges: list[int] = []
        self.address = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path, _, query = head.split()[1].partition("?")
            self.asked[path] += 1
            found = re.search(r"(?i)^range: bytes=(\d+)-\r$", head, re.MULTILINE)
            start = int(found[1]) if found else 0
            self.ranges.append(start)
            async for part in self._answer(
                path.rpartition("/")[2] if "-" not in path else path[1:], unquote(query), start
            ):
                writer.write(part)
                await writer.drain()
        writer.close()

    async def _answer(self, what: str, query: str, start: int) -> AsyncIterator[bytes]:
        first = self.asked[f"/{what}"] == 1
        content, etag = self.content, '"1"'
        if what == "redirect":
            yield _head(302, location=query)
        elif what == "loop":
            yield _head(302, location="/loop")
        elif what.startswith("status-"):
            yield _head(int(what[7:]))
        elif what == "later" and first:
            yield _head(503)
        elif what in ("unknown-size", "chunks-without-end"):
            yield b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
            while True:
                yield b"%x\r\n%b\r\n" % (len(content), content)
                if what == "unknown-size":
                    break
            yield b"0\r\n\r\n"
        else:
            if what == "no-ranges":
                start = 0
            elif what == "changed" and not first:
                content, etag, start = content[:4] + b"other" + content[9:], '"2"', 0
            size = len(content) + (10**15 if what == "announces-more" else 0)
            span = {"content_range": f"bytes {start}-{size - 1}/{size}"} if start else {}
            if start and start >= size:
                yield _head(416, content_range=f"bytes */{size}")
                return
            length = min(size - start, 1000) if what == "short-parts" and start else size - start
            yield _head(206 if start else 200, content_length=str(length), etag=etag, **span)
            rest = content[start:]
            if what == "short-parts" and start:
                rest = rest[:1000]
            is_cut = what == "always-cut" or (what in ("cut", "no-ranges", "changed", "short-parts") and first)
            yield rest[: len(rest) // 2] if is_cut else rest


def _head(status: int, **headers: str) -> bytes:
    if "content_length" not in headers:
        headers["content_length"] = "0"
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"HTTP/1.1 {status} X", "connection: close", *lines, "", ""]).encode()
