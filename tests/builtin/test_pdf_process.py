"""The helper process for PDFs: hostile ones end within its limits, and what was readable is kept."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.builtin.pdf import TEXT_BYTES
from svc.builtin.processes import ProcessPool
from tests.builtin.test_documents import text_of
from tests.support.pdfs import CATALOG, needs_pypdf, of_objects, of_streams, pages, stream, with_texts

pytestmark = [needs_pypdf, pytest.mark.slow]
LETTERS = stream(b"BT /F1 12 Tf 50 700 Td (one) Tj ET")


def hostile() -> Iterator[tuple[str, bytes, tuple[str, bool] | None]]:
    """Yield PDFs by their names, each with the text that is readable and whether it was cut."""
    yield "empty", b"", None
    yield "junk", b"%PDF-1.7 junk", None
    yield "no pages", of_objects(CATALOG, pages(b"", 0)), None
    yield "a billion pages by count", of_objects(CATALOG, pages(b"", 10**9)), None
    levels = [pages(b" ".join([b"%d 0 R" % kid] * 1_000), 1_000) for kid in (3, 4, 5)]
    yield "a billion pages by kids", of_objects(CATALOG, *levels, b"<< /Type /Page /Parent 2 0 R >>"), None
    yield "pages in a circle", of_objects(CATALOG, pages(b"2 0 R", 1)), None
    yield "tables in a circle", with_texts(b"one").replace(b"/Root", b"/Prev 9 /Root"), ("one", False)
    deep = b"<< /Type /Catalog /Pages 2 0 R /X %b >>" % (b"[" * 200_000)
    yield "deep objects", of_objects(deep, pages(b"", 0)), None
    yield "deep content", of_streams(LETTERS, stream(b"[" * 100_000)), ("one", False)
    bomb = zlib.compress(bytes(300_000_000), 1)
    yield "a page of 300 MB", of_streams(LETTERS, stream(bomb, b"/Filter /FlateDecode "), LETTERS), ("one\n\none", True)
    twice = stream(zlib.compress(bomb), b"/Filter [/FlateDecode /FlateDecode] ")
    yield "filter of a filter", of_streams(twice, LETTERS), ("one", True)
    yield "over 2,000 pages", with_texts(*[b"x"] * 2_001), ("x\n\n" * 1_999 + "x", True)
    text = ("x" * 999_998 + "\n\n") * 4 + "x" * (TEXT_BYTES - 4_000_000)
    yield "over 4 MiB of text", with_texts(*[b"x" * 999_998] * 5), (text, True)


async def test_hostile_pdf_gives_its_text_or_none(tmp_path: Path) -> None:
    for name, pdf, expected in hostile():
        assert await text_of(pdf, tmp_path) == expected, name


async def test_page_that_takes_too_long_or_too_much_memory_ends_the_text(tmp_path: Path) -> None:
    slow = zlib.compress(b"BT /F1 12 Tf (x) Tj ET\n" * 2_500_000, 1)
    pdf = of_streams(LETTERS, stream(slow, b"/Filter /FlateDecode "), LETTERS)
    assert await text_of(pdf, tmp_path, ProcessPool("svc.builtin.pdf", seconds=1.0)) == ("one", True), "killed"
    assert await text_of(pdf, tmp_path) == ("one", True), "out of memory"
