"""The model picker with an operator's catalog."""

from playwright.async_api import Browser, expect

from tests.support.browser import WITH_BROWSER, signed_in
from tests.support.mail_server import MailBox
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER


async def test_model_picker_and_settings_list_a_model_once_without_its_aliases(
    browser: Browser, equipped: tuple[RunningServer, MailBox]
) -> None:
    async with signed_in(browser, equipped[0]) as page:
        await page.get_by_role("button", name="Model:").click()
        await page.get_by_role("combobox", name="Search models").fill("gpt")
        await expect(page.get_by_role("option")).to_have_count(1)
        await expect(page.get_by_role("option")).to_contain_text("gpt-large")
        await page.goto("/#/settings")
        await expect(page.locator("option", has_text="lab/gpt-large").first).to_be_attached()
        await expect(page.locator("option", has_text="gpt-5")).to_have_count(0)
