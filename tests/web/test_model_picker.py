"""The model picker with an operator's catalog."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.support.browser import WITH_BROWSER, signed_in
from tests.support.server import running_server

pytestmark = [*WITH_BROWSER, pytest.mark.slow]
CATALOG = """
[[providers]]
name = "lab"
base_url = "http://127.0.0.1:9/v1"
models = [{ id = "gpt-large", aliases = ["gpt-5"] }]
"""


async def test_model_picker_and_settings_list_a_model_once_without_its_aliases(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "catalog.toml").write_text(CATALOG)
    settings = {"SVC_CATALOG": str(tmp_path / "catalog.toml")}
    async with running_server(tmp_path, settings) as server, signed_in(browser, server) as page:
        await page.get_by_role("button", name="Model:").click()
        await page.get_by_role("combobox", name="Search models").fill("gpt")
        await expect(page.get_by_role("option")).to_have_count(1)
        await expect(page.get_by_role("option")).to_contain_text("gpt-large")
        await page.goto("/#/settings")
        await expect(page.locator("option", has_text="lab/gpt-large").first).to_be_attached()
        await expect(page.locator("option", has_text="gpt-5")).to_have_count(0)
