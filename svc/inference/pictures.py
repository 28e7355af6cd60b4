"""A provider's answer to an image request: read, decoded and checked, so that nothing of it goes on as it came.

JSON of any depth -> base64 in any usual form, a data URL, or an address to fetch -> bytes; what is told beside them, typed anew
"""

import base64
import re
from typing import Any, NamedTuple

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
_HALF_CHARACTERS = re.compile("[\ud800-\udfff]")
# How much base64 is decoded at a time: what does it lets no other thread run, and a picture may have 36 MiB.
_SLICE_CHARACTERS = 256 * 1024
_DATA_URL = re.compile(r"data:[^,]{0,100};base64,", re.I)


class Picture(NamedTuple):
    """A picture, and the prompt that its maker made of the caller's."""

    content: bytes
    revised_prompt: str | None = None


class Address(NamedTuple):
    """Where a provider has put a picture instead of sending it."""

    url: str
    revised_prompt: str | None = None


class Pictures(NamedTuple):
    """A provider's answer; `details` are what it tells about its pictures, in OpenAI's names."""

    pictures: list[Picture | Address]
    details: dict[str, Any]


def picture_type(content: bytes) -> str | None:
    """The media type of a picture by its first bytes, None for what is no picture that browsers show."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "image/webp"
    if content[4:12] in (b"ftypavif", b"ftypavis"):
        return "image/avif"
    return "image/gif" if content.startswith((b"GIF87a", b"GIF89a")) else None


def pictures_in(data: bytes, provider: Provider, most: int) -> Pictures:
    """What a provider's answer holds, at most `most` pictures. Raises UpstreamFault."""
    try:
        document = parsed(data, provider, apart=True)
    except RecursionError:
        raise UpstreamFault("invalid", "The answer is nested too deep.") from None
    entries = document.get("data") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries:
        raise UpstreamFault("invalid", "The answer holds no pictures.")
    details = {name: _text(document.get(name), _TEXT_LENGTH) for name in _TEXTS}
    usage = _usage(document.get("usage"))
    told = {name: value for name, value in details.items() if value}
    return Pictures([_picture(entry) for entry in entries[:most]], {**told, **({"usage": usage} if usage else {})})


def _picture(entry: Any) -> Picture | Address:
    entry = entry if isinstance(entry, dict) else {}
    encoded, url = entry.get("b64_json"), entry.get("url")
    revised_prompt = _text(entry.get("revised_prompt"), _PROMPT_LENGTH)
    if isinstance(encoded, str) and encoded:
        return Picture(_decoded(encoded), revised_prompt)
    if isinstance(url, str) and _DATA_URL.match(url):
        return Picture(_decoded(url), revised_prompt)
    if isinstance(url, str) and url.startswith(("http://", "https://")) and len(url) <= _URL_LENGTH:
        return Address(url, revised_prompt)
    raise UpstreamFault("invalid", "The answer holds no picture.")


def _decoded(encoded: str) -> bytes:
    """The bytes of base64 with or without line breaks, padding and the head of a data URL, in either alphabet."""
    head = _DATA_URL.match(encoded)
    pieces, rest, padded = [], "", False
    try:
        for start in range(head.end() if head else 0, len(encoded), _SLICE_CHARACTERS):
            plain = "".join(encoded[start : start + _SLICE_CHARACTERS].split()).replace("-", "+").replace("_", "/")
            bare = plain.rstrip("=")
            if "=" in bare or (bare and padded):
                raise ValueError("there is padding before the end")
            padded = padded or bare != plain
            rest += bare
            whole = len(rest) // 4 * 4
            pieces.append(base64.b64decode(rest[:whole], validate=True))
            rest = rest[whole:]
        content = b"".join([*pieces, base64.b64decode(rest + "=" * (-len(rest) % 4), validate=True)])
    except ValueError:
        content = b""
    if not content:
        raise UpstreamFault("invalid", "The answer holds a picture that is no base64.")
    if picture_type(content) is None:
        raise UpstreamFault("invalid", "The answer holds what is no PNG, JPEG, WebP, GIF or AVIF.")
    return content


def _text(value: Any, most: int) -> str | None:
    return _HALF_CHARACTERS.sub("\ufffd", value[:most]) if isinstance(value, str) else None


def _usage(value: Any) -> dict[str, Any] | None:
    """The usage in OpenAI's form out of whatever numbers there are."""
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
    named = list(value)[:_MOST_DETAILS] if names is None else [name for name in names if name in value]
    numbers = {_text(name, _TEXT_LENGTH) or "": value[name] for name in named}
    return {name: number for name, number in numbers.items() if type(number) is int and 0 <= number <= _MOST_COUNT}
