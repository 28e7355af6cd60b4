"""Images and documents for models that do not read them.

Those of the person are refused. Those in the result of a tool become texts. Coding agents send their whole conversation
again with each request, so a refusal would end the session.
"""

import base64
import contextlib
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from svc.errors import invalid_value
from svc.inference.catalog import Model


class _Unread(NamedTuple):
    """What a model does not read: the field of its data, the type of a text beside it, that text, and the error."""

    field: str
    text_type: str
    in_place: str
    message: str


_Finder = Callable[[dict[str, Any]], _Unread | None]  # of a part
_NO_IMAGE = ("[An image, which this model cannot read.]", "cannot read images. Leave the image out")
_NO_FILE = ("[A document, which this model cannot read.]", "reads plain text only, no PDF documents. Send its text")
# The types of images and documents in chat, Responses and Messages.
_IMAGES = {
    "image_url": _Unread("image_url", "text", *_NO_IMAGE),
    "input_image": _Unread("image_url", "input_text", *_NO_IMAGE),
    "image": _Unread("source", "text", *_NO_IMAGE),
}
_DOCUMENT = _Unread("source", "text", *_NO_FILE)
_FILE = _Unread("", "input_text", *_NO_FILE)
_TEXT_FILE = re.compile(r"data:text/[\w.+-]+(?:;charset=[\w-]+)?;base64,(.*)", re.DOTALL | re.IGNORECASE)
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_result"})


def reads_images(model: Model) -> bool:
    """Return whether `model` reads images, as far as it is known."""
    return model.capabilities is None or "vision" in model.capabilities


def check_images(model: Model, messages: Any, param: str) -> None:
    """Raise ApiError `invalid_value` for an image if `model` is known not to read images.

    `messages` are those of a checked request, or the items of one in the Responses format, in the field `param`. Images
    in the results of tools are replaced in them.
    """
    if reads_images(model):
        return
    _check(model, messages, param, lambda part: _IMAGES.get(part.get("type") or ""))


def check_documents(model: Model, messages: Any, param: str) -> None:
    """Do the same for documents that are no plain text, if the server of `model` has the format of chat."""
    if model.api == "chat":
        _check(model, messages, param, _document)


def _document(part: dict[str, Any]) -> _Unread | None:
    kind = part.get("type")
    if kind == "document":
        return None if part["source"]["type"] in ("text", "content") else _DOCUMENT
    return _FILE if kind == "input_file" and text_of_file(part) is None else None


def text_of_file(part: dict[str, Any]) -> str | None:
    """Return the text of an `input_file` that is a plain text in UTF-8."""
    found = _TEXT_FILE.fullmatch(part.get("file_data") or "")
    with contextlib.suppress(ValueError):
        return base64.b64decode(found[1], validate=True).decode() if found else None
    return None


def _check(model: Model, messages: Any, param: str, find: _Finder) -> None:
    for place, message in enumerate(messages if isinstance(messages, list) else ()):
        for field in ("content", "output"):
            if type(parts := message.get(field)) is list:
                in_result = message.get("role") == "tool" or message.get("type") in _RESULTS
                _check_parts(model, parts, f"{param}[{place}].{field}", in_result, find)


def _check_parts(model: Model, parts: list[dict[str, Any]], param: str, in_result: bool, find: _Finder) -> None:
    for place, part in enumerate(parts):
        at, kind = f"{param}[{place}]", part.get("type")
        inner = part.get("source") if kind == "document" else part
        if (unread := find(part)) and in_result:
            marked = {name: part[name] for name in ("cache_control",) if name in part}
            part.clear()
            part.update({"type": unread.text_type, "text": unread.in_place, **marked})
        elif unread:
            message = f"{model.id} {unread.message}, or choose another model."
            raise invalid_value(message, f"{at}.{unread.field}".rstrip("."))
        elif isinstance(inner, dict) and type(nested := inner.get("content")) is list:
            holder = "source.content" if kind == "document" else "content"
            _check_parts(model, nested, f"{at}.{holder}", in_result or kind in _RESULTS, find)
