"""The texts of office files, of EPUB and of HTML, and hostile archives."""

import io
import zipfile

import pytest

from svc.builtin.office import Broken, docx, epub, html_text, odt, pptx, xlsx
from tests.support.cases import each

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:p="p"'
TYPE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def archive(**files: str) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as written:
        for name, text in files.items():
            written.writestr(name.replace("__", "/"), text)
    return output.getvalue()


def zipped(files: dict[str, str]) -> bytes:
    return archive(**{name.replace("/", "__"): text for name, text in files.items()})


def rels(*targets: tuple[str, str, str]) -> str:
    rows = "".join(f'<Relationship Id="{id}" Type="{TYPE}/{kind}" Target="{path}"/>' for id, kind, path in targets)
    return f"<Relationships>{rows}</Relationships>"


def test_docx_has_headings_tables_footnotes_and_comments_but_no_deleted_text_and_no_running_heads() -> None:
    body = (
        '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Plan</w:t></w:r></w:p>'
        "<w:p><w:r><w:t>one</w:t><w:tab/><w:t>two</w:t></w:r><w:del><w:r><w:t>gone</w:t></w:r></w:del></w:p>"
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    )
    note = f"<w:footnotes {W}><w:footnote><w:p><w:r><w:t>a note</w:t></w:r></w:p></w:footnote></w:footnotes>"
    comment = f"<w:comments {W}><w:comment><w:p><w:r><w:t>a remark</w:t></w:r></w:p></w:comment></w:comments>"
    content = zipped(
        {
            "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": rels(
                ("1", "footnotes", "footnotes.xml"), ("2", "comments", "comments.xml"), ("3", "header", "header1.xml")
            ),
            "word/footnotes.xml": note,
            "word/comments.xml": comment,
            "word/header1.xml": f"<w:hdr {W}><w:p><w:r><w:t>running head</w:t></w:r></w:p></w:hdr>",
        }
    )
    (page,) = docx(content) or []
    assert page.number is None
    assert page.text.startswith("# Plan\none\ttwo\n\na\tb") and "a note" in page.text and "a remark" in page.text
    assert "gone" not in page.text and "running head" not in page.text


def test_pptx_has_slides_in_their_order_with_speaker_notes() -> None:
    def shape(text: str, kind: str) -> str:
        place = f'<p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>'
        return f"<p:sp>{place}<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"

    content = zipped(
        {
            "ppt/presentation.xml": f'<p:presentation {A} {R}><p:sldIdLst><p:sldId id="256" r:id="r2"/><p:sldId id="257" r:id="r1"/>'
            "</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": rels(
                ("r1", "slide", "slides/slide1.xml"), ("r2", "slide", "slides/slide2.xml")
            ),
            "ppt/slides/slide1.xml": f"<p:sld {A}>{shape('Last', 'title')}</p:sld>",
            "ppt/slides/slide2.xml": f"<p:sld {A}>{shape('First', 'title')}{shape('7', 'sldNum')}</p:sld>",
            "ppt/slides/_rels/slide2.xml.rels": rels(("n", "notesSlide", "../notesSlides/notesSlide1.xml")),
            "ppt/notesSlides/notesSlide1.xml": f"<p:notes {A}>{shape('Say hello', 'body')}</p:notes>",
        }
    )
    pages = pptx(content) or []
    assert [(page.number, page.text) for page in pages] == [(1, "# First\n\nSay hello"), (2, "# Last")]


def test_xlsx_has_cached_values_and_dates() -> None:
    cells = (
        '<row><c t="s"><v>0</v></c><c><f>1+1</f><v>2</v></c><c s="1"><v>46000.5</v></c><c t="b"><v>1</v></c></row>'
        '<row><c t="inlineStr"><is><t>in line</t></is></c><c t="str"><v>made</v></c></row>'
    )
    content = zipped(
        {
            "xl/workbook.xml": f'<workbook {R}><sheets><sheet name="Costs" sheetId="1" r:id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": rels(
                ("r1", "worksheet", "worksheets/sheet1.xml"),
                ("r2", "sharedStrings", "s.xml"),
                ("r3", "styles", "t.xml"),
            ),
            "xl/worksheets/sheet1.xml": f"<worksheet><sheetData>{cells}</sheetData></worksheet>",
            "xl/s.xml": "<sst><si><r><t>sha</t></r><r><t>red</t></r></si></sst>",
            "xl/t.xml": '<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs></styleSheet>',
        }
    )
    (page,) = xlsx(content) or []
    assert page.text == "# Costs\nshared\t2\t2025-12-09 12:00:00\tTRUE\nin line\tmade"


def test_odt_has_notes_and_annotations() -> None:
    body = (
        '<t:h t:outline-level="2">Plan</t:h><t:p>one<t:s/>two<t:note><t:note-body><t:p>a note</t:p></t:note-body></t:note></t:p>'
        "<t:tracked-changes><t:p>gone</t:p></t:tracked-changes>"
    )
    content = zipped(
        {"content.xml": f'<o:document xmlns:o="o" xmlns:t="t"><o:body><o:text>{body}</o:text></o:body></o:document>'}
    )
    (page,) = odt(content) or []
    assert page.text == "## Plan\none two [a note]\n"


def test_epub_has_its_chapters_in_reading_order() -> None:
    spine = (
        '<item id="b" href="b.xhtml"/><item id="a" href="a%20a.xhtml"/><item id="n" properties="nav" href="n.xhtml"/>'
    )
    order = '<itemref idref="n"/><itemref idref="a"/><itemref idref="b"/>'
    content = zipped(
        {
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="o/p.opf"/></rootfiles></container>',
            "o/p.opf": f"<package><manifest>{spine}</manifest><spine>{order}</spine></package>",
            "o/a a.xhtml": "<!DOCTYPE html><html><head><title>x</title></head><body><h1>One</h1><p>first</p></body></html>",
            "o/b.xhtml": "<html><body><p>second</p></body></html>",
            "o/n.xhtml": "<html><body>contents</body></html>",
        }
    )
    (page,) = epub(content) or []
    assert page.text == "# One\n\nfirst\n\nsecond"


def test_html_has_no_scripts_and_keeps_preformatted_lines() -> None:
    html = "<html><head><style>x</style></head><body><script>y</script><p>a\n b</p><pre>c\n d</pre></body>"
    assert html_text(html) == "a b\n\nc\nd"


HOSTILE = {
    "entities": '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><w:document xmlns:w="w">&b;</w:document>',
    "depth": "<a>" * 100_000,
    "cut": "<w:document xmlns:w='w'><w:body>",
    "size": "<a>" + " " * 70_000_000,
}


@each("kind", list(HOSTILE))
def test_hostile_archive_is_broken(kind: str) -> None:
    with pytest.raises(Broken):
        docx(zipped({"word/document.xml": HOSTILE[kind]}))


@each("content", [b"PK\x03\x04", b"PK\x03\x04" + b"\0" * 1_000])
def test_damaged_archive_is_broken(content: bytes) -> None:
    with pytest.raises(Broken):
        docx(content)
