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


def with_font(font: bytes, shown: bytes) -> bytes:
    """A PDF with a page that shows text in F1, and then in the font."""
    page = b"<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R /F2 6 0 R >> >> /Contents 5 0 R >>"
    helvetica = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    return of_objects(
        CATALOG, pages(b"4 0 R", 1), helvetica, page, stream(b"BT /F1 12 Tf 50 700 Td " + shown + b" ET"), font
    )


IDENTITY = b"<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /Identity-H /DescendantFonts [] >>"
NUMBERED = b"<< /Type /Font /Subtype /Type1 /BaseFont /X /Encoding << /Differences [65 /g17 /g18 /g19] >> >>"
NAMED = b"<< /Type /Font /Subtype /Type1 /BaseFont /X /Encoding << /Differences [65 /eacute /b /c] >> >>"


@each(
    ("font", "shown", "text", "found"),
    [
        (IDENTITY, b"/F2 12 Tf <002400250026> Tj", "", {"truncated": True, "unmapped": True}),
        (NUMBERED, b"/F2 12 Tf (ABC) Tj", "", {"truncated": True, "unmapped": True}),
        (IDENTITY, b"(one) Tj /F2 12 Tf <0024> Tj", "one", {"truncated": True, "unmapped": True}),
        (IDENTITY, b"(one) Tj", "one", {"truncated": False}),
        (NAMED, b"/F2 12 Tf (ABC) Tj", "\u00e9bc", {"truncated": False}),
    ],
)
def test_text_in_fonts_without_a_map_is_left_out(
    font: bytes, shown: bytes, text: str, found: dict[str, bool], tmp_path: Path
) -> None:
    read_text, said = read(with_font(font, shown), tmp_path)
    assert (read_text.strip(), said) == (text, found)


@each(
    ("shown", "text"),
    [
        (b"caf\xb4e, \xa8Uber, \xb8ca", "caf\u00e9, \u00dcber, \u00e7a"),
        (b"5\xb4 10 and \xb4x", "5\u00b4 10 and \u00b4x"),
    ],
)
def test_accent_before_its_letter_is_composed(shown: bytes, text: str, tmp_path: Path) -> None:
    assert read(with_texts(shown), tmp_path)[0].strip() == text


def test_filled_fields_of_a_form_follow_the_pages(tmp_path: Path) -> None:
    page = b"<< /Type /Page /Parent 2 0 R /Annots [4 0 R 5 0 R 6 0 R] >>"
    fields = (
        b"<< /Subtype /Widget /FT /Tx /T (Name) /V (Ada Lovelace) >>",
        b"<< /Subtype /Widget /FT /Btn /T (Member) /V /Yes >>",
        b"<< /Subtype /Widget /FT /Tx /T (Empty) /V () >>",
    )
    catalog = b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [4 0 R 5 0 R 6 0 R] >> >>"
    pdf = of_objects(catalog, pages(b"3 0 R", 1), page, *fields)
    text, found = read(pdf, tmp_path)
    assert text.strip() == "Name: Ada Lovelace\nMember: Yes" and found == {"truncated": False}


@each("algorithm", ["RC4-128", "AES-256"])
def test_encrypted_pdf_is_read_without_a_password_only(algorithm: str, tmp_path: Path) -> None:
    from pypdf import PdfWriter

    for password, expected in (("", ("one\n\n", {"truncated": False})), ("secret", ("", {"encrypted": True}))):
        written, writer = io.BytesIO(), PdfWriter(clone_from=io.BytesIO(with_texts(b"one")))
        writer.encrypt(password, "owner", algorithm=algorithm)
        writer.write(written)
        assert read(written.getvalue(), tmp_path) == expected
