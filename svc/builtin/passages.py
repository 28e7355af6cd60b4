"""The passages of a file's text, made in a helper process, because files of users may be hostile (server/reading.py).

a file -> its pages (office.py, open_document.py, epub.py, pdf.py, or the text itself)
       -> passages as JSON lines in its place
       -> JSON on stdout: `text_bytes`, or `error` with a code and a message
"""

import io
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from svc.builtin.archive import Broken, NoText, TextPage, protected
from svc.builtin.epub import epub, html_text
from svc.builtin.office import docx, pptx, xlsx
from svc.builtin.open_document import open_document
from svc.builtin.pdf import composed, filled_fields, text_of_page
from svc.content.encodings import encodings_of

CPU_SECONDS = 60
MEMORY_BYTES = 768 * 1024 * 1024
TEXT_BYTES = 50_000_000
_PASSAGE_CHARACTERS = 1_000
_LEAST_CHARACTERS = 600  # a passage ends at an empty line after so many
_LINE_CHARACTERS = 200  # about; longer lines of a text are cut at sentences
_MOST_PAGES = 2_000
_HEADING = re.compile(r"#{1,6} \S")
_SENTENCE = re.compile(r"(?<=[.!?;] )|(?<=[\u3002\uff01\uff1f])")
_HTML = re.compile(r"(?i)\s*(?:<\?xml[^>]*>\s*)?(?:<!--.{0,1000}?-->\s*)?<(?:!doctype html|html)\b", re.DOTALL)
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_NO_COMMENTS = ("/Link", "/Widget", "/Popup")
_PDF_HEAD_BYTES = 1_024  # other readers accept as much before the head
_OLE = b"\xd0\xcf\x11\xe0"  # files of Office before 2007, and protected ones of today
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_EMPTY_LINES = re.compile(r"\n\s*\n\s*\n")  # of empty paragraphs
_DIGITS = re.compile(r"\d+")


class _Passage(NamedTuple):
    page: int | None
    from_line: int
    to_line: int
    text: str


def pages_of(content: bytes, name: str, content_type: str) -> list[TextPage]:
    """Return the pages of a file: their numbers, or None, and their texts. Raises NoText, Broken."""
    if not content:
        raise NoText("no_text", "This file is empty.")
    if (start := content.find(b"%PDF-", 0, _PDF_HEAD_BYTES)) >= 0:
        return _pages_of_pdf(content[start:])
    if content.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        for reader in (docx, pptx, xlsx, epub, open_document):
            if (pages := reader(content)) is not None:
                return [page._replace(text=_EMPTY_LINES.sub("\n\n", page.text).strip("\n")) for page in pages]
    if content.startswith(_OLE) and _ENCRYPTED in content:
        raise protected()
    if content.startswith((b"PK", _OLE, b"{\\rtf")):
        raise _unsupported(content_type)
    text = ""
    for encoding, errors in encodings_of(content_type, content[:1_024]):
        try:
            text = content.decode(encoding, errors)
            break
        except UnicodeError:
            continue
    if len(_CONTROLS.findall(text[:65_536])) > len(text[:65_536]) // 500:
        raise _unsupported(content_type)
    text = text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
    if content_type.startswith(("text/html", "application/xhtml")) or _HTML.match(text):
        text = html_text(text)
    return [TextPage(None, text)]


def _unsupported(content_type: str) -> NoText:
    kinds = "text, HTML, PDF, DOCX, PPTX, XLSX, ODT, ODS, ODP and EPUB"
    return NoText("unsupported_media_type", f"The format of this file ({content_type}) is none of {kinds}.")


def _pages_of_pdf(content: bytes) -> list[TextPage]:
    try:
        from pypdf import PdfReader
    except ImportError:
        raise NoText("unsupported_media_type", "This server cannot read PDFs without 'documents'.") from None
    reader = PdfReader(io.BytesIO(content))
    if reader.is_encrypted and not reader.decrypt(""):
        raise NoText("no_text", "This PDF is protected by a password. Remove the password first.")
    pages, comments, unmapped = [], [], False
    for number, page in enumerate(reader.pages, 1):
        if number > _MOST_PAGES:
            break
        try:
            text, left_out = text_of_page(page)
        except MemoryError:
            raise
        except Exception:  # a broken page
            text, left_out = "", False
        unmapped = unmapped or left_out
        pages.append(TextPage(number, composed(text)))
        comments.append(_comments(page))
    pages = [
        page._replace(text="\n".join([page.text, *said]))
        for page, said in zip(_without_running_heads(pages), comments, strict=True)
    ]
    if pages and (fields := composed(filled_fields(reader))):
        pages[-1] = TextPage(pages[-1].number, f"{pages[-1].text}\n\n{fields}")
    if unmapped and not any(page.text.strip() for page in pages):
        raise NoText("no_text", "The fonts of this PDF do not say which characters they show.")
    return pages


def _comments(page: Any) -> list[str]:
    """Return the comments on a page of a PDF. Links and form fields have none."""
    lines = []
    try:
        annotations = page.get("/Annots")
        for annotation in annotations.get_object() if annotations is not None else ():
            found = annotation.get_object()
            if isinstance(found, dict) and "/Contents" in found and found["/Subtype"] not in _NO_COMMENTS:
                lines += [f"Comment: {text}"] if (text := " ".join(composed(str(found["/Contents"])).split())) else []
    except MemoryError:
        raise
    except Exception:  # a broken annotation
        return lines
    return lines


def _without_running_heads(pages: list[TextPage]) -> list[TextPage]:
    """Leave out the first and last lines that most pages share, except for their numbers."""
    split = [page.text.split("\n") for page in pages]
    counts = Counter((place, _DIGITS.sub("0", lines[place].strip())) for lines in split for place in (0, -1))

    def is_head(lines: list[str], place: int) -> bool:
        return len(lines) > 1 and counts[place, _DIGITS.sub("0", lines[place].strip())] > max(2, len(pages) // 2)

    for lines in split:
        if is_head(lines, 0):
            del lines[0]
        if is_head(lines, -1):
            del lines[-1]
    return [TextPage(page.number, "\n".join(lines)) for page, lines in zip(pages, split, strict=True)]


def passages_of(pages: Iterable[TextPage]) -> Iterator[_Passage]:
    """Cut pages into passages at headings, paragraphs and lines. Joined, their lines are the whole text."""
    number = 0
    for page in pages:
        held: list[str] = []
        first, size = number + 1, 0
        for line in page.text.split("\n"):
            is_end = (not line.strip() and size >= _LEAST_CHARACTERS) or (_HEADING.match(line) and size)
            if held and (is_end or size + len(line) > _PASSAGE_CHARACTERS):
                yield _Passage(page.number, first, number, "\n".join(held))
                held, first, size = [], number + 1, 0
            number += 1
            if len(line) > _PASSAGE_CHARACTERS:
                yield from (_Passage(page.number, number, number, part) for part in _parts(line))
                first = number + 1
                continue
            held.append(line)
            size += len(line) + 1
        if held:
            yield _Passage(page.number, first, number, "\n".join(held))


def _parts(line: str) -> Iterator[str]:
    """Cut a long line at sentences, or at blanks, or anywhere."""
    held = ""
    for sentence in _SENTENCE.split(line):
        rest = sentence
        if held and len(held) + len(rest) > _PASSAGE_CHARACTERS:
            yield held
            held = ""
        held += rest
        while len(held) > _PASSAGE_CHARACTERS:
            blank = held.rfind(" ", _LEAST_CHARACTERS, _PASSAGE_CHARACTERS)
            cut = blank + 1 if blank > 0 else _PASSAGE_CHARACTERS
            yield held[:cut]
            held = held[cut:]
    if held:
        yield held


def write_passages(file: Any, order: dict[str, Any]) -> dict[str, Any]:
    """Replace the content of `file` by its passages. Raises what `pages_of` raises."""
    pages = pages_of(file.read(), order["name"], order["content_type"])
    if not any(page.text.strip() for page in pages):
        raise NoText("no_text", "No text was found in this file. If it is a scan, use its pages as images.")
    # A hyphen that only shows where a word may be cut hides the word from searches.
    pages = [page._replace(text=page.text.replace("\u00ad", "")) for page in pages]
    text_bytes = sum(len(page.text.encode("utf-8", "replace")) for page in pages)
    if text_bytes > TEXT_BYTES:
        raise NoText("PAYLOAD_TOO_LARGE", f"This file has over {TEXT_BYTES} bytes of text.")
    file.seek(0)
    file.truncate()
    buffered = io.BufferedWriter(file)
    for passage in passages_of(pages):
        text = passage.text.encode("utf-8", "replace").decode()
        buffered.write(json.dumps([*passage[:3], text]).encode() + b"\n")
    buffered.flush()
    buffered.detach()
    return {"text_bytes": text_bytes}


def answer(order: dict[str, Any]) -> bytes:
    sys.path += order["path"]
    with io.FileIO(os.dup(order["file"]), "r+b") as file:
        file.seek(0)
        try:
            found = write_passages(file, order)
        except NoText as error:
            found = {"error": list(error.args)}
        except MemoryError:
            found = {"error": ["no_text", "This file cannot be read within the limits of time and memory."]}
        except (Broken, Exception):  # no such file, or a broken one
            found = {"error": ["no_text", "This file is damaged. Open it with another program, and save it again."]}
    return json.dumps(found).encode()
