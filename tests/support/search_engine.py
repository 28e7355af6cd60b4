"""A search engine on loopback, in the documented JSON of SearXNG, Brave or Tavily.

async with SearchEngine("brave") as engine:
    engine.catalog(micros_per_search=5_000)     # a [search] table that names it
    engine.requests[-1].target, .headers, .body
    engine.status, engine.answer = 429, b"..."  # what it answers from now on
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import orjson

KEY = "sk-search-canary-0123456789"
FOUND = [
    ("Lighthouses", "https://light.example/a", "A lighthouse is a tower.", "2026-03-04T00:00:00"),
    ("Fog & horns", "https://fog.example/b?x=1", "Fog horns sound.", None),
]


def answer_of(engine: str, found: list[tuple[Any, Any, Any, Any]]) -> dict[str, Any]:
    """The documented answer with these titles, URLs, snippets and dates."""
    if engine == "brave":
        entries = [
            {
                "type": "search_result",
                "title": title,
                "url": url,
                "description": text,
                "page_age": date,
                "language": "en",
            }
            for title, url, text, date in found
        ]
        return {"type": "search", "query": {"original": "q"}, "web": {"type": "search", "results": entries}}
    if engine == "tavily":
        entries = [
            {"title": title, "url": url, "content": text, "score": 0.9, "raw_content": None, "published_date": date}
            for title, url, text, date in found
        ]
        return {"query": "q", "answer": None, "images": [], "results": entries, "response_time": 1.1}
    entries = [
        {"title": title, "url": url, "content": text, "publishedDate": date, "engine": "wikipedia", "score": 1.0}
        for title, url, text, date in found
    ]
    return {"query": "q", "number_of_results": 0, "results": entries, "answers": [], "unresponsive_engines": []}


@dataclass
class Asked:
    """A request as it arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: Any

    @property
    def query(self) -> str:
        """The text that was searched for."""
        text: str = self.body["query"] if self.body else parse_qs(urlsplit(self.target).query)["q"][0]
        return text


class SearchEngine:
    """The server. `play` replaces the whole answer."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.status = 200
        self.answer = orjson.dumps(answer_of(engine, FOUND))
        self.requests: list[Asked] = []
        self.play: Callable[[asyncio.StreamWriter], Awaitable[None]] | None = None
        self.base_url = ""

    def catalog(self, micros_per_search: int = 0) -> str:
        key = "" if self.engine == "searxng" else f'api_key = "{KEY}"'
        lines = ("[search]", f'engine = "{self.engine}"', f'base_url = "{self.base_url}"', key)
        return "\n".join((*lines, f"micros_per_search = {micros_per_search}", ""))

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                method, target, _ = first.split(" ")
                self.requests.append(Asked(method, target, headers, orjson.loads(body) if body else None))
                if self.play is not None:
                    await self.play(writer)
                    break
                head = b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
                writer.write(head % (self.status, len(self.answer)) + self.answer)
                await writer.drain()
        writer.close()
