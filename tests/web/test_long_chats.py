"""A chat beyond the context of its model: the line where the model's view begins, and the summary there."""

import asyncio

from playwright.async_api import Browser, expect

from tests.support.browser import WIDTHS, WITH_BROWSER, findings, new_visitor, signed_in
from tests.support.browser_chat import answered, say
from tests.support.model_server import ModelServer
from tests.support.server import RunningServer

pytestmark = [*WITH_BROWSER, WIDTHS]


async def test_line_where_the_view_begins_has_the_summary(server: RunningServer, browser: Browser, width: int) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model="mine/no-usage")
    async with ModelServer() as models, server.client(headers=visitor.headers) as client:
        provider = {"name": "mine", "base_url": models.base_url, "models": ["no-usage"]}
        assert (await client.post("/user/providers", json=provider)).status_code == 201
        path = f"/conversations/{(await client.post('/conversations', json={'title': 'Trains'})).json()['id']}"
        for number in range(8):
            for role in ("user", "assistant"):
                message = {"role": role, "content": f"{role} {number} " + "ninety words " * 200}
                assert (await client.post(f"{path}/messages", json=message)).status_code == 201
        async with signed_in(
            browser, server, f"/#/chat/{path.rpartition('/')[2]}", visitor=visitor, width=width
        ) as page:
            await expect(page.get_by_text("assistant 7 ")).to_be_visible()
            await expect(page.locator(".view-line")).to_have_count(0)
            await say(page, "When does it leave?")
            await answered(page, 9)
            stored = (await client.get(f"{path}/messages?limit=1")).json()["data"][0]
            first = stored["first_sent_message_id"]
            line = page.locator(".view-line")
            await page.locator(".chat-scroll").hover()
            while not await line.count():  # groups of messages are laid out when they are near
                await page.mouse.wheel(0, -400)
                await page.wait_for_timeout(100)
            await line.scroll_into_view_if_needed()
            await expect(line).to_contain_text("The model reads this chat from here on. Earlier messages")
            after = page.locator(".view-line + .message")
            await expect(after).to_have_attribute("data-id", first)
            assert not await findings(page)
            await line.get_by_role("button", name="Summarize earlier messages").click()
            await expect(line).to_contain_text("and a summary of the earlier messages")
            await expect(line.get_by_role("button", name="Summarize again")).to_be_enabled()
            await line.locator("summary").click()
            await expect(line.locator(".plain-text")).to_have_text("Hello, world!")
            await line.get_by_role("button", name="Edit summary").click()
            await line.get_by_role("textbox", name="Summary").fill("They looked for a train.")
            await line.get_by_role("button", name="Save").click()
            await expect(line.locator(".plain-text")).to_have_text("They looked for a train.")
            summary = (await client.get(path)).json()["summary"]
            assert summary["text"] == "They looked for a train."
            await say(page, "And back?")
            await answered(page, 10)
            assert "They looked for a train." in str(models.requests[-1].body["messages"][0]["content"])
            assert not await findings(page)
            await line.locator("summary").click()
            await line.get_by_role("button", name="Remove summary").click()
            await expect(line).to_contain_text("Earlier messages are too much for it")
            assert (await client.get(path)).json()["summary"] is None
