"""The helper process for PDFs: hostile ones end within its limits, and what was readable is kept."""

import io
import zlib
from pathlib import Path

import pytest

from svc.builtin.documents import TEXT_BYTES
from svc.builtin.processes import ProcessPool
from tests.builtin.test_documents import text_of
from tests.support.pdfs import CATALOG, needs_pypdf, of_objects, of_streams, pages, stream, with_texts

pytestmark = [needs_pypdf, pytest.mark.slow]
LETTERS = stream(b"BT /F1 12 Tf 50 700 Td (one) Tj ET")
BOMB = zlib.compress(bytes(300_000_000), 9)
# Three levels with a thousand kids each: a billion pages.
KIDS = [pages(b" ".join([b"%d 0 R" % kid] * 1_000), 1_000) for kid in (3, 4, 5)]
HOSTILE = {
    "empty": (b"", None),
    "junk": (b"%PDF-1.7 junk", None),
    "no pages": (of_objects(CATALOG, pages(b"", 0)), None),
    "a billion pages by count": (of_objects(CATALOG, pages(b"", 10**9)), None),
    "a billion pages by kids": (of_objects(CATALOG, *KIDS, b"<< /Type /Page /Parent 2 0 R >>"), None),
    "pages in a circle": (of_objects(CATALOG, pages(b"2 0 R", 1)), None),
    "tables in a circle": (with_texts(b"one").replace(b"/Root", b"/Prev 9 /Root"), ("one", False)),
    "deep objects": (of_objects(b"<< /Type /Catalog /Pages 2 0 R /X %b >>" % (b"[" * 200_000), pages(b"", 0)), None),
    "deep content": (of_streams(LETTERS, stream(b"[" * 100_000)), ("one", False)),
    "a page of 300 MB": (of_streams(LETTERS, stream(BOMB, b"/Filter /FlateDecode "), LETTERS), ("one\n\none", True)),
    "filter of a filter": (
        of_streams(stream(zlib.compress(BOMB), b"/Filter [/FlateDecode /FlateDecode] "), LETTERS),
        ("one", True),
    ),
    "over 2,000 pages": (with_texts(*[b"x"] * 2_001), ("x\n\n" * 1_999 + "x", True)),
    "over 4 MiB of text": (
        with_texts(*[b"x" * 999_998] * 5),
        (("x" * 999_998 + "\n\n") * 4 + "x" * (TEXT_BYTES - 4_000_000), True),
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_pdf_gives_its_text_or_none(name: str, tmp_path: Path) -> None:
    pdf, expected = HOSTILE[name]
    assert await text_of(pdf, tmp_path) == expected


async def test_page_that_takes_too_long_or_too_much_memory_ends_the_text(tmp_path: Path) -> None:
    slow = zlib.compress(b"BT /F1 12 Tf (x) Tj ET\n" * 2_500_000, 9)
    pdf = of_streams(LETTERS, stream(slow, b"/Filter /FlateDecode "), LETTERS)
    assert await text_of(pdf, tmp_path, ProcessPool("svc.builtin.pdf", seconds=3.0)) == ("one", True), "killed"
    assert await text_of(pdf, tmp_path) == ("one", True), "out of memory"


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
async def test_encrypted_pdf_is_read_without_a_password_only(algorithm: str, tmp_path: Path) -> None:
    from pypdf import PdfWriter

    for password, expected in (("", ("one", False)), ("secret", None)):
        written, writer = io.BytesIO(), PdfWriter(clone_from=io.BytesIO(with_texts(b"one")))
        writer.encrypt(password, "owner", algorithm=algorithm)
        writer.write(written)
        assert await text_of(written.getvalue(), tmp_path) == expected
