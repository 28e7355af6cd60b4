"""The texts of DOCX, PPTX and XLSX files."""

import email
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from xml.etree import ElementTree

from svc.builtin.archive import Archive, TextPage
from svc.builtin.epub import html_text

_DATE = re.compile(r"[ymdhs]", re.IGNORECASE)
_NO_DATE = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')


# --- Word

_NOTES = {
    "footnotes": ("footnoteReference", "Note"),
    "endnotes": ("endnoteReference", "Note"),
    "comments": ("commentReference", "Comment"),
}
_LEFT_OUT = ("Fallback", "del", "moveFrom", "pPr", "rPr", "instrText")


class _Notes:
    """The footnotes, endnotes and comments of a document by their references, each with its heading."""

    def __init__(self, archive: Archive, name: str) -> None:
        self.left: dict[tuple[str, str], str] = {}
        for kind, path in sorted(archive.related(name).values()):
            if kind in _NOTES:
                reference, title = _NOTES[kind]
                for note in archive.xml(path):
                    if text := " ".join(_word_text(note).split()):
                        self.left[reference, note.get("id", "")] = f"{title}: {text}"

    def of(self, element: ElementTree.Element) -> Iterator[str]:
        """Yield the notes to which a paragraph refers. They follow it, so that its sentences can be quoted."""
        for child in element:
            if child.tag not in _LEFT_OUT:
                note = self.left.pop((child.tag, child.get("id", "")), None)
                yield from [note] if note else self.of(child)


def docx(content: bytes) -> list[TextPage] | None:
    archive = Archive(content)
    name, root = _main(archive, "document")
    if root is None:
        return None
    notes = _Notes(archive, name)
    text = _word_text(root, notes)
    related = archive.related(name)
    for chunk in root.iter("altChunk"):
        if (part := related.get(chunk.get("id", ""))) is not None:
            text += f"\n\n{_web_page(archive.read(part[1]))}"
    text += "".join(f"\n\n{drawn}" for drawn in _drawn(archive, name))
    return [TextPage(None, "\n".join([text, *notes.left.values()]))]


_MAIN = {"document": "word/document.xml", "presentation": "ppt/presentation.xml", "workbook": "xl/workbook.xml"}


def _main(archive: Archive, tag: str) -> tuple[str, ElementTree.Element | None]:
    """Return the main member and its tree, or None if that is another kind of file."""
    name = next((path for kind, path in archive.related("").values() if kind == "officeDocument"), _MAIN[tag])
    root = archive.xml(name) if name in archive.names else None
    return name, root if root is not None and root.tag == tag else None


def _web_page(content: bytes) -> str:
    """Return the text of HTML, or of a page with its pictures (MHT), which some programs put into a document."""
    if content.lstrip().startswith(b"<"):
        return html_text(content.decode("utf-8", "replace"))
    for part in email.message_from_bytes(content).walk():
        if part.get_content_type() == "text/html" and isinstance(body := part.get_payload(decode=True), bytes):
            return html_text(body.decode("utf-8", "replace"))
    return ""


def _drawn(archive: Archive, name: str, *, in_drawing: bool = False) -> Iterator[str]:
    """Yield the texts of charts and diagrams of a member, and of the drawings of a sheet, which have charts, too."""
    for kind, path in sorted(archive.related(name).values()):
        if kind == "diagramData" or (kind == "drawing" and not in_drawing):
            yield "\n".join(filter(str.strip, _paragraphs(archive.xml(path))))
        if kind == "drawing" and not in_drawing:
            yield from _drawn(archive, path, in_drawing=True)
        if kind == "chart":
            chart = archive.xml(path)
            yield "\n".join(filter(str.strip, _paragraphs(chart)))
            for cache in chart.iter():
                if cache.tag in ("strCache", "numCache", "multiLvlStrCache"):
                    yield "\t".join(point.findtext("v") or "" for point in cache.iter("pt"))


def _word_text(root: ElementTree.Element, notes: _Notes | None = None) -> str:
    lines: list[str] = []
    for element in _walk(root, skip=("Fallback", "del", "moveFrom", "sdtPr")):
        noted = [*notes.of(element)] if notes else []
        if element.tag == "p":
            style = element.find("pPr/pStyle")
            level = re.fullmatch(r"(?i)heading ?(\d)|title()", style.get("val", "")) if style is not None else None
            text = "".join(_word_runs(element)).strip()
            lines += [f"{'#' * int(level[1] or '1')} {text}" if level and text else text, *noted]
            lines += [""] if level is None and text else []
        else:
            cells = [" ".join("".join(_word_runs(cell)).split()) for cell in element.findall("tc")]
            lines += ["\t".join(cells), *noted]
    return "\n".join(lines)


def _walk(root: ElementTree.Element, skip: tuple[str, ...]) -> Iterator[ElementTree.Element]:
    """Yield paragraphs and rows of tables in order, and nothing that is within one of them."""
    for child in root:
        if child.tag in ("p", "tr"):
            yield child
        elif child.tag not in skip:
            yield from _walk(child, skip)


def _word_runs(element: ElementTree.Element) -> Iterator[str]:
    for child in element:
        if child.tag in ("t", "delInstrText"):
            yield child.text or ""
        elif child.tag in ("tab", "br", "cr", "noBreakHyphen"):
            yield {"tab": "\t", "noBreakHyphen": "-"}.get(child.tag, "\n")
        elif child.tag not in _LEFT_OUT:
            yield from _word_runs(child)
            yield " " if child.tag == "p" else ""


# --- PowerPoint


def pptx(content: bytes) -> list[TextPage] | None:
    archive = Archive(content)
    name, root = _main(archive, "presentation")
    if root is None:
        return None
    related = archive.related(name)
    slides = [related.get(one.get("id", "")) for one in root.iter("sldId")]
    pages = []
    for number, path in enumerate((found[1] for found in slides if found), 1):
        texts = [_slide_text(archive.xml(path))]
        for kind, note in sorted(archive.related(path).values()):
            if kind == "notesSlide":
                texts.append(_slide_text(archive.xml(note)))
            elif kind == "comments":
                texts += [f"Comment: {text}" for text in _comments(archive.xml(note))]
        texts += _drawn(archive, path)
        pages.append(TextPage(number, "\n\n".join(text for text in texts if text.strip())))
    return pages


def _comments(root: ElementTree.Element) -> Iterator[str]:
    """Yield comments and the replies to them: `text` in older files, `txBody` in threads."""
    for element in root.iter():
        if element.tag in ("text", "txBody"):
            yield " ".join(" ".join([element.text or "", *_paragraphs(element)]).split())


def _slide_text(root: ElementTree.Element) -> str:
    lines: list[str] = []
    for shape in root.iter():
        if shape.tag == "sp":
            kind = shape.find("nvSpPr/nvPr/ph")
            if kind is not None and kind.get("type") in ("sldNum", "ftr", "dt", "hdr"):
                continue  # a running head
            text = "\n".join(_paragraphs(shape))
            title = kind is not None and kind.get("type") in ("title", "ctrTitle") and text.strip()
            lines.append(f"# {' '.join(text.split())}" if title else text)
        elif shape.tag == "tr":
            lines.append("\t".join(" ".join(_paragraphs(cell)) for cell in shape.findall("tc")))
    return "\n".join(line for line in lines if line.strip())


def _paragraphs(element: ElementTree.Element) -> list[str]:
    return [
        "".join("\n" if part.tag == "br" else part.text or "" for part in paragraph.iter() if part.tag in ("t", "br"))
        for paragraph in element.iter("p")
    ]


# --- Excel

_IN_THREAD = "[Threaded comment]"  # what older programs show in the place of a thread


def xlsx(content: bytes) -> list[TextPage] | None:
    archive = Archive(content)
    name, book = _main(archive, "workbook")
    if book is None:
        return None
    related = archive.related(name)
    kinds = dict(related.values())
    strings: list[str] = []
    if "sharedStrings" in kinds:
        strings = [_string(one) for one in archive.xml(kinds["sharedStrings"]).findall("si")]
    dates = _date_styles(archive.xml(kinds["styles"])) if "styles" in kinds else set()
    old = any(one.get("date1904") in ("1", "true") for one in book.iter("workbookPr"))
    start = datetime(1904, 1, 1) if old else datetime(1899, 12, 30)
    parts = []
    for sheet in book.iter("sheet"):
        if (found := related.get(sheet.get("id", ""))) is None or found[0] != "worksheet":
            continue
        lines = [f"# {sheet.get('name', '')}"]
        for row in archive.xml(found[1]).iter("row"):
            line = "\t".join(_cell(cell, strings, dates, start) for cell in row.findall("c")).rstrip()
            lines += [line] if line else []
        for kind, path in sorted(archive.related(found[1]).values()):
            if kind in ("comments", "threadedComment"):
                texts = (" ".join("".join(one.itertext()).split()) for one in archive.xml(path).iter("text"))
                lines += [f"Comment: {text}" for text in texts if text and not text.startswith(_IN_THREAD)]
        parts.append("\n".join([*lines, *filter(str.strip, _drawn(archive, found[1]))]))
    return [TextPage(None, "\n\n".join(parts))]


def _string(element: ElementTree.Element) -> str:
    """Return a text without its phonetic signs, in one line."""
    runs = [element.find("t"), *(run.find("t") for run in element.findall("r"))]
    return " ".join("".join(run.text or "" for run in runs if run is not None).split())


def _date_styles(styles: ElementTree.Element) -> set[str]:
    own = {one.get("numFmtId"): one.get("formatCode", "") for one in styles.iter("numFmt")}
    formats = [one.get("numFmtId", "0") for one in styles.findall("cellXfs/xf")]
    known = {str(number) for number in (*range(14, 23), *range(45, 48))}
    return {
        str(place)
        for place, one in enumerate(formats)
        if one in known or (one in own and _DATE.search(_NO_DATE.sub("", own[one])))
    }


def _cell(cell: ElementTree.Element, strings: list[str], dates: set[str], start: datetime) -> str:
    kind, value = cell.get("t"), cell.findtext("v") or ""
    if kind == "s":
        return strings[int(value)] if value.isdigit() and int(value) < len(strings) else ""
    if kind == "inlineStr":
        inline = cell.find("is")
        return _string(inline) if inline is not None else ""
    if kind == "b":
        return "TRUE" if value == "1" else "FALSE"
    if cell.get("s") in dates and kind in (None, "n"):
        try:
            moment = start + timedelta(days=float(value))
        except (ValueError, OverflowError):
            return value
        return moment.isoformat(" ", "seconds").removesuffix(" 00:00:00")
    return " ".join(value.split())
