"""Images and documents for models that do not read them.

Those of the person are refused. Those in the result of a tool become texts. Coding agents send their whole conversation
again with each request, so a refusal would end the session.
"""

import base64
import contextlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from svc.errors import invalid_value
from svc.inference.catalog import Model
from svc.inference.server_formats.chat_parts import base64_of


class _Unread(NamedTuple):
    """What a model does not read: the field of its data, the type of a text beside it, that text, and the error."""

    field: str
    text_type: str
    in_place: str
    message: str


class Pdf(NamedTuple):
    """A PDF of a request: its part, the place of the part, and its content in base64."""

    part: dict[str, Any]
    param: str
    in_result: bool
    name: str
    content: str


class UnreadPdfs(Exception):
    """The request has PDFs for a server of chat completions, which gets their texts."""

    def __init__(self, pdfs: list[Pdf]) -> None:
        super().__init__()
        self.pdfs = pdfs


_Placed = tuple[dict[str, Any], str, bool]
_PDF_TYPE = "application/pdf"
_NO_IMAGE = ("[An image, which this model cannot read.]", "cannot read images. Leave the image out")
_NO_FILE = ("[A document, which this model cannot read.]", "reads texts, and PDFs as base64. Send one of them")
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
    for part, place, in_result in _parts(messages, param):
        if unread := _IMAGES.get(part["type"]):
            _replace(model, unread, part, place, in_result)


def check_documents(model: Model, messages: Any, param: str, *, reads_pdfs: bool = False) -> None:
    """Do the same for documents that are no plain text, if the server of `model` has the format of chat.

    With `reads_pdfs`, raise UnreadPdfs for PDFs.
    """
    if model.api != "chat":
        return
    pdfs = []
    for part, place, in_result in _parts(messages, param):
        if unread := _document(part):
            if reads_pdfs and (pdf := _pdf(part, f"{place}.{unread.field}".rstrip("."), in_result)):
                pdfs.append(pdf)
            else:
                _replace(model, unread, part, place, in_result)
    if pdfs:
        raise UnreadPdfs(pdfs)


def check_files(model: Model, messages: Any, param: str) -> None:
    """Raise UnreadPdfs for PDFs in a chat request to a server of chat, if `model` is known not to read images.

    Models that read images read the pages of PDFs, too. Other files are passed on.
    """
    if model.api != "chat" or reads_images(model):
        return
    found = [_pdf(part, f"{place}.file", in_result) for part, place, in_result in _parts(messages, param)]
    if pdfs := [pdf for pdf in found if pdf]:
        raise UnreadPdfs(pdfs)


def _document(part: dict[str, Any]) -> _Unread | None:
    kind = part["type"]
    if kind == "document":
        return None if part["source"]["type"] in ("text", "content") else _DOCUMENT
    return _FILE if kind == "input_file" and text_of_file(part) is None else None


def _pdf(part: dict[str, Any], param: str, in_result: bool) -> Pdf | None:
    """Return the PDF of a part of any format, or None if it has none with its data."""
    kind = part["type"]
    file = part if kind in ("input_file", "document") else part.get("file") if kind == "file" else None
    if not isinstance(file, dict):
        return None
    source = file.get("source")
    if kind == "document" and isinstance(source, dict):
        media_type, content = source.get("media_type"), source.get("data")
    else:
        media_type, content = base64_of(file.get("file_data")) or (None, None)
    if media_type != _PDF_TYPE or not isinstance(content, str):
        return None
    name = file.get("title" if kind == "document" else "filename")
    return Pdf(part, param, in_result, name if isinstance(name, str) and name else "document.pdf", content)


def text_of_file(part: dict[str, Any]) -> str | None:
    """Return the text of an `input_file` that is a plain text in UTF-8."""
    found = _TEXT_FILE.fullmatch(part.get("file_data") or "")
    with contextlib.suppress(ValueError):
        return base64.b64decode(found[1], validate=True).decode() if found else None
    return None


def replace_part(part: dict[str, Any], kind: str, text: str) -> None:
    """Make a text of the type `kind` of a part, which keeps its mark of what to cache."""
    marked = {name: part[name] for name in ("cache_control",) if name in part}
    part.clear()
    part.update({"type": kind, "text": text, **marked})


def _replace(model: Model, unread: _Unread, part: dict[str, Any], place: str, in_result: bool) -> None:
    if not in_result:
        message = f"{model.id} {unread.message}, or choose another model."
        raise invalid_value(message, f"{place}.{unread.field}".rstrip("."))
    replace_part(part, unread.text_type, unread.in_place)


def _parts(messages: Any, param: str) -> Iterator[_Placed]:
    """Yield each part with a type, its place, and whether it is in the result of a tool."""
    for place, message in enumerate(messages if isinstance(messages, list) else ()):
        for field in ("content", "output"):
            if type(parts := message.get(field)) is list:
                in_result = message.get("role") == "tool" or message.get("type") in _RESULTS
                yield from _nested(parts, f"{param}[{place}].{field}", in_result)


def _nested(parts: list[dict[str, Any]], param: str, in_result: bool) -> Iterator[_Placed]:
    for place, part in enumerate(parts):
        kind = part.get("type") if type(part) is dict else None
        if type(kind) is not str:  # inside a part that is passed on unchecked
            continue
        at = f"{param}[{place}]"
        yield part, at, in_result
        inner = part.get("source") if kind == "document" else part
        if isinstance(inner, dict) and type(nested := inner.get("content")) is list:
            holder = "source.content" if kind == "document" else "content"
            yield from _nested(nested, f"{at}.{holder}", in_result or kind in _RESULTS)
