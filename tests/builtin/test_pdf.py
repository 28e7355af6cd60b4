"""The text of a PDF, read in this process: what is readable is kept. (Its limits: test_pdf_process.py.)"""

import io
import json
from pathlib import Path

from svc.builtin.pdf import answer
from tests.support.cases import each
from tests.support.pdfs import CATALOG, needs_pypdf, of_objects, of_streams, pages, stream, with_texts

pytestmark = needs_pypdf
LETTERS = stream(b"BT /F1 12 Tf 50 700 Td (one) Tj ET")


def read(pdf: bytes, folder: Path) -> tuple[str, dict[str, bool]]:
    """Return what is written behind the PDF, and what the helper process says of it."""
    with (folder / "pdf").open("w+b", buffering=0) as file:
        file.write(pdf)
        found = json.loads(answer({"path": [], "file": file.fileno()}))
        file.seek(len(pdf))
        return file.read().decode(), found


BROKEN = {"truncated": True, "broken": True}
DEEP = b"<< /Type /Catalog /Pages 2 0 R /X %b >>" % (b"[" * 20_000)


@each(
    ("pdf", "text", "found"),
    [
        (b"", "", BROKEN),
        (b"%PDF-1.7 junk", "", BROKEN),
        (of_objects(CATALOG, pages(b"", 0)), "", {"truncated": False}),
        (of_objects(CATALOG, pages(b"2 0 R", 1)), "", BROKEN),
        (with_texts(b"one").replace(b"/Root", b"/Prev 9 /Root"), "one\n\n", {"truncated": False}),
        (of_objects(DEEP, pages(b"", 0)), "", BROKEN),
        (of_streams(LETTERS, stream(b"[" * 20_000)), "one\n\n\n\n", {"truncated": False}),
        (with_texts(b"one", b"two"), "one\n\ntwo\n\n", {"truncated": False}),
    ],
)
def test_readable_pages_are_kept_and_missing_ones_named(
    pdf: bytes, text: str, found: dict[str, bool], tmp_path: Path
) -> None:
    assert read(pdf, tmp_path) == (text, found)


@each("algorithm", ["RC4-128", "AES-256"])
def test_encrypted_pdf_is_read_without_a_password_only(algorithm: str, tmp_path: Path) -> None:
    from pypdf import PdfWriter

    for password, expected in (("", ("one\n\n", {"truncated": False})), ("secret", ("", {"encrypted": True}))):
        written, writer = io.BytesIO(), PdfWriter(clone_from=io.BytesIO(with_texts(b"one")))
        writer.encrypt(password, "owner", algorithm=algorithm)
        writer.write(written)
        assert read(written.getvalue(), tmp_path) == expected
