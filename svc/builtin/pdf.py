"""The text of a PDF, read by pypdf in a helper process, because files of users may be hostile (see documents.py).

a PDF in a file -> the text of its pages behind it -> JSON that says whether text is missing, and why
"""

import io
import json
import re
import sys
import unicodedata
from typing import Any, BinaryIO

CPU_SECONDS = 30
MEMORY_BYTES = 256 * 1024 * 1024
TEXT_BYTES = 4 * 1024 * 1024
_MOST_PAGES = 2_000


# TeX writes an accent before its letter, as a sign of its own.
_ACCENTS = dict(
    zip("\u00b4\u00a8\u02c6\u02dc\u02c7\u02da\u00b8", "\u0301\u0308\u0302\u0303\u030c\u030a\u0327", strict=True)
)
_ACCENTED = re.compile(f"([{''.join(_ACCENTS)}])([A-Za-z\u0131])")
# Names of glyphs that say nothing about a character, such as /g17.
_NUMBERED = re.compile(r"/(?:g|G|glyph|cid|index)?\d+")


def _composed(match: re.Match[str]) -> str:
    letter = unicodedata.normalize("NFC", match[2].replace("\u0131", "i") + _ACCENTS[match[1]])
    return letter if len(letter) == 1 else match[0]


def composed(text: str) -> str:
    """Return a text of a PDF without NUL, with each accent in its letter."""
    return _ACCENTED.sub(_composed, unicodedata.normalize("NFC", text.strip())).replace("\0", "")


def _has_no_map(font: Any) -> bool:
    """Return whether a font does not say which characters its codes are, so that its text would be wrong."""
    font = font.get_object() if font is not None else {}
    if "/ToUnicode" in font:
        return False
    if font.get("/Subtype") == "/Type0":
        return font.get("/Encoding") in ("/Identity-H", "/Identity-V")
    encoding = font.get("/Encoding")
    encoding = encoding.get_object() if encoding is not None else None
    names = (
        [name for name in encoding.get("/Differences", ()) if isinstance(name, str)]
        if isinstance(encoding, dict)
        else []
    )
    return bool(names) and all(_NUMBERED.fullmatch(name) for name in names)


def text_of_page(page: Any) -> tuple[str, bool]:
    """Return the text of a page, and whether text in fonts without a map was left out."""
    resources = page.get("/Resources")
    fonts = resources.get_object().get("/Font") if resources is not None else None
    unmapped = [font for font in (fonts.get_object().values() if fonts is not None else ()) if _has_no_map(font)]
    if not unmapped:
        return page.extract_text(), False
    kept: list[str] = []
    left_out = False

    def visit(text: str, _1: Any, _2: Any, font: Any, _3: Any) -> None:
        nonlocal left_out
        if font is None or not _has_no_map(font):
            kept.append(text)
        elif text.strip():
            left_out = True

    page.extract_text(visitor_text=visit)
    return "".join(kept), left_out


def filled_fields(reader: Any) -> str:
    """Return the filled fields of a form, a line for each."""
    lines = []
    for name, field in (reader.get_fields() or {}).items():
        value = field.get("/V")
        texts = value if isinstance(value, list) else [value]
        filled = ", ".join(str(text).removeprefix("/") for text in texts if isinstance(text, str) and text != "/Off")
        if filled.strip():
            lines.append(f"{name}: {filled}")
    return "\n".join(lines)


def write_text(file: BinaryIO) -> dict[str, Any]:
    from pypdf import PdfReader

    reader, bytes_left = PdfReader(io.BytesIO(file.read())), TEXT_BYTES
    if reader.is_encrypted and not reader.decrypt(""):
        return {"encrypted": True}
    truncated = unmapped = False
    for number, page in enumerate(reader.pages):
        if number == _MOST_PAGES or bytes_left <= 0:
            return {"truncated": True}
        try:
            text, left_out = text_of_page(page)
        except MemoryError:
            raise
        except Exception:  # a broken page
            truncated = True
            continue
        unmapped = unmapped or left_out
        bytes_left -= _write(file, text, bytes_left)
    try:
        fields = filled_fields(reader)
    except Exception:  # a broken form
        fields, truncated = "", True
    if fields and bytes_left > 0:
        bytes_left -= _write(file, fields, bytes_left)
    found = {"truncated": truncated or unmapped or bytes_left < 0}
    return {**found, "unmapped": True} if unmapped else found


def _write(file: BinaryIO, text: str, most_bytes: int) -> int:
    """Write a part of the text, and return its bytes with those that did not fit."""
    written = f"{composed(text)}\n\n".encode("utf-8", "replace")
    file.write(written[:most_bytes])
    return len(written)


def answer(order: dict[str, Any]) -> bytes:
    sys.path += order["path"]
    with open(order["file"], "r+b", buffering=0, closefd=False) as file:
        file.seek(0)
        try:
            found = write_text(file)
        except MemoryError:
            found = {"truncated": True}
        except Exception:  # no PDF, or a broken one
            found = {"truncated": True, "broken": True}
    return json.dumps(found).encode()
