"""What the tests of the page do in a chat."""

from playwright.async_api import Page


async def choose_model(page: Page, name: str) -> None:
    """Chooses the first model whose id holds `name`."""
    await page.get_by_role("button", name="Model:").click()
    await page.get_by_role("combobox", name="Search models").fill(name)
    await page.keyboard.press("Enter")


async def say(page: Page, text: str) -> None:
    """Sends a message."""
    await page.get_by_label("Message", exact=True).fill(text)
    await page.keyboard.press("Enter")


async def answered(page: Page, times: int = 1) -> None:
    """Waits until so many answers stand there, the last one whole."""
    await page.locator(".said-assistant:not(.live)").nth(times - 1).wait_for()
