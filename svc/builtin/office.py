"""The texts of DOCX, PPTX, XLSX, ODT and EPUB files, which are XML in ZIP archives, and of HTML.

zipfile and expat are enough to read texts, comments, notes and cached values. The libraries for these formats also
write files: they have 20 MB, and their parser needs more memory for a hostile file.
"""

import io
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.parsers import expat

_MOST_MEMBERS = 10_000
_MEMBER_BYTES = 64 * 1024 * 1024
_DEPTH = 500
_DATE = re.compile(r"[ymdhs]", re.IGNORECASE)
_NO_DATE = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')
_HIDDEN = frozenset(("script", "style", "template", "noscript", "svg", "head"))
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "body", "br", "dd", "div", "dl", "dt", "fieldset", "figcaption"),
        *("figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol"),
        *("option", "p", "pre", "section", "table", "tr", "ul"),
    )
)


class Broken(Exception):
    """An archive is damaged, or too large when it is unpacked."""


class TextPage(NamedTuple):
    """The text of a page or a slide, with its number from 1, or of a file without pages (None)."""

    number: int | None
    text: str


class _Package:
    """A ZIP archive whose XML members are read within limits."""

    def __init__(self, content: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except (zipfile.BadZipFile, ValueError, OSError) as error:
            raise Broken from error
        self.names = frozenset(self._zip.namelist()[:_MOST_MEMBERS])
        self._left = _MEMBER_BYTES * 2

    def read(self, name: str) -> bytes:
        try:
            with self._zip.open(name) as member:
                content = member.read(min(_MEMBER_BYTES, self._left) + 1)
        except (zipfile.BadZipFile, KeyError, RuntimeError, NotImplementedError, OSError, EOFError) as error:
            raise Broken from error
        self._left -= len(content)
        if len(content) > _MEMBER_BYTES or self._left < 0:
            raise Broken
        return content

    def xml(self, name: str) -> ElementTree.Element:
        """Return the tree of a member. It may declare no entities, and has a limited depth. Raises Broken."""
        builder, depth = ElementTree.TreeBuilder(), 0
        parser = expat.ParserCreate(namespace_separator="}")

        def start(tag: str, attributes: dict[str, str]) -> None:
            nonlocal depth
            depth += 1
            if depth > _DEPTH:
                raise Broken
            # Of `id` and `r:id` the second remains, which is a reference.
            names = sorted(attributes, key=lambda name: "}" in name)
            builder.start(_local(tag), {_local(name): attributes[name] for name in names})

        def end(tag: str) -> None:
            nonlocal depth
            depth -= 1
            builder.end(_local(tag))

        def refuse(*_: object) -> None:
            raise Broken

        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.CharacterDataHandler = builder.data
        parser.EntityDeclHandler = refuse
        try:
            parser.Parse(self.read(name), True)
            return builder.close()
        except (expat.ExpatError, AssertionError, IndexError) as error:
            raise Broken from error

    def related(self, name: str) -> dict[str, tuple[str, str]]:
        """Return the members to which a member of an Office file refers: by id, their kind and their name."""
        folder, base = posixpath.split(name)
        rels = f"{folder}/_rels/{base}.rels".lstrip("/")
        found: dict[str, tuple[str, str]] = {}
        if rels in self.names:
            for one in self.xml(rels):
                target = one.get("Target", "")
                path = target[1:] if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
                if path in self.names:
                    found[one.get("Id", "")] = (one.get("Type", "").rpartition("/")[2], path)
        return found


def _local(name: str) -> str:
    return name.rpartition("}")[2]


# --- Word


def docx(content: bytes) -> list[TextPage] | None:
    archive = _Package(content)
    name = _main(archive, "word/document.xml", "word/document2.xml")
    if name is None:
        return None
    parts = [_word_text(archive.xml(name))]
    titles = {"footnotes": "Footnotes", "endnotes": "Endnotes", "comments": "Comments"}
    for kind, path in sorted(archive.related(name).values()):
        if kind in titles and (notes := _word_text(archive.xml(path)).strip()):
            parts.append(f"# {titles[kind]}\n{notes}")
    return [TextPage(None, "\n\n".join(parts))]


def _main(archive: _Package, *names: str) -> str | None:
    return next((name for name in names if name in archive.names), None)


def _word_text(root: ElementTree.Element) -> str:
    lines: list[str] = []
    for element in _walk(root, skip=("Fallback", "del", "moveFrom", "sdtPr")):
        if element.tag == "p":
            style = element.find("pPr/pStyle")
            level = re.fullmatch(r"(?i)heading ?(\d)|title()", style.get("val", "")) if style is not None else None
            text = "".join(_word_runs(element)).strip()
            lines.append(f"{'#' * int(level[1] or '1')} {text}" if level and text else text)
            lines += [""] if level is None and text else []
        elif element.tag == "tr":
            cells = [" ".join("".join(_word_runs(cell)).split()) for cell in element.findall("tc")]
            lines.append("\t".join(cells))
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
        elif child.tag not in ("Fallback", "del", "moveFrom", "pPr", "rPr", "instrText"):
            yield from _word_runs(child)
            yield " " if child.tag == "p" else ""


# --- PowerPoint


def pptx(content: bytes) -> list[TextPage] | None:
    archive = _Package(content)
    name = _main(archive, "ppt/presentation.xml")
    if name is None:
        return None
    related = archive.related(name)
    slides = [related.get(one.get("id", "")) for one in archive.xml(name).iter("sldId")]
    pages = []
    for number, path in enumerate((found[1] for found in slides if found), 1):
        texts = [_slide_text(archive.xml(path))]
        for kind, note in sorted(archive.related(path).values()):
            if kind == "notesSlide":
                texts.append(_slide_text(archive.xml(note)))
            elif kind == "comments":
                texts += ["".join(one.itertext()) for one in archive.xml(note).iter("text")]
        pages.append(TextPage(number, "\n\n".join(text for text in texts if text.strip())))
    return pages


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


def xlsx(content: bytes) -> list[TextPage] | None:
    archive = _Package(content)
    name = _main(archive, "xl/workbook.xml")
    if name is None:
        return None
    book, related = archive.xml(name), archive.related(name)
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
                lines += [f"Comment: {text}" for text in texts if text]
        parts.append("\n".join(lines))
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


# --- OpenDocument and EPUB


def odt(content: bytes) -> list[TextPage] | None:
    archive = _Package(content)
    if "content.xml" not in archive.names or "META-INF/container.xml" in archive.names:
        return None
    lines: list[str] = []
    body = archive.xml("content.xml").find("body")
    _open_text(body if body is not None else ElementTree.Element("body"), lines)
    return [TextPage(None, "\n".join(lines))]


def _open_text(element: ElementTree.Element, lines: list[str]) -> None:
    for child in element:
        if child.tag in ("h", "p"):
            text = "".join(_open_runs(child)).strip()
            level = child.get("outline-level", "1")
            lines += [f"{'#' * int(level if level in '123456' else 1)} {text}"] if child.tag == "h" else [text, ""]
        elif child.tag == "table-row":
            lines.append("\t".join(" ".join("".join(_open_runs(cell)).split()) for cell in child))
        elif child.tag not in ("tracked-changes", "forms", "sequence-decls"):
            _open_text(child, lines)


def _open_runs(element: ElementTree.Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if child.tag in ("s", "tab", "line-break"):
            yield {"tab": "\t", "s": " "}.get(child.tag, "\n")
        elif child.tag == "note":
            yield f" [{''.join(''.join(_open_runs(body)) for body in child.findall('note-body')).strip()}] "
        elif child.tag == "annotation":
            yield f" [{' '.join(''.join(_open_runs(one)) for one in child.iter('p')).strip()}] "
        else:
            yield from _open_runs(child)
            yield " " if child.tag == "p" else ""
        yield child.tail or ""


def epub(content: bytes) -> list[TextPage] | None:
    archive = _Package(content)
    if "META-INF/container.xml" not in archive.names:
        return None
    path = next((one.get("full-path", "") for one in archive.xml("META-INF/container.xml").iter("rootfile")), "")
    package = archive.xml(path)
    items = {one.get("id"): one for one in package.iter("item")}
    texts = []
    for reference in package.iter("itemref"):
        item = items.get(reference.get("idref"))
        if item is None or "nav" in item.get("properties", "").split():
            continue
        name = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(item.get("href", ""))))
        if name in archive.names:
            texts.append(html_text(archive.read(name).decode("utf-8", "replace")))
    return [TextPage(None, "\n\n".join(texts))]


# --- HTML


class _Text(HTMLParser):
    """Collects the visible text of HTML, a line for each block."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = self._pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in _HIDDEN
        self._pre += tag == "pre"
        if tag in _BLOCKS:
            self.parts.append("\n\n" if tag == "p" else "\n")
        if tag[0] == "h" and tag[1:].isdigit():
            self.parts.append(f"{'#' * int(tag[1:2])} ")
        elif tag in ("td", "th"):
            self.parts.append("\t")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN:
            self._hidden = max(0, self._hidden - 1)
        self._pre = max(0, self._pre - (tag == "pre"))
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data if self._pre else re.sub(r"\s+", " ", data))


def html_text(html: str) -> str:
    """Return the text of a page or a chapter. Its headings begin with #, as in Markdown."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    lines = [line.strip(" ") for line in "".join(parser.parts).split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.strip("\t") for line in lines)).strip()


READERS: tuple[Callable[[bytes], list[TextPage] | None], ...] = (docx, pptx, xlsx, epub, odt)
