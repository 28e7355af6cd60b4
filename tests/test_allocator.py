"""svc/allocator.py: freed memory returns to the system, and TLS connections work without their buffers' pages."""

import asyncio
import ctypes
import mmap
import ssl
import time
from pathlib import Path

import uvloop

from svc.allocator import release_tls_buffer, trim
from svc.certificates import tls_files

STRAY = b"x" * 200_000


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def test_freed_memory_returns_to_the_system() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    # Of a size that malloc takes from its heap; the last one keeps the heap from ending with what was freed.
    blocks = [libc.malloc(ctypes.c_size_t(100_000)) for _ in range(400)]
    for block in blocks:
        ctypes.memset(block, 1, 100_000)
    for block in blocks[:-1]:
        libc.free(ctypes.c_void_p(block))
    before = resident_bytes()
    trim()
    assert resident_bytes() < before - 20_000_000
    libc.free(ctypes.c_void_p(blocks[-1]))


def test_tls_connection_works_after_its_buffer_is_released(tmp_path: Path) -> None:
    files = tls_files(tmp_path, ["localhost"], time.time())
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files.cert, files.key)
    kept = []

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        view = writer.transport.get_extra_info("uvloop.sslproto").get_buffer(0)
        view[: len(STRAY)] = STRAY  # as if others had used the memory
        before = resident_bytes()
        release_tls_buffer(writer.transport)
        kept.append((before - resident_bytes(), bytes(view[2 * mmap.PAGESIZE : len(STRAY)]).count(b"x")))
        writer.write(await reader.readexactly(len(STRAY)))
        writer.close()

    async def play() -> None:
        listening = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=server)
        port = listening.sockets[0].getsockname()[1]
        client = ssl.create_default_context(cafile=files.ca)
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname="localhost")
        writer.write(STRAY)
        assert await reader.read(-1) == STRAY
        writer.close()
        listening.close()

    uvloop.run(play())
    assert kept[0][1] == 0
    assert kept[0][0] > 100_000


def test_plain_connection_has_no_buffer_to_release() -> None:
    release_tls_buffer(asyncio.BaseTransport())
