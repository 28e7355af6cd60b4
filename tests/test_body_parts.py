"""The parts of a body that arrive in tiny pieces."""

from svc.body_parts import add_part
from tests.support.cases import each


@each("size", [1, 2, 1000, 5000])
def test_tiny_parts_take_little_more_memory_than_their_bytes(size: int) -> None:
    gathered: list[bytes] = []
    for _ in range(1_000_000 // size):
        add_part(gathered, b"x" * size)
    assert len(gathered) < 250 and b"".join(gathered) == b"x" * (1_000_000 // size * size)
