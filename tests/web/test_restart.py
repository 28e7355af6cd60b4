"""The server stops in mid-stream and restarts: the page shows this and continues without a reload."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.support.browser import WITH_BROWSER, new_context, new_visitor, opened
from tests.support.browser_chat import say
from tests.support.model_server import ModelServer
from tests.support.server import RunningServer, free_port, running_server
from tests.support.waiting import until

pytestmark = WITH_BROWSER


TOLD = ["ERR_", "503", "502", "404"]


@pytest.mark.parametrize("end", ["terminated", pytest.param("killed", marks=pytest.mark.soak)])
async def test_restart_in_mid_stream_is_shown_and_the_chat_continues(
    tmp_path: Path, browser: Browser, end: str
) -> None:
    env = {"SVC_PORT": str(free_port())}
    async with running_server(tmp_path, env) as server:
        visitor = await asyncio.to_thread(new_visitor, server, model="builtin/script")
        async with new_context(browser, server, visitor, allow=TOLD) as context:
            await play(await opened(context), server, tmp_path, env, end)


async def play(page: Page, server: RunningServer, folder: Path, env: dict[str, str], end: str) -> None:
    await say(page, "say the first half\nwait 60000\nsay never")
    await expect(page.locator(".live")).to_contain_text("the first half")
    if end == "killed":
        server.kill()
        await expect(page.locator(".live")).to_contain_text("Reconnecting…")
    else:
        await server.stop()
    await expect(page.locator(".said-assistant .md")).to_have_text("the first half")
    async with running_server(folder, env):
        await expect(page.locator(".ending")).to_contain_text("This answer was interrupted")
        await expect(page.locator(".live")).to_have_count(0)
        if end == "killed":  # nobody knows how long it took
            await expect(page.locator(".said-assistant .facts")).to_have_text("script")
        await say(page, "say all is well")
        await expect(page.locator(".said-assistant:not(.live) .md").last).to_have_text("all is well")
        await page.reload()
        await expect(page.locator(".said-assistant .md").last).to_have_text("all is well")


async def test_restart_before_any_text_keeps_the_question(tmp_path: Path, browser: Browser) -> None:
    """The request is 503 then, and the page knows by a header that the question is stored."""
    env = {"SVC_PORT": str(free_port())}
    async with ModelServer() as models:
        catalog = f'[[providers]]\nname = "lab"\nbase_url = "{models.base_url}"\n[[providers.models]]\nid = "silent"\n'
        (tmp_path / "catalog.toml").write_text(catalog)
        env["SVC_CATALOG"] = str(tmp_path / "catalog.toml")
        async with running_server(tmp_path, env) as server:
            visitor = await asyncio.to_thread(new_visitor, server, model="lab/silent")
            async with new_context(browser, server, visitor, allow=TOLD) as context:
                page = await opened(context)
                await say(page, "Are you there?")
                await until(lambda: models.requests)
                assert await server.stop() == 0
                await expect(page.locator(".ending")).to_contain_text("This answer was interrupted")
                async with running_server(tmp_path, env):
                    await page.reload()
                    await expect(page.locator(".said-user")).to_contain_text("Are you there?")
                    await expect(page.locator(".ending")).to_contain_text("This answer was interrupted")
