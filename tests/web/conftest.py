"""One browser and one server for each test module of the page."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.support.browser import chromium, new_context, signed_up
from tests.support.people import command
from tests.support.server import RunningServer, running_server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ada(server: RunningServer, browser: Browser) -> Any:
    """What the browser remembers of a pro account, to give to `new_context` as `storage_state`: only 10 an hour can sign up."""
    async with new_context(browser, server) as context:
        await signed_up(context, "ada@example.com")
        await asyncio.to_thread(command, server, "credit", "ada@example.com", "25")
        return await context.storage_state()
