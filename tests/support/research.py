"""A question whose answer needs the web: a model, a search engine and two pages on one loopback port.

The model `lab/analyst` searches, reads both pages, computes with Python, writes a report and answers with citations.

    async with research() as catalog:    # the catalog of a server that has them
        ask QUESTION with the TOOLS
"""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from tests.support.search_engine import answer_of
from tests.support.tool_server import Asked, http, scripted

QUESTION = "How much oil did the lighthouses of Norrholm and Utskär burn in a night of 1911? Write a short report."
TOOLS = ("search_web", "fetch_url", "run_python", "write_artifact")
PAGES = {
    "norrholm": ("Norrholm lighthouse in 1911", "The lamp was lit on all 365 nights. It burned 4,380 litres of oil."),
    "utskar": ("Utskär lighthouse in 1911", "Ice closed the sea, so it was lit on 244 nights. It burned 2,196 litres."),
}
CODE = 'a, b = 4380 / 365, 2196 / 244\nprint(f"Norrholm {a:.1f}, Utskär {b:.1f} litres a night")\na / b'
REPORT = "# Oil of two lighthouses, 1911\n\n- Norrholm: 12.0 litres a night\n- Utskär: 9.0 litres a night\n"
ANSWER = """| Lighthouse | Oil | Nights | Litres a night |
|:--|--:|--:|--:|
| Norrholm [1] | 4,380 | 365 | **12.0** |
| Utskär [2] | 2,196 | 244 | **9.0** |

Norrholm burned a third more in a night. Utskär was dark while ice closed the sea [2], so its year was cheaper by half.
The report is in `lighthouses.md`."""
PRICE_MICROS = 5_000  # of a search


def _rounds(origin: str) -> list[list[tuple[str, dict[str, Any]]]]:
    """The calls of the model, by the number of its turn."""
    return [
        [("search_web", {"query": "oil of Norrholm and Utskär lighthouses 1911"})],
        [("fetch_url", {"url": f"{origin}/{name}"}) for name in PAGES],
        [("run_python", {"code": CODE})],
        [("write_artifact", {"name": "lighthouses.md", "content": REPORT})],
    ]


def _turn(asked: Asked, origin: str) -> bytes:
    messages = asked.body["messages"]
    turn = sum(message["role"] == "assistant" for message in messages)
    rounds = _rounds(origin)
    calls = [
        {
            "index": index,
            "id": f"call_{turn}_{index}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
        }
        for index, (name, arguments) in enumerate(rounds[turn] if turn < len(rounds) else ())
    ]
    delta: dict[str, Any] = {"tool_calls": calls} if calls else {"content": ANSWER}
    chunks = [(delta, None), ({}, "tool_calls" if calls else "stop")]
    lines = [
        json.dumps({"choices": [{"index": 0, "delta": one, "finish_reason": reason}]}, ensure_ascii=False)
        for one, reason in chunks
    ]
    return http("".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode(), content_type="text/event-stream")


def _answer(asked: Asked, origin: str) -> bytes:
    if asked.verb == "POST":
        return _turn(asked, origin)
    if asked.path.startswith("/search"):
        found = [(title, f"{origin}/{name}", text[:40] + "…", "2024-05-01") for name, (title, text) in PAGES.items()]
        return http(json.dumps(answer_of("searxng", found)).encode())
    title, text = PAGES[asked.path.strip("/")]
    page = f"<!doctype html><html><head><title>{title}</title></head><body><main><p>{text}</p></main></body></html>"
    return http(page.encode(), content_type="text/html; charset=utf-8")


@contextlib.asynccontextmanager
async def research() -> AsyncIterator[str]:
    """Serve all of it; the value is a catalog."""
    async with scripted(lambda asked: _answer(asked, origin)) as server:
        origin = server.url.removesuffix("/mcp").replace("127.0.0.1", "localhost")
        yield f"""
[search]
engine = "searxng"
base_url = "{origin}"
micros_per_search = {PRICE_MICROS}

[[providers]]
name = "lab"
base_url = "{origin}/v1"
models = [{{ id = "analyst", capabilities = ["tools"] }}]
"""
