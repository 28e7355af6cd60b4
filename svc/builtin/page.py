"""The readable text of a web page as Markdown, made in a helper process (processes.py), because pages may be hostile.

HTML -> a tree of elements, without scripts, forms, menus and what is hidden -> its main part -> Markdown with links
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urldefrag, urljoin

CPU_SECONDS = 10
MEMORY_BYTES = 512 * 1024 * 1024
TEXT_BYTES = 64 * 1024
_TITLE_CHARACTERS = 300
_MOST_DEPTH = 100
_MOST_ELEMENTS = 100_000
_URL_LENGTH = 2_000
# A part with at least this share of the page's text is the page itself, whatever its tag says.
_MAIN_SHARE = 0.25
_ARTICLE_SHARE = 0.75  # beside a smaller article there are comments


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VOID = _words("area base br col embed hr img input link meta param source track wbr")
_LEFT_OUT = _words(
    "script style noscript template svg canvas iframe object embed audio video form button select textarea "
    "input dialog nav aside footer head title map menu"
)
_ROLES = _words("navigation banner contentinfo search complementary menu menubar toolbar dialog alert")
# Words of classes and ids of parts that are no content.
_NAMES = re.compile(
    r"(?i)(?:^|[\s_-])(?:nav(?:bar|igation|header|footer)?|menu(?:bar)?|mainmenu|sidebar|sphinxsidebar|breadcrumbs?|"
    r"cookie(?:s|-?banner|-?consent)?|footer|share|social|advert(?:isement)?|ads?|promo|skip(?:-?link|nav)?|headerlink|"
    r"newsletter|subscribe|pagination|pager|related|toolbar|topbar|leftbar|editsection|printfooter|mw-jump-link|"
    r"visually-?hidden|sr-only|patternLeftBar|patternBottomBar|patternTopBar|patternToolBar)(?:$|[\s_-])"
)
_HIDDEN = re.compile(r"(?i)display\s*:\s*none|visibility\s*:\s*hidden")
_BLOCKS = _words(
    "address article blockquote body caption center details dd div dl dt fieldset figcaption figure h1 h2 h3 "
    "h4 h5 h6 header hgroup hr html legend li main ol p pre section summary table tbody td tfoot th thead tr "
    "ul"
)
# An element that begins ends an open one of these, unless one of the others is between them.
_ENDS = {
    "li": (("li",), ("ul", "ol")),
    "dt": (("dt", "dd"), ("dl",)),
    "dd": (("dt", "dd"), ("dl",)),
    "tr": (("tr", "td", "th"), ("table",)),
    "td": (("td", "th"), ("tr", "table")),
    "th": (("td", "th"), ("tr", "table")),
    **dict.fromkeys(
        _BLOCKS - {"li", "dt", "dd", "tr", "td", "th", "body", "html"}, (("p",), ("td", "th", "li", "div"))
    ),
}
_SPACES = re.compile(r"\s+")
_MANY_LINES = re.compile(r"\n{3,}")


@dataclass(eq=False, slots=True)
class Element:
    tag: str
    attributes: dict[str, str]
    children: "list[Element | str]" = field(default_factory=list)

    def each(self) -> "Iterator[Element]":
        for child in self.children:
            if isinstance(child, Element):
                yield child
                yield from child.each()

    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text() for child in self.children)


class _Tree(HTMLParser):
    """Builds `root` from HTML. Elements nested beyond _MOST_DEPTH are joined with the one around them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("html", {})
        self._open = [self.root]
        self._beyond = 0
        self._count = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        ended, between = _ENDS.get(tag, ((), ()))
        for depth in range(len(self._open) - 1, 0, -1):
            if (name := self._open[depth].tag) in between:
                break
            if name in ended:
                del self._open[depth:]
                if tag != "tr":
                    break
        self._count += 1
        if tag not in _VOID and (len(self._open) >= _MOST_DEPTH or self._count > _MOST_ELEMENTS):
            self._beyond += 1
            return
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if self._beyond:
            self._beyond -= 1
            return
        for depth in range(len(self._open) - 1, 0, -1):
            if self._open[depth].tag == tag:
                del self._open[depth:]
                return

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def _is_left_out(element: Element) -> bool:
    given = element.attributes
    if element.tag in _LEFT_OUT or given.get("role", "").lower() in _ROLES or "hidden" in given:
        return True
    if given.get("aria-hidden") == "true" or _HIDDEN.search(given.get("style", "")):
        return True
    return element.tag != "body" and any(_NAMES.search(given.get(name, "")) for name in ("class", "id"))


def _pruned(element: Element, whole: int) -> None:
    """Remove the parts of an element that are no content, and blocks that are mostly links. `whole` is the length of
    the page's text.
    """
    kept: list[Element | str] = []
    for child in element.children:
        if isinstance(child, Element):
            if _is_left_out(child) and (
                child.tag in ("script", "style", "head", "title") or _length(child) < _MAIN_SHARE * whole
            ):
                continue
            _pruned(child, whole)
            if _is_menu(child):
                continue
        kept.append(child)
    element.children = kept


def _has_blocks(element: Element) -> bool:
    return element.tag in _BLOCKS or any(one.tag in _BLOCKS for one in element.each())


def _length(element: Element) -> int:
    return len(_SPACES.sub(" ", element.text()))


def _is_menu(element: Element) -> bool:
    """Return whether a block is a list of short links."""
    if element.tag not in ("ul", "ol", "div", "table", "header", "section", "center", "p"):
        return False
    links = [len(one.text().strip()) for one in element.each() if one.tag == "a" and "href" in one.attributes]
    if len(links) < 3 or any(child.tag in ("h1", "h2", "h3", "pre") for child in element.each()):
        return False
    return sum(links) > 0.8 * _length(element) and sum(links) / len(links) < 30


def _main(root: Element) -> Element:
    """Return the element that has the content."""
    whole = _length(root)
    mains = [one for one in root.each() if one.tag == "main" or one.attributes.get("role") == "main"]
    articles = [one for one in root.each() if one.tag == "article"]
    for found, share in ((mains, _MAIN_SHARE), (articles, _ARTICLE_SHARE)):
        if len(found) == 1 and _length(found[0]) >= share * whole:
            return found[0]
    return root


def _is_of_data(element: Element) -> bool:
    """Return whether an element can be in a table of data: a row of cells, or without blocks."""
    if element.tag in ("td", "th", "caption"):
        return not any(one.tag in _BLOCKS - {"p", "div", "center"} for one in element.each())
    if element.tag in ("table", "thead", "tbody", "tfoot", "tr"):
        parts = ("thead", "tbody", "tfoot", "tr", "td", "th", "caption", "colgroup", "col")
        return all(not one.strip() if isinstance(one, str) else one.tag in parts for one in element.children)
    return True


class _Writer:
    """Writes an element as Markdown. `base` is the address of the page, for its links."""

    def __init__(self, base: str) -> None:
        self._base = base

    def inline(self, element: Element) -> str:
        return "".join(_SPACES.sub(" ", one) if isinstance(one, str) else self._inline(one) for one in element.children)

    def _inline(self, element: Element) -> str:
        tag = element.tag
        if tag == "br":
            return "\n"
        if tag == "img":
            alt = _SPACES.sub(" ", element.attributes.get("alt", ""))
            return alt if any(map(str.isalnum, alt)) else ""
        if tag in _BLOCKS:
            return f" {self.inline(element).strip()} "
        if tag in ("code", "kbd", "samp", "tt") and "\n" not in (text := element.text().strip("\n")) and text:
            return f"`{text}`"
        text = self.inline(element)
        bare = text.strip()
        if not bare:
            return text
        before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        if tag == "a" and (url := self._url(element.attributes.get("href", ""))) is not None:
            return f"{before}[{bare}]({url}){after}"
        mark = {"b": "**", "strong": "**", "i": "*", "em": "*", "del": "~~", "s": "~~"}.get(tag, "")
        return f"{before}{mark}{bare}{mark}{after}"

    def _url(self, address: str) -> str | None:
        """Return the absolute address of a link, or None for one within the page and for scripts."""
        try:
            url = urljoin(self._base, address.strip())
        except ValueError:
            return None
        if not url.startswith(("http://", "https://")) or len(url) > _URL_LENGTH or not url.isprintable():
            return None
        within = urldefrag(url).url == urldefrag(self._base).url
        return None if within else url.replace(" ", "%20").replace("(", "%28").replace(")", "%29")

    def blocks(self, element: Element) -> Iterator[str]:
        """Yield the blocks in an element. Text and inline elements between them are paragraphs."""
        line: list[Element | str] = []
        for child in element.children:
            if isinstance(child, str) or (
                child.tag not in _BLOCKS and not any(one.tag in _BLOCKS for one in child.each())
            ):
                line.append(child)
                continue
            yield from self._paragraph(line)
            line = []
            yield from self._block(child)
        yield from self._paragraph(line)

    def _paragraph(self, line: "list[Element | str]") -> Iterator[str]:
        lines = [one.strip() for one in self.inline(Element("p", {}, line)).split("\n")]
        if text := _MANY_LINES.sub("\n\n", "\n".join(lines)).strip():
            yield text

    def _block(self, element: Element) -> Iterator[str]:
        tag = element.tag
        if len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
            if text := _SPACES.sub(" ", self.inline(element)).strip():
                yield f"{'#' * int(tag[1])} {text}"
        elif tag == "pre":
            if text := element.text().strip("\n"):
                fence = "```" if "```" not in text else "~~~~"
                yield f"{fence}\n{text}\n{fence}"
        elif tag in ("ul", "ol"):
            yield from self._list(element, tag == "ol")
        elif tag == "blockquote":
            if text := "\n\n".join(self.blocks(element)):
                yield "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
        elif tag == "table" and (table := self._table(element)):
            yield table
        elif tag == "hr":
            yield "---"
        elif tag == "dd":
            yield "\n".join(
                f": {line}" if number == 0 else line
                for number, line in enumerate("\n\n".join(self.blocks(element)).split("\n"))
            )
        else:
            yield from self.blocks(element)

    def _list(self, element: Element, is_ordered: bool) -> Iterator[str]:
        items: list[str] = []
        for item in element.children:
            if text := "\n".join(self.blocks(Element("li", {}, [item]) if isinstance(item, str) else item)):
                mark = f"{len(items) + 1}. " if is_ordered else "- "
                items.append(mark + text.replace("\n", "\n" + " " * len(mark)))
        if items:
            yield "\n".join(items)

    def _table(self, element: Element) -> str:
        """Return a table of data, or nothing for one that lays out blocks."""
        if not all(map(_is_of_data, (element, *element.each()))):
            return ""
        rows = [
            [self._cell(cell) for cell in row.children if isinstance(cell, Element) and cell.tag in ("td", "th")]
            for row in element.each()
            if row.tag == "tr"
        ]
        rows = [row for row in rows if any(row)]
        width = max(map(len, rows), default=0)
        if len(rows) < 2 or width < 2:
            return ""
        lines = [f"| {' | '.join(row + [''] * (width - len(row)))} |" for row in rows]
        caption = next((self.inline(one).strip() for one in element.each() if one.tag == "caption"), "")
        return "\n".join([*([caption, ""] if caption else []), lines[0], "|---" * width + "|", *lines[1:]])

    def _cell(self, cell: Element) -> str:
        return _SPACES.sub(" ", self.inline(cell)).strip().replace("|", "\\|")


def read(html: str, url: str) -> dict[str, Any]:
    """Return the title and the text of a page, and whether the text is cut."""
    tree = _Tree()
    tree.feed(html)
    tree.close()
    root = tree.root
    found = {one.tag: one for one in reversed(list(root.each())) if one.tag in ("title", "base", "h1", "body")}
    title = next((text for tag in ("title", "h1") if tag in found and (text := _title(found[tag]))), "")
    body = found.get("body", root)
    _pruned(body, _length(body))
    base = urljoin(url, found["base"].attributes.get("href", "")) if "base" in found else url
    main, writer = _main(body), _Writer(base)
    blocks = [*writer.blocks(main)]
    headings = [text for one in body.each() if one.tag == "h1" and (text := _title(one))]
    if main is not body and headings and not any(one.tag == "h1" for one in main.each()):
        blocks = [f"# {headings[0]}", *blocks]  # it is above the main part
    encoded = "\n\n".join(blocks).encode("utf-8", "replace")
    return {
        "title": title[:_TITLE_CHARACTERS],
        "text": encoded[:TEXT_BYTES].decode("utf-8", "ignore"),
        "truncated": len(encoded) > TEXT_BYTES,
    }


def _title(element: Element) -> str:
    return _SPACES.sub(" ", element.text()).strip().encode("utf-8", "replace").decode()


def answer(order: dict[str, Any]) -> bytes:
    return json.dumps(read(order["html"], order["url"])).encode()
