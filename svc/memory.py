"""Memory that nobody uses goes back to the system: glibc and uvloop keep it, each for good reasons of its own."""

import asyncio
import ctypes
import mmap

_LIBC = ctypes.CDLL(None)


def trim() -> None:
    """Gives back what malloc keeps of freed memory. It takes 0.1 ms for each MB in use."""
    if malloc_trim := getattr(_LIBC, "malloc_trim", None):  # glibc has it, others need none
        malloc_trim(0)


def release_tls_buffer(transport: asyncio.BaseTransport) -> None:
    """Gives back the pages of a TLS connection's read buffer, which holds nothing between two reads.

    uvloop takes 256 KiB a connection and fills a few of them; malloc puts it where the last handshake's own buffers were, so
    that of each connection's 70 KB a third was pages that nobody reads. The system makes them anew when they are written to.
    """
    protocol = transport.get_extra_info("uvloop.sslproto")
    if protocol is None:  # another event loop's
        return
    buffer = protocol.get_buffer(0)
    start = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    first, end = -(-start // mmap.PAGESIZE), (start + len(buffer)) // mmap.PAGESIZE
    length = (end - first) * mmap.PAGESIZE
    _LIBC.madvise(ctypes.c_void_p(first * mmap.PAGESIZE), ctypes.c_size_t(length), mmap.MADV_DONTNEED)
