"""The first contact: models for trying out, suggestions that fit the model, and the way to a model server."""

import asyncio
import os
import subprocess
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, Error, expect

from tests.support.browser import (
    WIDTHS,
    WITH_BROWSER,
    Visitor,
    chromium,
    findings,
    new_visitor,
    signed_in,
)
from tests.support.browser_chat import choose_model
from tests.support.model_server import ModelServer
from tests.support.pages import EXAMPLES
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER


def connect(server: RunningServer, visitor: Visitor, address: str) -> None:
    body = {"name": "mine", "base_url": address, "models": ["zephyr"]}
    with httpx.Client(
        base_url=server.base_url, verify=server.tls or False, headers=visitor.headers, trust_env=False
    ) as client:
        assert client.post("/user/providers", json=body).status_code == 201


async def test_connected_models_come_before_those_for_trying_out_and_have_their_suggestions(
    server: RunningServer, browser: Browser
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    async with ModelServer() as models:
        await asyncio.to_thread(connect, server, visitor, models.base_url)
        async with signed_in(browser, server, visitor=visitor) as page:
            await page.get_by_role("button", name="Model:").click()
            entries = page.get_by_role("listbox", name="Choose a model").locator("li")
            await expect(entries.nth(1)).to_contain_text("zephyr")
            await expect(entries.nth(2)).to_have_text("For trying out")
            texts = await entries.all_inner_texts()
            assert all("builtin" in text for text in texts[3:]) and len(texts) > 5
            assert await findings(page) == []
            await page.keyboard.press("ArrowDown")
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("button", name="Model: mine/zephyr")).to_be_visible()
            await expect(page.get_by_role("button", name="Plan a weekend in Lisbon")).to_be_visible()
            for name, suggestion in (("assistant-paid", "What is 12 * (3 + 4)?"), ("script", "say Hello!")):
                await choose_model(page, name)
                await expect(page.get_by_role("button", name=suggestion)).to_be_visible()
                await expect(page.get_by_role("button", name="Plan a weekend in Lisbon")).to_have_count(0)
            await expect(page.get_by_role("region", name="Connect a language model")).to_have_count(0)


@WIDTHS
async def test_card_leads_to_connecting_a_model_server(server: RunningServer, browser: Browser, width: int) -> None:
    async with signed_in(browser, server, width=width) as page:
        card = page.get_by_role("region", name="Connect a language model")
        for program, command in (("Ollama", "ollama pull llama3.2"), ("LM Studio", "lms server start")):
            await card.get_by_role("link", name=program).click()
            dialog = page.get_by_role("dialog", name=f"Connect {program}")
            await expect(dialog).to_contain_text(command)
            await dialog.get_by_role("button", name="Check again").click()
            await expect(dialog.get_by_role("status")).to_contain_text("found")
            assert await findings(page) == []
            await dialog.get_by_role("button", name="It runs on another computer").click()
            await expect(page.get_by_label("Base URL")).to_have_value(
                "http://192.168.1.10:11434/v1" if program == "Ollama" else "http://192.168.1.10:1234/v1"
            )
            await page.get_by_role("button", name="Cancel").click()
            await page.goto("/#/chat")
        await card.get_by_role("link", name="Your own provider").click()
        await expect(page.get_by_role("dialog", name="Add provider")).to_be_visible()


@pytest.mark.needs("certutil")
async def test_chromium_trusts_the_certificate_after_the_documented_command(
    server: RunningServer, browser: Browser, tmp_path: Path
) -> None:
    page = await browser.new_page()
    with pytest.raises(Error, match="ERR_CERT_AUTHORITY_INVALID"):
        await page.goto(server.base_url)
    await page.close()
    env = {**os.environ, "HOME": str(tmp_path)}
    subprocess.run(["bash", "-euc", EXAMPLES["trust-chrome"]], cwd=server.data_dir.parent, env=env, check=True)
    async with chromium(HOME=str(tmp_path)) as trusting:
        page = await trusting.new_page()
        await page.goto(server.base_url)
        await expect(page.get_by_role("heading", name="Create your account")).to_be_visible()
