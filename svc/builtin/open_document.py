"""The texts of OpenDocument files: ODT, ODS and ODP."""

from collections.abc import Iterator
from xml.etree import ElementTree

from svc.builtin.archive import Archive, TextPage, protected

_MOST_COPIES = 100  # of a repeated row or cell: a file may claim a million
_LEFT_OUT = ("tracked-changes", "forms", "sequence-decls", "shapes", "settings")
_NOTES = {"note": "Note", "annotation": "Comment"}


def open_document(content: bytes) -> list[TextPage] | None:
    archive = Archive(content)
    if "content.xml" not in archive.names or "META-INF/container.xml" in archive.names:
        return None
    if "META-INF/manifest.xml" in archive.names and b"encryption-data" in archive.read("META-INF/manifest.xml"):
        raise protected()
    body = archive.xml("content.xml").find("body")
    if body is None:
        return [TextPage(None, "")]
    slides = body.findall("presentation/page") or body.findall("drawing/page")
    if slides:
        return [TextPage(number, _text_of(slide)) for number, slide in enumerate(slides, 1)]
    return [TextPage(None, _text_of(body))]


def _text_of(element: ElementTree.Element) -> str:
    lines: list[str] = []
    _add_text(element, lines)
    return "\n".join(lines)


def _add_text(element: ElementTree.Element, lines: list[str]) -> None:
    for child in element:
        if child.tag in ("h", "p"):
            text = "".join(_runs(child)).strip()
            level = child.get("outline-level", "1")
            line = f"{'#' * int(level if level in '123456' else 1)} {text}" if child.tag == "h" else text
            lines += [line, *_notes(child), *([""] if child.tag == "p" else [])]
        elif child.tag == "table-row":
            line = "\t".join(_cells(child)).rstrip()
            lines += [line] * _copies(child, "number-rows-repeated") if line else []
            lines += _notes(child)
        elif child.tag == "annotation":
            lines += _note(child)
        elif child.tag == "frame" and child.get("class") == "title":
            lines += [f"# {title}"] if (title := " ".join(_text_of(child).split())) else []
        elif child.tag not in _LEFT_OUT:
            if child.tag == "table" and element.tag == "spreadsheet":
                lines += [*([""] if lines else []), f"# {child.get('name', '')}"]
            _add_text(child, lines)


def _cells(row: ElementTree.Element) -> Iterator[str]:
    for cell in row:
        paragraphs = (" ".join("".join(_runs(one)).split()) for one in cell if one.tag in ("p", "h", "list", "table"))
        yield from [" ".join(filter(None, paragraphs))] * _copies(cell, "number-columns-repeated")


def _copies(element: ElementTree.Element, attribute: str) -> int:
    count = element.get(attribute, "1")
    return min(int(count), _MOST_COPIES) if count.isdecimal() and len(count) < 10 else 1


def _runs(element: ElementTree.Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if child.tag in ("s", "tab", "line-break"):
            yield {"tab": "\t", "s": " "}.get(child.tag, "\n")
        elif child.tag not in _NOTES and child.tag != "ruby-text":
            yield from _runs(child)
            yield " " if child.tag == "p" else ""
        yield child.tail or ""


def _notes(element: ElementTree.Element) -> list[str]:
    """Return the notes and comments in a paragraph. They follow it, so that its sentences can be quoted."""
    return [line for child in element.iter() if child.tag in _NOTES for line in _note(child)]


def _note(note: ElementTree.Element) -> list[str]:
    texts = (" ".join("".join(_runs(one)).split()) for one in note.iter("p"))
    text = " ".join(filter(None, texts))
    return [f"{_NOTES[note.tag]}: {text}"] if text else []
