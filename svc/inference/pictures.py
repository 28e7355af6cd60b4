"""Pictures in a file, and a provider's answer to an image request: parsed, decoded and checked.

JSON of any depth -> base64 in any usual form, a data URL, or a URL to fetch -> bytes, with the details beside them
"""

import base64
import os
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from svc.errors import UpstreamFault
from svc.inference.catalog import Provider
from svc.inference.raw_answer import parsed

_TEXTS = ("size", "quality", "background", "output_format")
_COUNTS = ("input_tokens", "output_tokens", "total_tokens")
_DETAILS = ("input_tokens_details", "output_tokens_details")
_TEXT_LENGTH = 100
_PROMPT_LENGTH = 32_000
_URL_LENGTH = 8_000
_MOST_COUNT = 2**53
_MOST_DETAILS = 20
_STARTS = {
    "image/png": rb"\x89PNG\r\n\x1a\n",
    "image/jpeg": rb"\xff\xd8\xff",
    "image/webp": rb"RIFF....WEBP",
    "image/avif": rb"....ftypavi[fs]",
    "image/gif": rb"GIF8[79]a",
}
_TYPE_BYTES = 12  # of the longest start
_HALF_CHARACTERS = re.compile("[\ud800-\udfff]")
# Decoded at a time: the decoder lets no other thread run, and a picture may have 36 MiB.
_SLICE_CHARACTERS = 256 * 1024
_DATA_URL = re.compile(r"data:[^,]{0,100};base64,", re.I)


class Picture(NamedTuple):
    """A picture in a file, or the `url` at which the provider stores it, and the prompt as the provider revised it."""

    start: int = 0
    size: int = 0
    revised_prompt: str | None = None
    url: str | None = None

    def content(self, file: BinaryIO) -> bytes:
        return os.pread(file.fileno(), self.size, self.start)


def add_picture(file: BinaryIO, content: bytes, revised_prompt: str | None) -> Picture:
    """Write a picture to the end of a file of pictures."""
    return Picture(file.tell(), file.write(content), revised_prompt)


def picture_type(content: bytes) -> str | None:
    """Return the media type of a picture by its first bytes, or None if browsers do not show it."""
    return next((name for name, start in _STARTS.items() if re.match(start, content, re.DOTALL)), None)


def pictures_in(
    answer: BinaryIO, provider: Provider, most: int, file: BinaryIO
) -> tuple[list[Picture], dict[str, Any]]:
    """Write at most `most` pictures of a provider's answer to `file`. Return them and OpenAI's details beside them.

    Raises UpstreamFault.
    """
    answer.seek(0)
    try:
        document = parsed(answer.read(), provider, apart=True)
    except RecursionError:
        raise UpstreamFault("invalid", "The answer is nested too deep.") from None
    entries = document.get("data") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries:
        raise UpstreamFault("invalid", "The answer holds no pictures.")
    details: dict[str, Any] = {name: _text(document.get(name), _TEXT_LENGTH) for name in _TEXTS}
    details["usage"] = _usage(document.get("usage"))
    told = {name: value for name, value in details.items() if value}
    return [_picture(entry, file) for entry in entries[:most]], told


def _picture(entry: Any, file: BinaryIO) -> Picture:
    entry = entry if isinstance(entry, dict) else {}
    encoded, url = entry.get("b64_json"), entry.get("url")
    revised_prompt = _text(entry.get("revised_prompt"), _PROMPT_LENGTH)
    for data in (encoded, url if isinstance(url, str) and _DATA_URL.match(url) else None):
        if isinstance(data, str) and data:
            return _add_decoded(file, data, revised_prompt)
    if isinstance(url, str) and url.startswith(("http://", "https://")) and len(url) <= _URL_LENGTH:
        return Picture(revised_prompt=revised_prompt, url=url)
    raise UpstreamFault("invalid", "The answer holds no picture.")


def _add_decoded(file: BinaryIO, encoded: str, revised_prompt: str | None) -> Picture:
    """Write a picture to the end of a file in parts: to join 36 MiB would block other threads for 40 ms."""
    start, size, first = file.tell(), 0, b""
    try:
        for part in _decoded(encoded):
            size += file.write(part)
            first += part[: _TYPE_BYTES - len(first)]
    except ValueError:
        size = 0
    if not size:
        raise UpstreamFault("invalid", "The answer holds a picture that is no base64.")
    if picture_type(first) is None:
        raise UpstreamFault("invalid", "The answer holds a file other than PNG, JPEG, WebP, GIF or AVIF.")
    return Picture(start, size, revised_prompt)


def _decoded(encoded: str) -> Iterator[bytes]:
    """Yield the bytes of base64 of either alphabet, with or without line breaks, padding and the head of a data URL.

    Raises ValueError.
    """
    head = _DATA_URL.match(encoded)
    rest, padded = "", False
    for start in range(head.end() if head else 0, len(encoded), _SLICE_CHARACTERS):
        plain = "".join(encoded[start : start + _SLICE_CHARACTERS].split()).replace("-", "+").replace("_", "/")
        bare = plain.rstrip("=")
        if "=" in bare or (bare and padded):
            raise ValueError("there is padding before the end")
        padded = padded or bare != plain
        rest += bare
        whole = len(rest) // 4 * 4
        yield base64.b64decode(rest[:whole], validate=True)
        rest = rest[whole:]
    yield base64.b64decode(rest + "=" * (-len(rest) % 4), validate=True)


def _text(value: Any, most: int) -> str | None:
    return _HALF_CHARACTERS.sub("\ufffd", value[:most]) if isinstance(value, str) else None


def _usage(value: Any) -> dict[str, Any] | None:
    """Return the usage in OpenAI's form, or None if `value` has no count."""
    given = _numbers(value, _COUNTS)
    if not given:
        return None
    usage: dict[str, Any] = {name: given.get(name, 0) for name in _COUNTS}
    usage["total_tokens"] = given.get("total_tokens", usage["input_tokens"] + usage["output_tokens"])
    details = {name: _numbers(value.get(name), None) for name in _DETAILS}
    return {**usage, "input_tokens_details": {}, **{name: numbers for name, numbers in details.items() if numbers}}


def _numbers(value: Any, names: tuple[str, ...] | None) -> dict[str, int]:
    if not isinstance(value, dict):
        return {}
    numbers = {_text(name, _TEXT_LENGTH) or "": value.get(name) for name in names or list(value)[:_MOST_DETAILS]}
    return {name: number for name, number in numbers.items() if type(number) is int and 0 <= number <= _MOST_COUNT}
