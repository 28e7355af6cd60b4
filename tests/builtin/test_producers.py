"""Files of many programs: the same text from each, and files of office programs. tests/builtin/files/README.md lists them."""

from collections import Counter
from pathlib import Path

import pytest

from svc.builtin.archive import NoText
from svc.builtin.passages import pages_of, passages_of
from tests.support.cases import each

FILES = Path(__file__).parent / "files"
TITLE, SENTENCE = "Night trains", "The night train to Vienna leaves at 22:40 from platform nine."
CELLS, LAST = ("Gr\u00fc\u00dfe\tPreis", "Sitz\t29,90"), "\u65e5\u672c\u8a9e\u306e\u8aac\u660e\u3067\u3059\u3002"
SAME = {
    "docx": "python-docx pandoc docx-js html-docx-js",
    "pptx": "python-pptx pandoc pptxgenjs",
    "xlsx": "openpyxl xlsxwriter pyexcelerate exceljs sheetjs",
    "odt": "odfpy odfdo ezodf pandoc",
    "ods": "odfpy odfdo ezodf sheetjs",
    "odp": "odfpy odfdo",
    "epub": "ebooklib pandoc mkepub epub-gen-memory sphinx",
    "pdf": "reportlab fpdf2 weasyprint cairo borb pymupdf pdfkit pdf-lib jspdf ghostscript",
}
ALIKE = [f"{name}.{kind}" for kind, names in SAME.items() for name in names.split()]
NO_TABLE = ("ezodf.odt", "pandoc.pptx")
NOTES = {
    "Note: Only on weekdays.": "pandoc.docx docx-js.docx odfpy.odt odfdo.odt pandoc.odt",
    "Comment: Is it daily?": "python-docx.docx openpyxl.xlsx xlsxwriter.xlsx exceljs.xlsx pymupdf.pdf",
    "Say hello.": "python-pptx.pptx pandoc.pptx pptxgenjs.pptx",
    "2026-11-28\tTRUE\t1.5": "openpyxl.xlsx xlsxwriter.xlsx exceljs.xlsx",
    "29\t79": "pptxgenjs.pptx",
}
OFFICE = {
    "word-2007.docx": "Eto ochen prostoy text so snoskoy\nNote: snoska",
    "word-strict.docx": "Test",
    "libreoffice.docx": "# Abstract\nAutoGen is an open-source framework",
    "powerpoint.pptx": "# Here is some text\n\nComment: Here is a comment",
    "powerpoint-mac.pptx": "Text run in table cell",
    "excel.xlsx": "# Sheet1\nHere is some text\nComment: Author: Here is a comment",
    "excel-mac.xlsx": "Columns\tColumn A\tColumn B\tColumn C\nput data here\t1\t2\t3",
    "libreoffice.xlsx": "# Sheet1\n2021-01-01\t15\n2021-01-02\t16",
    "libreoffice-1904.xlsx": "# Sheet1\n2021-01-01\t15\n2021-01-02\t16",
    "poi.xlsx": "# format sheet\n11111.25",
    "libreoffice.odt": "This is an example document",
    "libreoffice-notes.odt": "banale.\nNote: C'est-\u00e0-dire l'\u00e9l\u00e9ment",
    "openoffice.odt": "Here is some text...\n\nHere is some text on page 2",
    "excel-online.ods": "# Sheet1\nA\tB\nC\tD\nC\tD\nC\tD\nC\tD\n\n# Sheet2",
    "libreoffice.ods": "# table1\ncell a.1\nComment: This is annotation of a.1",
    "openoffice.ods": "# Sheet1\nData 1\tData 2\nData 3\tData 4",
    "libreoffice.odp": "\u4f60\u597d",
    "neooffice.odp": "5",
    "lpod.odp": "azertyuiop azertyuiop",
    "pdflib.pdf": "This is a page about Denmark",
    "fop.pdf": "Hello World!",
    "bom.pdf": "Hello World",
}
PROTECTED = ["protected.docx", "protected.odt"]


def text_of(name: str) -> str:
    return "\n".join(page.text for page in pages_of((FILES / name).read_bytes(), name, ""))


@each("name", ALIKE)
def test_the_same_text_of_each_program_is_read(name: str) -> None:
    text, kind = text_of(name), name.rpartition(".")[2]
    assert TITLE in text and "".join(SENTENCE.split()) in "".join(text.split()), text
    if kind == "pdf":
        assert [page.number for page in pages_of((FILES / name).read_bytes(), name, "")] == [1, 2]
    else:
        assert LAST in text, text
    if kind not in ("pdf", "odp") and name not in NO_TABLE:
        rows = text.replace(" \t", "\t").splitlines()
        assert set(CELLS) <= set(rows), text
    if kind in ("pptx", "odp"):
        assert [page.number for page in pages_of((FILES / name).read_bytes(), name, "")] == [1, 2]
    assert "running head" not in text


@each("note", list(NOTES))
def test_notes_comments_and_cached_values_are_read(note: str) -> None:
    for name in NOTES[note].split():
        assert note in text_of(name), name


@each("name", list(OFFICE))
def test_files_of_office_programs_are_read(name: str) -> None:
    assert OFFICE[name] in text_of(name)


@each("name", PROTECTED)
def test_protected_file_says_so(name: str) -> None:
    with pytest.raises(NoText, match="protected by a password"):
        text_of(name)


def test_each_type_has_five_programs() -> None:
    names = [*ALIKE, *OFFICE]
    counts = Counter(name.rpartition(".")[2] for name in names)
    assert all(counts[kind] >= 5 for kind in ("docx", "pptx", "xlsx", "odt", "ods", "odp", "epub", "pdf")), counts
    assert {path.name for path in FILES.iterdir()} == {*names, *PROTECTED, "README.md"}


@each("name", [*ALIKE, *OFFICE])
def test_cut_or_changed_file_ends_with_a_text_or_a_reason(name: str) -> None:
    content = (FILES / name).read_bytes()
    for place in range(0, len(content), max(1, len(content) // 4)):
        for broken in (content[:place], content[:place] + b"\xff" * 9 + content[place + 9 :]):
            try:
                assert list(passages_of(pages_of(broken, name, ""))) is not None
            except (Exception, RecursionError) as error:  # as `answer` of the helper process does
                assert not isinstance(error, MemoryError)
