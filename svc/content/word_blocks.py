"""Pack the sorted lines of a block of the word index (word_runs.py)."""

import zlib
from functools import lru_cache
from itertools import islice

_SAMPLE = 1_000
DIGITS = 10  # hexadecimal digits of a place


def packed(lines: list[str]) -> bytes:
    text = "\n".join(lines) + "\n"
    width, data = 2 * (len(lines[0]) + 1), text.encode("utf-16-le")
    if width < 256 and len(data) == 2 * len(text) and text[width // 2 - 1 :: width // 2] == "\n" * len(lines):
        # All lines have one length, as in Chinese: columns compress better.
        return zlib.compress(bytes([width]) + b"".join([data[column::width] for column in range(width)]), 4)
    return zlib.compress(b"\0" + text.encode(), 1)


def lines_of(packed: bytes) -> list[str]:
    return decompressed(packed)[1:-1].split("\n")


def decompressed(packed: bytes) -> str:
    """Return the lines of a block, with a line end before and after each."""
    data = zlib.decompress(packed)
    width = data[0]
    if width == 0:
        return "\n" + data[1:].decode()
    count = len(data) // width
    rows = bytearray(count * width)
    for column in range(width):
        rows[column::width] = data[1 + column * count : 1 + (column + 1) * count]
    return "\n" + rows.decode("utf-16-le")


unpacked = lru_cache(maxsize=256)(decompressed)  # 15 MB at most; a question reads the same blocks repeatedly


def places_in(text: str, beginning: str) -> list[str]:
    return [line[-DIGITS:] for line in lines_beginning(text, beginning)]


def largest(found: set[str], most: int) -> list[str]:
    """Return the `most` largest of `found` in order, without sorting the others. The order of a set is random."""
    if len(found) > 4 * most:
        sample = sorted(islice(found, _SAMPLE), reverse=True)
        likely = [place for place in found if place >= sample[2 * most * _SAMPLE // len(found)]]
        if len(likely) >= most:
            return sorted(likely, reverse=True)[:most]
    return sorted(found, reverse=True)[:most]


def word_of(line: str) -> str:
    return line[: -DIGITS - 1]


def lines_beginning(text: str, beginning: str) -> list[str]:
    """Return the lines of a text that begin so. All lines are sorted, and each is between two line ends."""
    start = text.find("\n" + beginning)
    if start < 0:
        return []
    end = text.index("\n", text.rfind("\n" + beginning) + 1)
    return text[start + 1 : end].split("\n")
