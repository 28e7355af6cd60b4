"""Chat in a real browser: the first answer, streams that are stopped, retried, cut off, and everything that text can
bring.
"""

import asyncio

from playwright.async_api import Browser, Page, expect

from tests.support.browser import PASSWORD, WIDTHS, WITH_BROWSER, Visitor, findings, new_context, new_visitor, signed_in
from tests.support.browser_chat import (
    HELD,
    OVER,
    answered,
    choose_model,
    held_model,
    keep_conversation,
    refuse_once,
    say,
)
from tests.support.model_server import ModelServer
from tests.support.server import RunningServer

pytestmark = WITH_BROWSER

PAYLOADS = """<script>window.hit = 1</script><img src=x onerror="window.hit = 2">
[a](javascript:window.hit=3) [b](data:text/html,x) [c](vbscript:x) ![d](https://elsewhere.example/x.png)
<a href="javascript:window.hit=4">e</a> <iframe src="https://elsewhere.example"></iframe>
<style>body { display: none }</style> <svg onload="window.hit=5"> [f](https://elsewhere.example/"onmouseover="window.hit=6)
| <script>window.hit = 7</script> |
|---|
| <img src=x onerror=window.hit=8> |

```html"><img src=x onerror=window.hit=9>
</code></pre><script>window.hit = 10</script>
```
"""

# A spinner can have gone before a test that waits for the page looks for it.
SEES_SPINNER = """new MutationObserver(() => {
    window.seen ||= document.querySelector(".spinner")?.checkVisibility();
}).observe(document, {childList: true, subtree: true})"""


async def test_text_of_an_answer_runs_and_loads_nothing(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, model="echo") as page:
        await say(page, PAYLOADS)
        await answered(page)
        await page.get_by_role("link", name="<script>").first.wait_for()  # the title at the side
        assert await page.evaluate("window.hit") is None
        inside = page.locator(".said-assistant .md")
        assert await inside.locator("script, iframe, style, img, svg:not(.icon)").count() == 0
        links = await inside.locator("a").evaluate_all(
            "links => links.map(link => [link.protocol, link.rel, link.target])"
        )
        assert links and all(link == ["https:", "noopener noreferrer", "_blank"] for link in links)
        assert await page.locator("body").is_visible()


async def test_answer_is_regenerated_stopped_and_edited(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, model="script", allow=["409"]) as page:
        whole, text = page.locator(".said-assistant:not(.live)"), page.locator(".said-assistant:not(.live) .md")
        regenerate = page.get_by_role("button", name="Regenerate", exact=True)
        stop = page.get_by_role("button", name="Stop")
        await say(page, "say half\nwait 30000\nsay never")
        await expect(page.locator(".live")).to_contain_text("half")
        await stop.click()
        await expect(text).to_have_text("half")
        await edit_last(page, "say first part\nwait 500\nsay  and the rest")
        await expect(text).to_have_text("first part and the rest")
        await regenerate.click()
        await expect(page.locator(".live")).to_contain_text("first part")
        await stop.click()
        await expect(text).to_have_text("first part")
        await edit_last(page, "say second")
        await expect(text).to_have_text("second")
        await page.route("**/v1/chat/completions", lambda lost: None, times=1)
        await regenerate.click()
        await stop.click()  # before the first token
        await expect(text).to_have_text("second")
        answer = await whole.get_attribute("data-id")
        await regenerate.click()
        await expect(page.locator(f".said-assistant:not(.live):not([data-id={answer}]) .md")).to_have_text("second")
        await edit_last(page, "say third")
        await expect(text).to_have_text("third")
        await page.reload()
        await expect(page.locator(".said-user")).to_have_count(1)
        await expect(page.locator(".said-user .said")).to_have_text("say third")


@WIDTHS
async def test_questions_written_during_an_answer_are_sent_after_it(
    server: RunningServer, browser: Browser, width: int
) -> None:
    async with signed_in(browser, server, model="script", width=width, allow=["503"]) as page:
        queued, answers = page.locator(".queue li"), page.locator(".said-assistant:not(.live) .md")
        later = page.get_by_role("button", name="Send after this answer")
        await say(page, "say one\nwait 60000")
        await expect(page.locator(".live")).to_contain_text("one")
        message = page.get_by_label("Message", exact=True)
        for text in ("say two", "say tree", "say dropped"):
            await message.fill(text)
            await later.click()
            await expect(message).to_have_value("")
        await expect(queued).to_have_count(3)
        places = [await page.locator(f".composer-bar .{name}").bounding_box() for name in ("stop", "send")]
        assert places[0] and places[1] and places[0]["x"] + places[0]["width"] <= places[1]["x"]
        assert await findings(page) == []
        await queued.nth(2).get_by_role("button", name="Drop this question").click()
        await queued.nth(1).get_by_role("button", name="Edit this question").click()
        await expect(message).to_have_value("say tree")
        await message.fill("say three")
        await page.keyboard.press("Enter") if width > 400 else await later.click()
        await expect(queued).to_have_text(["say two", "say three"])
        await page.reload()
        await expect(queued).to_have_count(2)
        await expect(page.locator(".live")).to_contain_text("one")
        await page.get_by_role("button", name="Stop", exact=True).click()
        await expect(answers).to_have_text(["one", "two", "three"])
        await expect(queued).to_have_count(0)


async def test_queued_question_waits_after_a_failure_and_is_sent_by_one_tab(
    server: RunningServer, browser: Browser
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model=f"held/{HELD}")
    # A tab that follows an answer may come after its end.
    following = signed_in(browser, server, visitor=visitor, allow=["404"])
    async with held_model(server, visitor) as models, following as page:
        await say(page, "one begins")
        await expect(page.locator(".live")).to_contain_text("one")
        await say(page, "two")
        other = await page.context.new_page()
        await other.goto(page.url)
        await expect(other.locator(".queue li")).to_have_count(1)
        await models.stop()
        await models.start()
        await expect(page.get_by_role("alert")).to_contain_text("cut off")
        models.release.set()
        await other.get_by_role("button", name="Send now").click()
        for tab in (page, other):
            await expect(tab.locator(".queue li")).to_have_count(0)
            await expect(tab.locator(".said-assistant:not(.live) .md").last).to_have_text("two")
            await expect(tab.locator(".said-user")).to_have_count(2)
        models.release.clear()
        await say(page, "three begins")
        await expect(other.locator(".live")).to_contain_text("three")
        await say(page, "four")
        models.release.set()
        for tab in (page, other):
            await expect(tab.locator(".said-assistant:not(.live) .md").last).to_have_text("four")
            await expect(tab.locator(".said-user")).to_have_count(4)


async def edit_last(page: Page, text: str) -> None:
    await page.get_by_role("button", name="Edit message").click()
    await page.get_by_label("Edit your message").fill(text)
    await page.keyboard.press("Enter")


async def test_error_is_shown_in_place_with_a_retry(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, model="script", allow=["402", "503"]) as page:
        await say(page, "say half\ndrop")
        await expect(page.get_by_role("alert")).to_contain_text("cut off")
        await expect(page.locator(".said-assistant .md")).to_have_text("half")
        await say(page, "fail 503 Resting")
        alert = page.get_by_role("alert")
        await expect(alert.last).to_contain_text("Resting")
        await expect(alert.get_by_role("button", name="Try again")).to_be_enabled()
        await choose_model(page, "assistant-paid")
        await say(page, "Hello")
        await expect(page.get_by_role("link", name="Add funds")).to_have_attribute("href", "/checkout")


async def test_limit_counts_down_and_a_draft_survives_a_reload(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, allow=["429"]) as page:
        error = {"message": "Too many.", "type": "rate_limit_error", "code": "rate_limit_exceeded", "retry_after": 2}
        await refuse_once(page, "**/v1/chat/completions", 429, error)
        await say(page, "What is 2 + 2?")
        again = page.get_by_role("alert").get_by_role("button", name="Try again")
        await expect(again).to_have_text("Try again in 2 s")
        await expect(again).to_be_disabled()
        await expect(again).to_have_text("Try again")
        await again.click()
        await expect(page.locator(".said-assistant .md")).to_contain_text("4")
        await refuse_once(page, "**/v1/chat/completions", 429, {**error, "retry_after": 1})
        await say(page, "What is 3 + 3?")
        await page.get_by_role("alert").get_by_role("button", name="Try again", exact=True).click()
        await expect(page.locator(".said-assistant .md").last).to_contain_text("6")
        await expect(page.get_by_label("Message", exact=True)).to_have_value("")
        await expect(page.locator(".said-user")).to_have_count(2)
        await page.get_by_label("Message", exact=True).fill("half a thought")
        await page.reload()
        await expect(page.get_by_label("Message", exact=True)).to_have_value("half a thought")
        await page.get_by_role("link", name="New chat").first.click()
        await expect(page.get_by_label("Message", exact=True)).to_have_value("")


async def test_question_that_was_sent_offline_is_sent_once_when_online_again(
    server: RunningServer, browser: Browser
) -> None:
    async with signed_in(browser, server, allow=["ERR_"]) as page:
        await page.get_by_role("button", name="Model:").wait_for()
        answers: list[str | None] = []
        page.on("response", lambda one: answers.append(one.url) if one.url.endswith("/chat/completions") else None)
        for number, (question, answer) in enumerate([("What is 3 + 3?", "6"), ("What is 4 + 4?", "8")], 1):
            await page.context.set_offline(True)
            await expect(page.get_by_text("You are offline.")).to_be_visible()
            await say(page, question)
            await expect(page.get_by_role("alert").last).to_contain_text("continues when you are back online")
            await page.context.set_offline(False)
            await expect(page.locator(".said-assistant .md")).to_have_count(number)
            await expect(page.locator(".said-assistant .md").last).to_contain_text(answer)
            await expect(page.get_by_role("alert")).to_have_count(0)
            await expect(page.get_by_text("You are offline.")).to_have_count(0)
            assert len(answers) == number


async def test_question_that_was_changed_offline_waits_for_its_sender(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, allow=["ERR_"]) as page:
        await page.get_by_role("button", name="Model:").wait_for()
        await page.context.set_offline(True)
        await say(page, "What is 3 + 3?")
        alert = page.get_by_role("alert").last
        await expect(alert).to_contain_text("offline")
        await page.get_by_label("Message", exact=True).press_sequentially(" And what")
        await page.context.set_offline(False)
        await expect(alert).to_contain_text("You were offline. Try again.")
        await expect(page.get_by_label("Message", exact=True)).to_have_value("What is 3 + 3? And what")
        await expect(page.locator(".said-user")).to_have_count(0)
        await alert.get_by_role("button", name="Try again").click()
        await expect(page.locator(".said-assistant .md")).to_contain_text("6")


async def test_expired_session_loses_no_message(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, model="script", allow=["401"]) as page:
        dialog = page.get_by_role("dialog", name="Your session has expired")
        await refuse_once(page, "**/v1/chat/completions", 401, OVER)
        await say(page, "say ten")
        await dialog.get_by_label("Password").fill(PASSWORD)
        await page.keyboard.press("Enter")
        await expect(page.locator(".said-assistant:not(.live) .md")).to_have_text("ten")
        await refuse_once(page, "**/messages?limit=2", 401, OVER)
        await say(page, "say begun\nwait 500\nsay  and ended")
        await expect(page.locator(".live")).to_contain_text("begun and ended")
        await dialog.get_by_label("Password").fill(PASSWORD)
        await page.keyboard.press("Enter")
        await expect(page.locator(".said-assistant:not(.live) .md").last).to_have_text("begun and ended")
        await refuse_once(page, "**/billing/account", 401, OVER)
        await page.reload()
        await dialog.get_by_label("Password").fill(PASSWORD)
        await dialog.get_by_role("button", name="Continue").click()
        await expect(dialog).to_be_hidden()


async def test_conversations_can_be_searched_renamed_deleted_and_restored(
    server: RunningServer, browser: Browser
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    await asyncio.to_thread(keep_conversation, server, visitor, ["A kind of bread", "It is called rye"])
    long = ["The zebra crossing", "A **zebra** is striped", *(f"message {number}" for number in range(60))]
    await asyncio.to_thread(keep_conversation, server, visitor, long)
    # A page may find deleted what it deletes again.
    async with signed_in(browser, server, visitor=visitor, allow=["404"]) as page:
        await page.get_by_label("Search", exact=True).fill("zeb")
        found = page.locator(".conversation a")
        await expect(found).to_have_count(1)
        await expect(found.locator("mark").first).to_have_text("zebra")
        await found.click()
        striped = page.locator(".said-assistant", has_text="striped")
        await expect(striped.locator("strong")).to_be_in_viewport()
        await page.wait_for_function(
            """word => [...CSS.highlights.get("found") ?? []].some(range => word.contains(range.startContainer))""",
            arg=await striped.locator("strong").element_handle(),
        )
        await page.get_by_label("Search", exact=True).fill("")
        await expect(found).to_have_count(2)
        here = page.locator(".conversation.here")
        await here.get_by_role("button").click()
        await page.get_by_role("menuitem", name="Rename").click()
        await page.get_by_label("New title").fill("Stripes")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("link", name="Stripes")).to_be_visible()
        for end, left in (("Undo", 2), ("Dismiss", 1)):
            await delete(page, "Stripes")
            await page.get_by_role("button", name=end).click()
            await expect(found).to_have_count(left)
        await page.reload()
        await expect(found).to_have_count(1)
        # A deletion that leaving the page has interrupted is completed.
        await page.route("**/conversations/conv_*", lambda lost: None, times=1)
        await delete(page, "A kept one")
        await page.get_by_role("button", name="Dismiss").click()
        async with page.expect_response(lambda answer: answer.request.method == "DELETE") as again:
            await page.reload()
            await expect(page.get_by_text("Your conversations appear here.")).to_be_visible()
        assert (await again.value).status in (204, 404)


async def delete(page: Page, title: str) -> None:
    """Deletes a conversation, which can be taken back for a while."""
    await page.get_by_role("button", name=f"Actions for {title}").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await expect(page.get_by_role("link", name=title)).to_have_count(0)


async def test_pasted_image_is_removed_or_kept_with_the_draft_and_sent_to_the_model(
    server: RunningServer, browser: Browser
) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model="mine/ok")
    async with ModelServer() as models, server.client(headers=visitor.headers) as client:
        provider = {"name": "mine", "base_url": models.base_url, "models": ["ok"]}
        assert (await client.post("/user/providers", json=provider)).status_code == 201
        await send_picture(browser, server, visitor)


async def send_picture(browser: Browser, server: RunningServer, visitor: Visitor) -> None:
    async with signed_in(browser, server, visitor=visitor) as page:
        async with page.expect_response(lambda answer: answer.url.endswith("/artifacts")) as made:
            await paste_picture(page)
        stored = (await (await made.value).json())["id"]
        async with page.expect_response(f"**/artifacts/{stored}") as deleted:
            await page.get_by_role("button", name="Remove dot.png").click()
        assert ((await deleted.value).request.method, (await deleted.value).status) == ("DELETE", 204)
        await expect(page.locator(".attached")).to_have_count(0)
        await paste_picture(page)
        await page.wait_for_function("""() => Object.entries(localStorage)
            .some(([name, text]) => name.startsWith('svc.files') && text.includes('/artifacts/'))""")
        await page.reload()
        await expect(page.get_by_role("img", name="dot.png")).to_be_visible()
        await page.get_by_label("Message", exact=True).fill("What is this?")
        async with page.expect_request("**/v1/chat/completions") as asked:
            await page.get_by_role("button", name="Send").click()
        content = (await asked.value).post_data_json["messages"][-1]["content"]
        assert [part["type"] for part in content] == ["text", "image_url"]
        assert content[1]["image_url"]["url"].startswith("data:image/png;base64,")
        await answered(page)
        await page.reload()
        await expect(page.locator(".said-user img")).to_be_visible()
        await expect(page.locator(".attached")).to_have_count(0)


async def test_refused_image_and_missing_model_are_explained(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, model="gone", allow=["status of 400"]) as page:
        await expect(page.get_by_text("builtin/gone is no longer available")).to_be_visible()
        await paste_picture(page)
        await expect(page.get_by_role("img", name="dot.png")).to_be_visible()
        await page.get_by_role("button", name="Send").click()
        alert = page.get_by_role("alert")
        await expect(alert).to_contain_text("builtin/assistant cannot read images.")
        await expect(alert).to_contain_text("send it without images")
        await page.get_by_role("button", name="Remove dot.png").click()
        await page.get_by_label("Message", exact=True).fill("Hello")
        await page.get_by_role("button", name="Send").click()
        await answered(page)


async def paste_picture(page: Page) -> None:
    await page.locator("#composer").evaluate("""async (composer) => {
        const canvas = new OffscreenCanvas(8, 8);
        canvas.getContext("2d").fillRect(0, 0, 8, 8);
        const blob = await canvas.convertToBlob({type: "image/png"});
        const data = new DataTransfer();
        data.items.add(new File([blob], "dot.png", {type: "image/png"}));
        const event = new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true});
        composer.dispatchEvent(event);
    }""")


async def test_memory_shows_its_passages(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model="builtin/echo")
    await asyncio.to_thread(keep_conversation, server, visitor, ["My zebra is called Zora.", "A fine name."])
    async with signed_in(browser, server, visitor=visitor) as page:
        await say(page, "What is the zebra called?")
        await answered(page)
        await page.get_by_text("Used 1 passage").click()
        await expect(page.locator(".fold-body")).to_contain_text("Zora")


async def test_page_sends_all_messages(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server, model="builtin/script")
    long = [f"{number} {'word ' * 30_000}" for number in range(4)]
    kept = await asyncio.to_thread(keep_conversation, server, visitor, long)
    async with signed_in(browser, server, f"/#/chat/{kept}", visitor=visitor) as page:
        await page.locator(".said-assistant").first.wait_for()
        async with page.expect_request("**/v1/chat/completions") as asked:
            await say(page, "say briefly")
        told = [message["content"][:1] for message in (await asked.value).post_data_json["messages"]]
        assert told == ["0", "1", "2", "3", "s"]
        answer = page.locator(".said-assistant:not(.live)").last
        await expect(answer).to_contain_text("briefly")


async def test_page_does_not_scroll_during_an_answer(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server, model="script") as page:
        await say(page, "".join(f'say "line {number} and more words\\n\\n"\nwait 10\n' for number in range(100)))
        await expect(page.locator(".live")).to_contain_text("line 30")
        box = page.locator(".chat-scroll")
        await box.hover()
        await page.mouse.wheel(0, -600)
        await expect(page.get_by_role("button", name="Scroll to bottom")).to_be_visible()
        place = await box.evaluate("box => box.scrollTop")
        await expect(page.locator(".live")).to_contain_text("line 60")
        assert abs(await box.evaluate("box => box.scrollTop") - place) < 3
        await page.get_by_role("button", name="Scroll to bottom").click()
        await answered(page)
        await page.wait_for_function(
            "box => box.scrollHeight - box.scrollTop - box.clientHeight < 5", arg=await box.element_handle()
        )


async def test_keyboard_controls_everything(server: RunningServer, browser: Browser) -> None:
    async with signed_in(browser, server) as page:
        await page.get_by_label("Message", exact=True).press("Tab")
        await page.locator(".chat-scroll").focus()
        await page.keyboard.press("?")
        await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
        await page.keyboard.press("Escape")
        await page.keyboard.press("m")
        await expect(page.get_by_role("combobox", name="Search models")).to_be_focused()
        await page.keyboard.type("echo")
        await expect(page.get_by_role("option", selected=True)).to_contain_text("echo")
        await page.keyboard.press("Enter")
        await expect(page.get_by_label("Message", exact=True)).to_be_focused()
        await page.keyboard.type("by keys alone")
        await page.keyboard.press("Enter")
        await answered(page)
        await page.keyboard.press("ArrowUp")
        await expect(page.get_by_label("Edit your message")).to_be_focused()
        await page.keyboard.press("Escape")
        await page.keyboard.press("Control+k")
        await expect(page.get_by_label("Search", exact=True)).to_be_focused()


async def test_slow_network_shows_progress(server: RunningServer, browser: Browser) -> None:
    visitor = await asyncio.to_thread(new_visitor, server)
    async with new_context(browser, server, visitor) as context:
        page = await context.new_page()
        network = await context.new_cdp_session(page)
        slow = {"offline": False, "latency": 150, "downloadThroughput": 200_000, "uploadThroughput": 50_000}
        await network.send("Network.emulateNetworkConditions", slow)
        await page.add_init_script(SEES_SPINNER)
        await page.goto("/")
        await page.wait_for_function("window.seen")
        await page.get_by_role("button", name="What is 12 * (3 + 4)?").click()
        await expect(page.locator(".said-assistant .md")).to_contain_text("84")
