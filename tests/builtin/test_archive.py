"""Hostile and damaged archives."""

from collections.abc import Callable

import pytest

from svc.builtin.archive import Broken
from svc.builtin.office import docx, pptx, xlsx
from svc.builtin.open_document import open_document
from tests.support.cases import each
from tests.support.office_files import A, R, rels, zipped

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


@each("reader", [docx, pptx, xlsx, open_document])
def test_deep_nesting_within_the_limit_is_read(reader: Callable[[bytes], object]) -> None:
    def nested(root: str, tag: str) -> str:
        return f"<{root}><body>{f'<{tag}>' * 490}{f'</{tag}>' * 490}</body></{root}>"

    names = {docx: "word/document.xml", pptx: "ppt/presentation.xml", xlsx: "xl/workbook.xml"}
    roots = {docx: "document", pptx: "presentation", xlsx: "workbook"}
    for tag in ("p", "r", "tc", "list", "note"):
        name, root = names.get(reader, "content.xml"), roots.get(reader, "document")
        assert reader(zipped({name: nested(root, tag)})) is not None


def test_drawing_that_refers_to_itself_is_read_once() -> None:
    drawing = f"<xdr {A}><a:p><a:r><a:t>in a box</a:t></a:r></a:p></xdr>"
    files = {
        "xl/workbook.xml": f'<workbook {R}><sheets><sheet name="A" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": rels(("r1", "worksheet", "s.xml")),
        "xl/s.xml": "<worksheet/>",
        "xl/_rels/s.xml.rels": rels(("a", "drawing", "d.xml")),
        "xl/d.xml": drawing,
        "xl/_rels/d.xml.rels": rels(*((str(number), "drawing", "d.xml") for number in range(9))),
    }
    (page,) = xlsx(zipped(files)) or []
    assert page.text == "# A\nin a box"
