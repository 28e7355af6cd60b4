"""The bounded read: all of it up to the limit, and not a chunk more than it takes to know better."""

from collections.abc import AsyncIterator

import pytest

from svc.bounded import add_part, read_bounded


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@pytest.mark.parametrize("chunks", [[], [b""], [b"abc"], [b"a", b"", b"bc"]])
async def test_body_within_the_limit_is_read_whole(chunks: list[bytes]) -> None:
    assert await read_bounded(pieces(*chunks), 3, ValueError()) == b"".join(chunks)


async def test_read_stops_at_the_chunk_over_the_limit() -> None:
    source = pieces(b"ab", b"cd", b"ef")
    with pytest.raises(ValueError, match="enough"):
        await read_bounded(source, 3, ValueError("enough"))
    assert [chunk async for chunk in source] == [b"ef"]


@pytest.mark.parametrize("size", [1, 2, 1000, 5000])
def test_tiny_parts_take_little_more_memory_than_their_bytes(size: int) -> None:
    gathered: list[bytes] = []
    for _ in range(1_000_000 // size):
        add_part(gathered, b"x" * size)
    assert len(gathered) < 250 and b"".join(gathered) == b"x" * (1_000_000 // size * size)
