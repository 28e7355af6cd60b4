"""The texts of ODT, ODS and ODP files."""

from svc.builtin.open_document import open_document
from tests.support.office_files import zipped


def content_of(kind: str, body: str) -> bytes:
    names = 'xmlns:o="o" xmlns:t="t" xmlns:d="d" xmlns:p="p"'
    return zipped({"content.xml": f"<o:document {names}><o:body><o:{kind}>{body}</o:{kind}></o:body></o:document>"})


def test_notes_and_comments_of_odt_follow_their_paragraph_and_leave_its_sentence_whole() -> None:
    body = (
        '<t:h t:outline-level="2">Plan</t:h><t:p>one<t:s/>two<t:note><t:note-citation>1</t:note-citation><t:note-body>'
        "<t:p>a note</t:p></t:note-body></t:note> three<o:annotation><t:p>Is it?</t:p></o:annotation></t:p>"
        "<t:tracked-changes><t:p>gone</t:p></t:tracked-changes>"
    )
    (page,) = open_document(content_of("text", body)) or []
    assert page.text == "## Plan\none two three\nNote: a note\nComment: Is it?\n"


def test_sheets_of_ods_have_their_names_and_repeated_cells() -> None:
    def cell(text: str, more: str = "", note: str = "") -> str:
        return f"<t:table-cell {more}>{note}<t:p>{text}</t:p></t:table-cell>"

    many, twice = '<t:table-cell t:number-columns-repeated="16384"/>', 't:number-columns-repeated="2"'
    remark = "<o:annotation><t:p>Why?</t:p></o:annotation>"
    body = (
        f'<t:table t:name="Costs"><t:table-row>{cell("a")}{cell("b", twice)}{many}</t:table-row>'
        f'<t:table-row t:number-rows-repeated="3">{cell("c", note=remark)}{many}</t:table-row>'
        f'<t:table-row t:number-rows-repeated="1048576">{many}</t:table-row></t:table><t:table t:name="Other"/>'
    )
    (page,) = open_document(content_of("spreadsheet", body)) or []
    assert page.text.strip().split("\n") == [
        "# Costs", "a\tb\tb", "c", "c", "c", "Comment: Why?", "", "# Other"
    ]  # fmt: skip


def test_repetitions_cannot_make_a_text_large() -> None:
    row = '<t:table-row t:number-rows-repeated="999999999"><t:table-cell t:number-columns-repeated="999999999"><t:p>x</t:p></t:table-cell></t:table-row>'
    (page,) = open_document(content_of("spreadsheet", f"<t:table>{row}</t:table>")) or []
    assert len(page.text) < 25_000
    odd = '<t:table-row t:number-rows-repeated="-1"><t:table-cell t:number-columns-repeated="x"><t:p>x</t:p></t:table-cell></t:table-row>'
    (page,) = open_document(content_of("spreadsheet", f"<t:table>{odd}</t:table>")) or []
    assert page.text.strip().endswith("x")


def test_slides_of_odp_are_pages_with_their_notes() -> None:
    def frame(text: str, kind: str) -> str:
        return f'<d:frame p:class="{kind}"><d:text-box><t:p>{text}</t:p></d:text-box></d:frame>'

    body = (
        f"<d:page>{frame('First', 'title')}{frame('text', 'outline')}<p:notes>{frame('Say hello', 'notes')}</p:notes></d:page>"
        f"<d:page>{frame('Last', 'title')}<o:annotation><t:p>Why?</t:p></o:annotation></d:page>"
    )
    pages = open_document(content_of("presentation", body)) or []
    assert [(page.number, page.text) for page in pages] == [
        (1, "# First\ntext\n\nSay hello\n"),
        (2, "# Last\nComment: Why?"),
    ]
