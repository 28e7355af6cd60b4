"""What a page costs its main thread, in CPU time: other programs on the machine do not change it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Page

_CATEGORIES = ["disabled-by-default-devtools.timeline", "__metadata"]


@asynccontextmanager
async def tasks(page: Page) -> AsyncIterator[list[float]]:
    """The tasks of the main thread meanwhile, in CPU milliseconds, the longest first; the list is filled at the end."""
    browser = page.context.browser
    assert browser is not None
    found: list[float] = []
    await browser.start_tracing(page=page, categories=_CATEGORIES)
    try:
        yield found
    finally:
        trace = json.loads(await browser.stop_tracing())["traceEvents"]
    main = {(event["pid"], event["tid"]) for event in trace if event.get("args", {}).get("name") == "CrRendererMain"}
    found += sorted(
        (event["tdur"] / 1000 for event in trace if _is_task(event) and (event["pid"], event["tid"]) in main), reverse=True
    )


def _is_task(event: dict[str, object]) -> bool:
    return event["name"] == "RunTask" and "tdur" in event
