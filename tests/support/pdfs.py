"""PDFs as bytes, also such as no program writes."""

import zlib
from importlib.util import find_spec

import pytest

needs_pypdf = pytest.mark.skipif(find_spec("pypdf") is None, reason="pypdf of the extra 'documents' is missing")
CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"
_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
_PAGE = (
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>"
)


def of_objects(*objects: bytes) -> bytes:
    """A PDF of these objects, the first of which is its catalog."""
    written, places = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(written))
        written += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(written))
    return written + b"xref\n0 %d\n0000000000 65535 f \n%b" % (len(objects) + 1, table) + end


def pages(kids: bytes, count: int) -> bytes:
    return b"<< /Type /Pages /Kids [%b] /Count %d >>" % (kids, count)


def of_streams(*contents: bytes) -> bytes:
    """A PDF with a page for each content stream."""
    kids = b" ".join(b"%d 0 R" % number for number in range(4, 4 + 2 * len(contents), 2))
    parts = [part for place, content in enumerate(contents) for part in (_PAGE % (5 + 2 * place), content)]
    return of_objects(CATALOG, pages(kids, len(contents)), _FONT, *parts)


def stream(content: bytes, filters: bytes = b"") -> bytes:
    return b"<< /Length %d %b>>\nstream\n%b\nendstream" % (len(content), filters, content)


def with_texts(*texts: bytes) -> bytes:
    """A PDF with a page for each text."""
    return of_streams(*[stream(b"BT /F1 12 Tf 50 700 Td (%b) Tj ET" % text) for text in texts])


_SLOW_PAGE = stream(zlib.compress(b"BT /F1 12 Tf (x) Tj ET\n" * 500_000, 9), b"/Filter /FlateDecode ")
SLOW = of_streams(*[_SLOW_PAGE] * 4)  # 110 KB that take longer to read than a process may
