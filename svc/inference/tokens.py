"""The tokens of a chat request: the worst case for the hold, and an estimate if the model server does
not count them.
"""

import re
from typing import Any

import orjson

from svc import json_text
from svc.inference.normalize import text_size_bytes

_FRAME_TOKENS = 16  # of a message, a part of one, a tool or a tool call, beside its text
_MEDIA_TOKENS = 8192  # of an image, sound, video or file of any size
_MEDIA = re.compile(r"image|audio|sound|voice|video|file|document|pdf|media", re.IGNORECASE)
_DATA_FIELDS = frozenset({"data", "file_data", "b64_json", "base64"})
# The other fields that become part of the prompt.
_PROMPT_FIELDS = frozenset({"tools", "functions", "response_format", "guided_json", "structured_outputs"}) | frozenset(
    {"prediction", "documents", "chat_template", "chat_template_kwargs"}
)
_NO_TEXT = frozenset({"role", "type", "id", "tool_call_id", "index"})


def worst_input_tokens(request: dict[str, Any]) -> int:
    """Return the most tokens that a model can count for a checked `request`.

    A UTF-8 byte of a string value is 1 token, except in the data of media. A message, part, tool or tool call is 16.
    A part that is or refers to media is 8,192.
    """
    messages = request["messages"]
    total = _FRAME_TOKENS * (len(messages) + len(request.get("tools") or ()) + len(request.get("functions") or ()))
    for name, value in request.items():
        if name != "messages":
            total += len(value) if type(value) is str and value.isascii() else _string_bytes(value)
    for message in messages:
        try:
            total += text_size_bytes("".join(message.values()))
        except TypeError:  # not all are texts
            total += _message_tokens(message)
    return total


def _message_tokens(message: dict[str, Any]) -> int:
    total = 0
    for name, value in message.items():
        total += _string_bytes(value)
        if type(value) is list and name == "content":
            total += sum(_FRAME_TOKENS + _media_tokens(part) for part in value)
        elif type(value) is list and name == "tool_calls":
            total += _FRAME_TOKENS * len(value)
        elif type(value) is dict:
            total += _FRAME_TOKENS * (name == "function_call") + _MEDIA_TOKENS * (name == "audio")
    return total


def _media_tokens(part: dict[str, Any]) -> int:
    """Return the tokens of a part of media beyond those of its strings: a fixed number instead of its data."""
    if part["type"] == "text" or not any(map(_MEDIA.search, (part["type"], *part))):
        return 0
    return _MEDIA_TOKENS - _data_bytes(part)


def _string_bytes(value: Any) -> int:
    total, found = 0, [value]
    for item in found:  # which grows
        kind = type(item)
        if kind is str:
            total += len(item) if item.isascii() else text_size_bytes(item)
        elif kind is dict:
            found += item.values()
        elif kind is list:
            found += item
    return total


def _data_bytes(value: Any, name: str = "") -> int:
    if isinstance(value, str):
        return text_size_bytes(value) if name in _DATA_FIELDS or value[:5].lower() == "data:" else 0
    if isinstance(value, dict):
        return sum(_data_bytes(item, key) for key, item in value.items())
    return sum(_data_bytes(item) for item in value) if isinstance(value, list) else 0


def estimated_input_tokens(request: dict[str, Any]) -> int:
    """Estimate the tokens of a checked `request` from its texts, and the JSON of its tools and formats."""
    size_bytes = sum(_text_bytes(message) for message in request["messages"])
    size_bytes += sum(_json_bytes(value) for name, value in request.items() if value and name in _PROMPT_FIELDS)
    return estimated_tokens(size_bytes)


def _json_bytes(value: Any) -> int:
    try:
        return len(orjson.dumps(value))
    except TypeError:  # an integer of over 64 bits
        return len(json_text.dumps(value))


def _text_bytes(value: Any) -> int:
    if isinstance(value, str):
        return text_size_bytes(value)
    if isinstance(value, list):
        return sum(_text_bytes(item) for item in value)
    if isinstance(value, dict) and value.get("type") not in ("image_url", "input_image", "image"):
        return sum(_text_bytes(item) for key, item in value.items() if key not in _NO_TEXT)
    return 0


def estimated_tokens(size_bytes: int) -> int:
    """Return 1 token for each 4 bytes, rounded up."""
    return -(-size_bytes // 4)
