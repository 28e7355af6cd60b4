"""Passages of texts: they are the whole text, and end at headings, pages and paragraphs."""

from hypothesis import given
from hypothesis import strategies as st

from svc.builtin.archive import TextPage
from svc.builtin.passages import pages_of, passages_of
from tests.support import pdfs


@given(st.lists(st.text(st.sampled_from("ab.!# \n\u3002\u4e2d"), max_size=4_000), min_size=1, max_size=3))
def test_lines_of_passages_are_the_whole_text(texts: list[str]) -> None:
    passages = list(passages_of(TextPage(number, text) for number, text in enumerate(texts, 1)))
    assert all(len(passage.text) <= 4_000 for passage in passages)
    joined, last = passages[0].text, passages[0].to_line
    assert passages[0].from_line == 1
    for passage in passages[1:]:
        joined += ("" if passage.from_line == last else "\n") + passage.text
        assert passage.from_line in (last, last + 1)
        last = passage.to_line
    assert joined == "\n".join(texts)
    assert passages[-1].to_line == "\n".join(texts).count("\n") + 1


def test_passage_ends_at_a_heading_and_at_a_page() -> None:
    pages = [TextPage(1, "# A\none\n# B\ntwo"), TextPage(2, "three")]
    assert [(one.page, one.from_line, one.to_line, one.text) for one in passages_of(pages)] == [
        (1, 1, 2, "# A\none"),
        (1, 3, 4, "# B\ntwo"),
        (2, 5, 5, "three"),
    ]


def test_text_is_decoded_in_its_encoding() -> None:
    for content, content_type in (
        ("Gr\u00fc\u00dfe".encode("utf-16"), "text/plain"),
        ("Gr\u00fc\u00dfe".encode("cp1252"), "text/plain; charset=iso-8859-1"),
        ("<html><p>Gr\u00fc\u00dfe</p></html>".encode(), "text/html"),
    ):
        assert pages_of(content, "a", content_type) == [TextPage(None, "Gr\u00fc\u00dfe")]


@pdfs.needs_pypdf
def test_comments_of_a_pdf_follow_the_text_of_their_page() -> None:
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R /Annots 6 0 R >>"
    text = pdfs.stream(b"BT /F1 12 Tf 50 700 Td (The page.) Tj ET")
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    notes = b"[null 7 0 R << /Subtype /Link /Contents (a link) >> << /Subtype /Text /Contents 8 0 R >> 99 0 R 3]"
    note = b"<< /Type /Annot /Subtype /Text /Contents (Is it?) >>"
    made = pdfs.of_objects(pdfs.CATALOG, pdfs.pages(b"4 0 R", 1), font, page, text, notes, note, b"(Or not)")
    assert pages_of(made, "a.pdf", "") == [TextPage(1, "The page.\nComment: Is it?\nComment: Or not")]
