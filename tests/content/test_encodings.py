"""svc/content/encodings.py: the likely encodings of a file, of which the last decodes anything."""

import codecs

from hypothesis import given
from hypothesis import strategies as st

from svc.content.encodings import encodings_of
from tests.support.cases import each


@each(
    ("content_type", "first", "wanted"),
    [
        ("text/plain", b"a", "utf-8-sig"),
        ("text/plain", codecs.BOM_UTF16_BE + b"\0a", "utf-16"),
        ("text/plain", codecs.BOM_UTF32_LE, "utf-32"),
        ("text/plain; charset=koi8-r", codecs.BOM_UTF8 + b"a", "utf-8-sig"),
        ("text/plain; charset=latin1", b"a", "cp1252"),
        ("text/plain; charset=rot13", b"a", "utf-8-sig"),
        ("text/plain", b"<meta charset=gbk>", "utf-8-sig"),
        ("text/html", b"<meta http-equiv=x content='text/html; charset=gbk'>", "gbk"),
        ("text/css", b'@charset "shift_jis";', "shift_jis"),
    ],
)
def test_byte_order_mark_comes_before_a_declaration(content_type: str, first: bytes, wanted: str) -> None:
    assert encodings_of(content_type, first)[0][0] == wanted


@given(st.text(), st.binary(max_size=200))
def test_any_file_has_encodings(charset: str, first: bytes) -> None:
    found = encodings_of(f"text/html; charset={charset}", first)
    for encoding, errors in found:
        codecs.getincrementaldecoder(encoding)(errors)
    assert first.decode(*found[-1]) is not None
