"""Tools that search and read the web."""

import asyncio
import contextlib
from typing import Annotated, Any

from svc.agents.tools.registry import ToolContext, ToolFailure, tool
from svc.errors import UpstreamFault
from svc.inference.web_search import QUERY_LENGTH, SearchCall
from svc.outbound.errors import OutboundError
from svc.shapes import text

_READ_BYTES = 64 * 1024
_FETCH_SECONDS = 20.0


@tool("Searches the web: up to 8 results, each with title, url, snippet and date.", "search")
async def search_web(
    context: ToolContext, query: Annotated[str, text(QUERY_LENGTH, least=1, blank=False).about("what to search for")]
) -> list[dict[str, str | None]]:
    if (model := context.engines.catalog.search) is None:
        raise ToolFailure("The operator has removed the search engine.")
    call = SearchCall(model, query, context.engines, context.payer)
    async with context.paying(call):
        try:
            return await call.make()
        except UpstreamFault as fault:
            raise ToolFailure(str(fault)) from None


@tool("Reads a public web page or text file, 64 KiB.", "fetch", cuts_itself=True)
async def fetch_url(
    context: ToolContext, url: Annotated[str, text(2_000, least=8).about("http:// or https://")]
) -> dict[str, Any]:
    headers = ((b"accept", b"text/*, application/json"),)
    content = b""
    try:
        async with asyncio.timeout(_FETCH_SECONDS):
            reply = await context.engines.guarded.send(
                "GET", url, headers, timeout_seconds=_FETCH_SECONDS, account_id=context.home.account_id
            )
            async with contextlib.aclosing(reply):
                while len(content) < _READ_BYTES and (chunk := await reply.more()):
                    content += chunk
    except (OutboundError, TimeoutError):
        # One text for every fault: it must not reveal which ports of the network are open.
        raise ToolFailure("This address cannot be read. Only public http and https pages can.") from None
    content_type = reply.header(b"content-type")[:200]
    if b"\0" in content:
        raise ToolFailure(f"The content of this address is not text ({content_type}).")
    page = content[:_READ_BYTES].decode("utf-8", "replace")
    return {"status": reply.status, "content_type": content_type, "text": page}
