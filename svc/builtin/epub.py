"""The texts of EPUB books and of HTML."""

import posixpath
import re
from html.parser import HTMLParser
from urllib.parse import unquote

from svc.builtin.archive import Archive, TextPage

_HIDDEN = frozenset(("script", "style", "template", "noscript", "svg", "head"))
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "body", "br", "dd", "div", "dl", "dt", "fieldset", "figcaption"),
        *("figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol"),
        *("option", "p", "pre", "section", "table", "tr", "ul"),
    )
)


def epub(content: bytes) -> list[TextPage] | None:
    archive = Archive(content)
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


_ROW = "\r"  # the beginning of a row of a table, until the end


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
            self.parts.append({"p": "\n\n", "tr": f"\n{_ROW}"}.get(tag, "\n"))
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
    # Many programs put a paragraph into each cell of a table. Its cells stay in one line.
    text = re.sub(r"\t\s+", "\t", re.sub(r"(\S)[ \n]+\t", r"\1\t", "".join(parser.parts))).replace(_ROW, "")
    lines = [line.strip(" ") for line in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.strip("\t") for line in lines)).strip()
