"""Tools that search and read the web."""

import asyncio
import contextlib
import os
import re
from dataclasses import replace
from typing import Annotated, Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import orjson

from svc.agents.tools.registry import TOOLS, AgentTool, ToolContext, ToolFailure, tool
from svc.body_parts import add_part
from svc.builtin.documents import replace_by_text
from svc.builtin.page import TEXT_BYTES as _TEXT_BYTES
from svc.errors import UpstreamFault
from svc.inference.formats.hosted_search import NAME, USED_UP, HostedSearch
from svc.inference.web_search import QUERY_LENGTH, Result, SearchCall
from svc.outbound.errors import OutboundError
from svc.shapes import text

_FETCH_SECONDS = 20.0
_PAGE_BYTES = 2 * 1024 * 1024
_FILE_BYTES = 8 * 1024 * 1024
_NAME_CHARACTERS = 200
_MOST_REDIRECTS = 3
_REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = ((b"accept", b"text/html, text/*;q=0.9, application/json;q=0.9, application/pdf;q=0.9, */*;q=0.1"),)
_HTML = re.compile(r"(?i)\s*(?:<!--.{0,1000}?-->\s*)?<(?:!doctype html|html)\b", re.DOTALL)
_CHARSET = re.compile(rb"(?i)charset\s*=\s*[\"']?([\w-]{1,40})")
_ENCODINGS = re.compile(
    r"utf-?8|utf-16(?:le|be)?|iso-8859-\d{1,2}|windows-125\d|cp125\d|koi8-[ru]|shift[_-]jis|sjis|euc-(?:jp|kr)|"
    r"gb(?:2312|k|18030)|big5"
)
_MARKS = {b"\xef\xbb\xbf": "utf-8", b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


@tool("Searches the web: up to 8 results, each with title, url, snippet and date.", "search", by_others=True)
async def search_web(
    context: ToolContext, query: Annotated[str, text(QUERY_LENGTH, least=1, blank=False).about("what to search for")]
) -> list[dict[str, Any]]:
    return _numbered(context, await _searched(context, query))


def hosted_search(search: HostedSearch) -> AgentTool:
    """Return web search for one answer to a request of Responses or Messages, with its limits."""
    uses = 0

    async def search_within(context: ToolContext, query: str) -> list[dict[str, Any]]:
        nonlocal uses
        if uses >= search.most_uses:
            raise ToolFailure(USED_UP)
        uses += 1
        found = [one for one in await _searched(context, query) if search.permits(one["url"] or "")]
        return _numbered(context, found)

    return replace(TOOLS["search_web"], name=NAME, function=search_within)


async def _searched(context: ToolContext, query: str) -> list[Result]:
    if (model := context.engines.catalog.search) is None:
        raise ToolFailure("The operator has removed the search engine.")
    call = SearchCall(model, query, context.engines, context.payer)
    async with context.paying(call):
        try:
            return await call.make()
        except UpstreamFault as fault:
            raise ToolFailure(str(fault)) from None


def _numbered(context: ToolContext, found: list[Result]) -> list[dict[str, Any]]:
    return [{"number": context.sources.number(one["url"] or "", one["title"]), **one} for one in found]


@tool("Reads a public web page or PDF as Markdown, or a text file, 64 KiB.", "fetch", cuts_itself=True, by_others=True)
async def fetch_url(
    context: ToolContext, url: Annotated[str, text(2_000, least=8).about("http:// or https://")]
) -> dict[str, Any]:
    try:
        async with asyncio.timeout(_FETCH_SECONDS):
            page = await _fetched(context, url)
    except (OutboundError, TimeoutError, ValueError):
        # One text for every fault: it must not reveal which ports of the network are open.
        raise ToolFailure("This address cannot be read. Only public http and https pages can.") from None
    if page.content.startswith(b"%PDF-"):
        found = await _text_of_pdf(context, page)
    else:
        found = await _text_of(context, page)
    encoded = found["text"].encode()
    cut = encoded[:_TEXT_BYTES].decode("utf-8", "ignore")
    truncated = found["truncated"] or not page.is_whole or len(encoded) > _TEXT_BYTES
    title = found["title"] or page.name
    number = context.sources.number(page.url, title)
    return {"number": number, "url": page.url, "title": title, "text": cut, "truncated": truncated}


class _Page(NamedTuple):
    """What the last address of a chain of redirects has answered. It is longer than `content` unless `is_whole`."""

    url: str
    content_type: str
    content: bytes
    is_whole: bool

    @property
    def name(self) -> str:
        return unquote(urlsplit(self.url).path.rpartition("/")[2])[:_NAME_CHARACTERS]


async def _fetched(context: ToolContext, url: str) -> _Page:
    """Follow redirects. Each address is checked as the first one. Raises ToolFailure, OutboundError, ValueError."""
    for _ in range(1 + _MOST_REDIRECTS):
        url = urldefrag(url).url
        reply = await context.engines.guarded.send(
            "GET", url, _HEADERS, timeout_seconds=_FETCH_SECONDS, account_id=context.home.account_id
        )
        async with contextlib.aclosing(reply):
            location = reply.header(b"location")
            if reply.status in _REDIRECTS and location:
                url = urljoin(url, location)
                continue
            if reply.status >= 300:
                raise ToolFailure(f"The page answered with status {reply.status}.")
            content_type = reply.header(b"content-type")[:200].lower()
            most_bytes = _PAGE_BYTES if content_type.startswith("text/") else _FILE_BYTES
            chunks: list[bytes] = []
            while sum(map(len, chunks)) <= most_bytes and (chunk := await reply.more()):
                add_part(chunks, chunk)
            content = b"".join(chunks)
            return _Page(url, content_type, content[:most_bytes], len(content) <= most_bytes)
    raise ToolFailure(f"This address redirects more than {_MOST_REDIRECTS} times.")


async def _text_of(context: ToolContext, page: _Page) -> dict[str, Any]:
    """Return `title`, `text` and `truncated` of a page or a text."""
    content = await asyncio.to_thread(_decoded, page)
    if "\0" in content:
        raise ToolFailure(f"The content of this address is not text ({page.content_type}).")
    if "html" not in page.content_type and not _HTML.match(content):
        return {"title": "", "text": content, "truncated": False}
    try:
        order = {"html": content, "url": page.url}
        found: dict[str, Any] = orjson.loads(
            await context.pools["pages"].run(order, account_id=context.home.account_id)
        )
    except UpstreamFault:
        raise ToolFailure("This page cannot be read within the limits of time and memory.") from None
    return found


def _decoded(page: _Page) -> str:
    """Return the text in the encoding that its mark, its type or itself names, by default UTF-8."""
    for mark, encoding in _MARKS.items():
        if page.content.startswith(mark):
            return page.content.removeprefix(mark).decode(encoding, "replace")
    named = _CHARSET.search(page.content_type.encode()) or _CHARSET.search(page.content[:2_048])
    encoding = named[1].decode().lower() if named else "utf-8"
    # Browsers read Latin 1 as this superset. Not every codec of Python is fast, or one of text.
    encoding = "cp1252" if encoding in ("iso-8859-1", "latin1", "us-ascii", "ascii") else encoding
    return page.content.decode(encoding if _ENCODINGS.fullmatch(encoding) else "utf-8", "replace")


async def _text_of_pdf(context: ToolContext, page: _Page) -> dict[str, Any]:
    if not page.is_whole:
        raise ToolFailure(f"This PDF has over {_FILE_BYTES >> 20} MiB.")
    with context.media.spool() as file:
        await asyncio.to_thread(file.write, page.content)
        truncated = await replace_by_text(context.pools["documents"], file, context.home.account_id)
        written = await asyncio.to_thread(os.pread, file.fileno(), _TEXT_BYTES + 4, 0)
    return {"title": "", "text": written.decode("utf-8", "ignore"), "truncated": truncated}
