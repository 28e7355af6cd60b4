"""The tokens of a chat request: the worst case for the hold, and an estimate if the model server does
not count them.
"""

import re
from typing import Any

import orjson

from svc import json_text
from svc.inference.answer.normalize import text_size_bytes

BYTES_PER_TOKEN = 4  # of an estimate
FRAME_TOKENS = 16  # of a message, a part of one, a tool or a tool call, beside its bytes
MEDIA_TOKENS = 8192  # of an image of any size, and the least of a sound, video or file
_MEDIA = re.compile(r"image|audio|sound|voice|video|file|document|pdf|media", re.IGNORECASE)
_DATA_ADDRESS = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w-]+=[\w.+-]+)*;base64,", re.ASCII | re.IGNORECASE)
_MOST_BEFORE_DATA = 128  # characters of such an address
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*+={0,2}")
_SLICE_CHARACTERS = 1024 * 1024  # other threads wait for a match
_PICTURES = frozenset(
    f"image/{kind}" for kind in ("png", "jpeg", "jpg", "gif", "webp", "bmp", "tiff", "heic", "heif", "avif")
)
# Only data in these fields of parts is not counted byte by byte. In any other field it could be the text of a prompt.
_DATA_FIELDS = {
    "image_url": ("image_url", "url"),
    "input_image": ("image_url", "url"),
    "input_audio": ("input_audio", "data"),
    "audio_url": ("audio_url", "url"),
    "video_url": ("video_url", "url"),
    "file": ("file", "file_data"),
    "input_file": ("file_data", ""),
}
# Parts of Messages whose data is in `source`, and parts without media.
_WITH_SOURCE = frozenset({"image", "document"})
_TEXTS = frozenset({"text", "input_text", "output_text", "message", "tool_use", "tool_result", "function_call"})
# The other fields that become part of the prompt.
_PROMPT_FIELDS = frozenset({"tools", "functions", "response_format", "guided_json", "structured_outputs"}) | frozenset(
    {"prediction", "documents", "chat_template", "chat_template_kwargs"}
)
_NO_TEXT = frozenset({"role", "type", "id", "tool_call_id", "index"})


def worst_input_tokens(request: dict[str, Any], size_bytes: int) -> int:
    """Return the most tokens that a model can count for a checked `request`, which is `size_bytes` of JSON.

    Each byte is 1 token: model servers count names, numbers and brackets, too. A message, part, tool or tool call is 16
    more, and a reference to media 8,192 more. The data of an image is 8,192. Other data is 1 token for each byte after
    decoding, at least 8,192.
    """
    messages = request["messages"]
    frames = len(messages) + len(request.get("tools") or ()) + len(request.get("functions") or ())
    for message in messages:
        content = message.get("content")
        if type(content) is list:
            frames += len(content)
            size_bytes += sum([_media_tokens(part) for part in content if part["type"] != "text"])
        if len(message) > 2:  # not only role and content
            frames += len(message.get("tool_calls") or ()) + (type(message.get("function_call")) is dict)
            size_bytes += MEDIA_TOKENS * (type(message.get("audio")) is dict)
    return size_bytes + FRAME_TOKENS * frames


def worst_tokens_of(api: str, request: dict[str, Any], size_bytes: int) -> int:
    """Return the same for a `request` in the format of `api`."""
    if api == "chat":
        return worst_input_tokens(request, size_bytes)
    held = [request.get("input"), request.get("system"), request.get("messages")]
    return size_bytes + FRAME_TOKENS * len(request.get("tools") or ()) + _held_tokens(held)


def _held_tokens(value: Any) -> int:
    """Return the tokens of items, messages and blocks beyond their bytes of JSON."""
    if type(value) is list:
        return sum(map(_held_tokens, value))
    if type(value) is not dict:
        return 0
    kind, source = value.get("type"), value.get("source")
    tokens = FRAME_TOKENS + _held_tokens([value.get("content"), value.get("output")])
    if type(source) is dict and kind in _WITH_SOURCE:
        return tokens + _source_tokens(value, source)
    return tokens + (_media_tokens(value) if type(kind) is str and kind not in _TEXTS else 0)


def _source_tokens(block: dict[str, Any], source: dict[str, Any]) -> int:
    """Return the tokens of an image or a document of Messages beyond its bytes of JSON."""
    form, data = source.get("type"), source.get("data")
    if form in ("text", "content"):
        return _held_tokens(source.get("content"))
    if form != "base64" or type(data) is not str or not _is_base64(data, 0):
        return MEDIA_TOKENS
    picture = block["type"] == "image" and source.get("media_type") in _PICTURES
    return (MEDIA_TOKENS if picture else max(MEDIA_TOKENS, len(data) * 3 // 4)) - len(data)


def _media_tokens(part: dict[str, Any]) -> int:
    """Return the tokens of a part of media beyond its bytes of JSON: a negative number if its data is counted less."""
    if not any(map(_MEDIA.search, (part["type"], *part))):
        return 0
    field, inner = _DATA_FIELDS.get(part["type"], ("", ""))
    data = part.get(field)
    if type(data) is dict:
        data = data.get(inner)
    if type(data) is not str:
        return MEDIA_TOKENS  # an id
    address = _DATA_ADDRESS.match(data, 0, _MOST_BEFORE_DATA)
    start = address.end() if address else 0
    if (address is None and inner == "url") or not _is_base64(data, start):
        return MEDIA_TOKENS  # an address, or what is not certainly data
    if field == "image_url" and address and (address[1] or "").lower() in _PICTURES:
        return MEDIA_TOKENS - len(data)
    return max(MEDIA_TOKENS, (len(data) - start) * 3 // 4) - len(data)


def _is_base64(text: str, start: int) -> bool:
    slices = range(start, len(text), _SLICE_CHARACTERS)
    return all(_BASE64.fullmatch(text, place, min(place + _SLICE_CHARACTERS, len(text))) for place in slices)


def estimated_input_tokens(request: dict[str, Any]) -> int:
    """Estimate the tokens of a checked `request` from its texts, and the JSON of its tools and formats."""
    size_bytes = sum(_text_bytes(message) for message in request["messages"])
    size_bytes += sum(json_size_bytes(value) for name, value in request.items() if value and name in _PROMPT_FIELDS)
    return estimated_tokens(size_bytes)


def json_size_bytes(value: Any) -> int:
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
    """Return 1 token for each BYTES_PER_TOKEN, rounded up."""
    return -(-size_bytes // BYTES_PER_TOKEN)
