"""Read a body up to a limit."""

from collections.abc import AsyncIterable

_SHORT_BYTES = 4096


def add_part(parts: list[bytes], part: bytes) -> None:
    """Append `part`, or join it to a short last one, so that many tiny parts do not make the list larger than its bytes."""
    if parts and len(parts[-1]) < _SHORT_BYTES:
        parts[-1] += part
    else:
        parts.append(part)


async def read_bounded(chunks: AsyncIterable[bytes], limit_bytes: int, too_large: Exception) -> bytes:
    """Return all of `chunks` joined. Raises `too_large` once they exceed `limit_bytes`."""
    parts: list[bytes] = []
    size_bytes = 0
    async for chunk in chunks:
        size_bytes += len(chunk)
        if size_bytes > limit_bytes:
            raise too_large
        add_part(parts, chunk)
    return b"".join(parts)
