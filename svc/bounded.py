"""Reading what somebody else sends, up to a limit and no further."""

from collections.abc import AsyncIterable

_SHORT_BYTES = 4096


def add_piece(pieces: list[bytes], piece: bytes) -> None:
    """Appends `piece`, or joins it to a short last one: a sender of tiny pieces must not make the list larger than its bytes."""
    if pieces and len(pieces[-1]) < _SHORT_BYTES:
        pieces[-1] += piece
    else:
        pieces.append(piece)


async def read_bounded(chunks: AsyncIterable[bytes], limit_bytes: int, too_large: Exception) -> bytes:
    """All of `chunks` as one; raises `too_large` as soon as more than `limit_bytes` have come."""
    pieces: list[bytes] = []
    size_bytes = 0
    async for chunk in chunks:
        size_bytes += len(chunk)
        if size_bytes > limit_bytes:
            raise too_large
        add_piece(pieces, chunk)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
