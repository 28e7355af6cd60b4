"""Reading what somebody else sends, up to a limit and no further."""

from collections.abc import AsyncIterable


async def read_bounded(chunks: AsyncIterable[bytes], limit_bytes: int, too_large: Exception) -> bytes:
    """All of `chunks` as one; raises `too_large` as soon as more than `limit_bytes` have come."""
    pieces, size_bytes = [], 0
    async for chunk in chunks:
        size_bytes += len(chunk)
        if size_bytes > limit_bytes:
            raise too_large
        pieces.append(chunk)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
