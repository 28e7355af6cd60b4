"""The texts of DOCX, PPTX and XLSX files."""

from svc.builtin.office import docx, pptx, xlsx
from tests.support.office_files import A, R, W, rels, zipped


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


def test_notes_and_comments_of_docx_follow_their_paragraph_and_leave_its_sentence_whole() -> None:
    body = (
        '<w:p><w:r><w:t>The train leaves</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r><w:r><w:t> at ten.</w:t></w:r></w:p>'
        '<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t><w:endnoteReference w:id="2"/></w:r></w:p></w:tc></w:tr></w:tbl>'
        '<w:p><w:r><w:t>Last.</w:t><w:commentReference w:id="7"/></w:r><w:del><w:r><w:footnoteReference w:id="3"/></w:r></w:del></w:p>'
    )

    def notes(kind: str, one: str, **texts: str) -> str:
        found = "".join(
            f'<w:{one} w:id="{id[1:]}"><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:{one}>' for id, text in texts.items()
        )
        return f'<w:{kind} {W}><w:{one} w:type="separator" w:id="-1"><w:p/></w:{one}>{found}</w:{kind}>'

    names = ("footnotes", "endnotes", "comments")
    content = zipped(
        {
            "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": rels(*((name, name, f"{name}.xml") for name in names)),
            "word/footnotes.xml": notes("footnotes", "footnote", _2="On weekdays.", _3="Deleted."),
            "word/endnotes.xml": notes("endnotes", "endnote", _2="An endnote."),
            "word/comments.xml": notes("comments", "comment", _7="Is it?"),
        }
    )  # fmt: skip
    (page,) = docx(content) or []
    lines = ["The train leaves at ten.", "Note: On weekdays.", "", "a", "Note: An endnote.", "Last.", "Comment: Is it?"]
    assert page.text.split("\n") == [*lines, "", "Note: Deleted."]


def test_comments_of_slides_and_sheets_have_their_replies_once() -> None:
    def thread(text: str) -> str:
        return f"<t:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></t:txBody>"

    modern = f'<t:cmLst {A} xmlns:t="t"><t:cm>{thread("Why?")}<t:replyLst><t:reply>{thread("Because.")}</t:reply></t:replyLst></t:cm></t:cmLst>'
    slides = {
        "ppt/presentation.xml": f'<p:presentation {A} {R}><p:sldIdLst><p:sldId r:id="r1"/></p:sldIdLst></p:presentation>',
        "ppt/_rels/presentation.xml.rels": rels(("r1", "slide", "slides/slide1.xml")),
        "ppt/slides/slide1.xml": f"<p:sld {A}/>",
        "ppt/slides/_rels/slide1.xml.rels": rels(("a", "comments", "../c/old.xml"), ("b", "comments", "../c/new.xml")),
        "ppt/c/old.xml": f"<p:cmLst {A}><p:cm><p:text>Old.</p:text></p:cm></p:cmLst>",
        "ppt/c/new.xml": modern,
    }
    (page,) = pptx(zipped(slides)) or []
    assert page.text.split("\n\n") == ["Comment: Why?", "Comment: Because.", "Comment: Old."]
    old = "[Threaded comment]\n\nYour version of Excel allows you to read this threaded comment"
    sheets = {
        "xl/workbook.xml": f'<workbook {R}><sheets><sheet name="A" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": rels(("r1", "worksheet", "s.xml")),
        "xl/s.xml": "<worksheet/>",
        "xl/_rels/s.xml.rels": rels(("a", "comments", "c.xml"), ("b", "threadedComment", "t.xml")),
        "xl/c.xml": f"<comments><comment><text><r><t>{old}</t></r></text></comment></comments>",
        "xl/t.xml": "<x><threadedComment><text>Why?</text></threadedComment></x>",
    }
    (sheet,) = xlsx(zipped(sheets)) or []
    assert sheet.text == "# A\nComment: Why?"
