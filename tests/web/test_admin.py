"""The section for administrators, at both widths: users, spend, support, status and the audit log."""

import asyncio
import csv
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from svc.admin import users
from tests.support.browser import (
    PASSWORD,
    WIDTHS,
    WITH_BROWSER,
    Visitor,
    database,
    look,
    new_email,
    new_visitor,
    signed_in,
)
from tests.support.mail_server import MailBox
from tests.support.people import command
from tests.support.server import RunningServer, running_server

pytestmark = WITH_BROWSER
CATALOG = """
[access]
models = ["*"]

[[groups]]
name = "research"
emails = ["*@research.example"]

[[groups]]
name = "design"
"""
CHAT = {"model": "builtin/assistant-paid", "messages": [{"role": "user", "content": "hi"}]}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def team(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    """A server with two groups."""
    folder = tmp_path_factory.mktemp("team")
    (folder / "catalog.toml").write_text(CATALOG)
    async with running_server(folder, {"SVC_CATALOG": str(folder / "catalog.toml")}) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def admin(team: RunningServer) -> Visitor:
    """The first account of the server, which is an administrator."""
    return await asyncio.to_thread(new_visitor, team)


@asynccontextmanager
async def administration(
    browser: Browser, team: RunningServer, admin: Visitor, part: str = "", **options: Any
) -> AsyncIterator[Page]:
    async with signed_in(browser, team, f"/#/admin/{part}", visitor=admin, **options) as page:
        yield page


async def ask(team: RunningServer, visitor: Visitor, method: str, path: str, **body: Any) -> Any:
    async with team.client(headers=visitor.headers) as client:
        answer = await client.request(method, path, json=body or None)
        return answer.json() if answer.content else None


async def confirm(page: Page, action: str) -> None:
    await page.get_by_role("dialog").get_by_role("button", name=action).click()


async def test_users_are_searched_and_filtered_in_pages(browser: Browser, team: RunningServer, admin: Visitor) -> None:
    suspended = await asyncio.to_thread(new_visitor, team, dollars=3)
    await ask(team, admin, "PATCH", f"/admin/users/{suspended.id}", group="design", status="suspended", name="Grace")
    with database(team) as tx:
        for _ in range(60):
            users.invite(tx, admin.id, users.Invitation(new_email()), None, by_mail=False, now_seconds=0)
    async with administration(browser, team, admin) as page:
        rows = page.locator("tbody tr")
        await expect(rows).to_have_count(50)
        await page.get_by_role("button", name="Show more").click()
        await expect(rows).not_to_have_count(50)
        await page.get_by_label("Search", exact=True).last.fill("grace")
        await page.get_by_label("Group").select_option("design")
        await page.get_by_label("Status").select_option("suspended")
        row = page.get_by_role("row", name=suspended.email)
        await expect(rows).to_have_count(1)
        await expect(row).to_contain_text(re.compile("design.*Suspended.*\\$3.00"))
        await look(page, 390, "light")
        await expect(row).to_contain_text(re.compile("Grace.*Suspended.*\\$3.00"))
        await row.get_by_role("cell").last.click(force=True)  # the whole row opens the user
        await page.get_by_role("link", name="All users").click()
        await page.get_by_label("Group").select_option("research")
        await expect(page.get_by_text("No matching users")).to_be_visible()
        await page.get_by_role("button", name="Clear search and filters").click()
        await expect(rows).to_have_count(50)


@WIDTHS
async def test_invitation_shows_its_link_once(
    browser: Browser, team: RunningServer, admin: Visitor, width: int
) -> None:
    email = f"{new_email().partition('@')[0]}@research.example"
    async with administration(browser, team, admin, width=width, allow=["status of 409"]) as page:
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await page.get_by_role("button", name="Invite user").focus()
        for typed in (email, "Tab", "Ada", "Tab", "Tab", "Tab", "Enter"):  # by keyboard alone
            if typed == email:
                await page.keyboard.press("Enter")
            await (page.keyboard.press(typed) if typed in ("Tab", "Enter") else page.keyboard.type(typed))
        url = await page.locator(".secret code").inner_text()
        await page.get_by_role("button", name="Copy link").click()
        assert await page.evaluate("navigator.clipboard.readText()") == url
        await page.context.clear_permissions()
        await page.keyboard.press("Escape")  # it closes by its button alone
        await page.get_by_role("button", name="Done").click()
        await expect(page.locator("body")).not_to_contain_text(url)
        await expect(page.get_by_role("row", name=email)).to_contain_text("research")
        async with team.client() as client:
            body = {"token": url.partition("#")[2], "password": PASSWORD}
            assert (await client.post("/auth/password-reset/confirm", json=body)).is_success
        await page.get_by_role("button", name="Invite user").click()
        await page.get_by_label("Email").fill(email)
        await page.get_by_role("button", name="Invite", exact=True).click()
        await expect(page.locator(".field-error")).to_contain_text("account")


@WIDTHS
async def test_invitation_is_mailed(browser: Browser, equipped: tuple[RunningServer, MailBox], width: int) -> None:
    server, box = equipped
    visitor, email = await asyncio.to_thread(new_visitor, server), new_email()
    with database(server) as tx:
        tx.execute("UPDATE accounts SET admin = 1 WHERE id = ?", (visitor.id,))
    async with administration(browser, server, visitor, width=width) as page:
        await page.get_by_role("button", name="Invite user").click()
        await page.get_by_label("Email").fill(email)
        await page.get_by_role("button", name="Invite", exact=True).click()
        await expect(page.get_by_role("dialog")).to_contain_text(f"We sent the link to {email}.")
        await box.mailed_to(email)


@WIDTHS
async def test_user_is_changed_suspended_and_deleted(
    browser: Browser, team: RunningServer, admin: Visitor, width: int
) -> None:
    visitor = await asyncio.to_thread(new_visitor, team)
    for name in ("one", "two", "three"):
        await ask(team, visitor, "POST", "/user/api-keys", name=name)
    async with administration(browser, team, admin, f"users/{visitor.id}", width=width) as page:
        await page.get_by_label("Name").fill("Ada Lovelace")
        await page.get_by_label("Group").select_option("design")
        await page.get_by_role("switch", name="Administrator").check()
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("heading", name="Ada Lovelace")).to_be_visible()
        me = await ask(team, visitor, "GET", "/user/me")
        assert (me["name"], me["group"], me["admin"]) == ("Ada Lovelace", "design", True)
        await page.reload()
        await expect(page.get_by_label("Group")).to_have_value("design")
        await page.get_by_label("Group").select_option("auto")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("definition").nth(3)).to_have_text("No group")

        await page.get_by_role("button", name="Suspend").click()
        await confirm(page, "Suspend")
        await expect(page.get_by_text("This account is suspended")).to_be_visible()
        assert (await ask(team, visitor, "GET", "/user/me"))["error"]["code"] == "account_suspended"
        await page.get_by_role("button", name="Reactivate").click()
        await expect(page.get_by_text("This account is suspended")).to_have_count(0)
        assert (await ask(team, visitor, "GET", "/user/me"))["status"] == "active"

        await page.get_by_role("button", name="Reset link").click()
        await confirm(page, "Reset link")
        await expect(page.locator(".secret code")).to_contain_text("/password-reset#")
        await page.get_by_role("button", name="Done").click()

        await page.get_by_role("button", name="Delete key two").click()
        await confirm(page, "Delete")
        await expect(page.locator(".list > li")).to_have_count(2)
        await page.get_by_role("button", name="Delete all keys").click()
        await confirm(page, "Delete")
        await expect(page.get_by_text("No keys yet")).to_be_visible()
        assert (await ask(team, visitor, "GET", "/user/api-keys")) == []

        await page.get_by_role("button", name="Delete user").click()
        await page.get_by_label("to confirm").fill("other@example.com")
        await confirm(page, "Delete user")
        await expect(page.get_by_role("dialog")).to_contain_text("not the email address of this account")
        await page.get_by_label("to confirm").fill(visitor.email)
        await confirm(page, "Delete user")
        await page.wait_for_url("**/#/admin/users")
        assert (await ask(team, admin, "GET", f"/admin/users/{visitor.id}"))["error"]["code"] == "not_found"


@WIDTHS
async def test_last_administrator_stays_one(browser: Browser, team: RunningServer, admin: Visitor, width: int) -> None:
    with database(team) as tx:
        tx.execute("UPDATE accounts SET admin = (id = ?)", (admin.id,))
    async with administration(browser, team, admin, f"users/{admin.id}", width=width, allow=["status of 409"]) as page:
        await page.get_by_role("switch", name="Administrator").uncheck()
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("alert")).to_contain_text(
            "This is the only active administrator. Make another account"
        )
        await expect(page.get_by_role("button", name="Delete user")).to_have_count(0)


@WIDTHS
async def test_spend_is_shown_by_month_and_kind(
    browser: Browser, team: RunningServer, admin: Visitor, width: int, tmp_path: Path
) -> None:
    visitor = await asyncio.to_thread(new_visitor, team, dollars=5)
    await ask(team, visitor, "POST", "/v1/chat/completions", **CHAT)
    async with administration(browser, team, admin, "spend", width=width, timezone_id="America/Los_Angeles") as page:
        rows = page.locator("tbody tr")
        await expect(rows.filter(has_text=visitor.email)).to_contain_text("$0.00")
        await page.get_by_role("img", name="Spend per day in").focus()
        await page.keyboard.press("End")
        await expect(page.locator(".chart-foot span").first).to_have_text(
            re.compile(r"^\w+ 1, 20\d\d$")
        )  # days are those of UTC
        await expect(page.locator(".chart-said")).to_contain_text("All users $0.00")
        for kind, shown in (
            ("model", "builtin/assistant-paid"),
            ("group", "No group"),
            ("key", "without a key"),
            ("day", "20"),
        ):
            await page.get_by_label("By", exact=True).select_option(kind)
            await expect(rows.first).to_contain_text(shown)
        await page.get_by_label("By", exact=True).select_option("user,model")
        await expect(rows.filter(has_text=f"{visitor.email} · builtin/assistant-paid")).to_have_count(1)
        await page.get_by_label("By", exact=True).select_option("user")
        async with page.expect_download() as waiting:
            await page.get_by_role("button", name="Download as CSV").click()
        download = await waiting.value
        assert re.fullmatch(r"spend-20\d\d-\d\d-by-user\.csv", download.suggested_filename)
        await download.save_as(tmp_path / "spend.csv")
        found = {
            row["key"]: row["requests"] for row in csv.DictReader((tmp_path / "spend.csv").read_text().splitlines())
        }
        assert found[visitor.email] == "1"
        await page.get_by_label("Month").select_option("range")
        await page.get_by_label("By", exact=True).select_option("day")
        days = [str(datetime.now(UTC).date() - timedelta(days=back)) for back in (60, 50, 0)]
        await page.get_by_label("From", exact=True).fill(days[0])
        await page.get_by_label("To", exact=True).fill(days[1])
        await expect(page.get_by_text("No usage in this period")).to_be_visible()
        await page.get_by_label("To", exact=True).fill(days[2])
        await expect(rows.filter(has_text="Total")).to_be_visible()
        await page.get_by_label("Month").select_option(index=35)
        await expect(page.get_by_text("No usage in this period")).to_be_visible()


@WIDTHS
async def test_support_is_answered_and_closed(
    browser: Browser, team: RunningServer, admin: Visitor, width: int
) -> None:
    visitor = await asyncio.to_thread(new_visitor, team, dollars=5)
    made = await ask(team, visitor, "POST", "/support/conversations", subject="Small pictures", message="Why?")
    async with administration(browser, team, admin, "support", width=width) as page:
        await expect(page.locator(".list > li", has_text=visitor.email)).to_contain_text("Waiting")
        await page.get_by_role("link", name=re.compile(f"Small pictures.*{visitor.email}")).click()
        await page.get_by_label("Message", exact=True).fill("Ask for 1024x1024")
        await page.keyboard.press("Control+Enter")
        await expect(page.locator(".desk-own")).to_contain_text("Ask for 1024x1024")
        await expect(page.get_by_label("Message", exact=True)).to_have_value("")
        await page.get_by_role("button", name="Close conversation").click()
        await confirm(page, "Close conversation")
        await expect(page.get_by_text("This conversation is closed")).to_be_visible()
        found = await ask(team, visitor, "GET", f"/support/conversations/{made['id']}")
        assert [(one["role"], one["content"]) for one in found["messages"]] == [
            ("user", "Why?"),
            ("operator", "Ask for 1024x1024"),
        ]
        await page.get_by_role("link", name="All conversations").click()
        await page.get_by_label("Show").select_option("closed")
        await expect(page.locator(".list > li", has_text=visitor.email)).to_contain_text("Closed")


@WIDTHS
async def test_status_shows_work_checks_and_times(
    browser: Browser, team: RunningServer, admin: Visitor, width: int
) -> None:
    async with administration(browser, team, admin, "status", width=width, allow=["status of 500"]) as page:
        await expect(page.get_by_text("The service works. 1 finding needs a check.")).to_be_visible()
        await expect(page.locator(".figure", has_text="Open streams")).to_contain_text("0 agent runs")
        await expect(page.locator(".list > li").first).to_contain_text(
            re.compile("Backup.*svc backup.*Check", re.DOTALL)
        )
        facts = await page.locator("dl").inner_text()
        assert re.search(r"Last backup\s+None yet\s+Certificate expires\s+\w+ \d+, 20\d\d", facts), facts
        await page.route("**/admin/status", lambda route: route.fulfill(status=500, body="{}"))
        await page.get_by_role("button", name="Refresh").click()
        await expect(page.get_by_role("alert")).to_be_visible()
        await page.unroute("**/admin/status")
        await page.get_by_role("button", name="Try again").click()
        await expect(page.get_by_role("alert")).to_have_count(0)


@WIDTHS
async def test_audit_log_is_in_words(browser: Browser, team: RunningServer, admin: Visitor, width: int) -> None:
    visitor = await asyncio.to_thread(new_visitor, team)
    other = await asyncio.to_thread(new_visitor, team)
    await ask(team, admin, "PATCH", f"/admin/users/{other.id}", admin=True)
    await ask(team, other, "PATCH", f"/admin/users/{visitor.id}", group="design", name="Ada", status="suspended")
    await asyncio.to_thread(command, team, "credit", visitor.email, "2.50")
    async with administration(browser, team, admin, "audit", width=width) as page:
        rows = page.locator(".list > li")
        await expect(rows.nth(0)).to_contain_text(f"Added funds · {visitor.email} · $2.50")
        await expect(rows.nth(0)).to_contain_text("Operator (command line)")
        await expect(rows.nth(1)).to_contain_text(
            f"Changed a user · {visitor.email} · suspended · group design · name “Ada”"
        )
        await expect(rows.nth(1)).to_contain_text(other.email)
        await expect(rows.nth(2)).to_contain_text(f"Changed a user · {other.email} · administrator")
        await expect(rows.nth(2)).to_contain_text("You")
        await page.get_by_label("Change", exact=True).select_option("credit")
        await expect(rows.filter(has_text="Changed")).to_have_count(0)
        async with page.expect_download() as waiting:
            await page.get_by_role("button", name="Download as CSV").click()
        lines = (await (await waiting.value).path()).read_text().splitlines()
        assert {row["action"] for row in csv.DictReader(lines)} == {"credit"}
        await page.get_by_label("Change", exact=True).select_option("")
        await rows.nth(1).get_by_role("link").click()
        await expect(page.get_by_role("heading", name="Ada")).to_be_visible()


async def test_sign_ins_are_filtered_and_users_sorted(browser: Browser, team: RunningServer, admin: Visitor) -> None:
    visitor = await asyncio.to_thread(new_visitor, team)
    await ask(team, visitor, "POST", "/projects", name="Large", instructions="x" * 90_000)
    await ask(team, visitor, "POST", "/auth/login", email="nobody@example.com", password="wrong horse")
    async with administration(browser, team, admin, "sign-ins") as page:
        rows = page.locator("tbody tr")
        await expect(rows.filter(has_text=visitor.email)).to_contain_text("Signed in")
        await page.get_by_label("Result").select_option("invalid_credentials")
        await expect(rows.filter(has_text="Signed in")).to_have_count(0)
        await expect(rows.first).to_contain_text("No account")
        async with page.expect_download() as waiting:
            await page.get_by_role("button", name="Download as CSV").click()
        lines = (await (await waiting.value).path()).read_text().splitlines()
        assert {row["code"] for row in csv.DictReader(lines)} == {"invalid_credentials"}
        await page.get_by_role("link", name="Users", exact=True).click()
        await page.get_by_label("Sort by").select_option("stored_bytes")
        await expect(rows.first).to_contain_text(visitor.email)
        await expect(rows.first).to_contain_text(re.compile(r"9\d k?K?B"))


async def test_others_neither_see_nor_load_the_section(browser: Browser, team: RunningServer, admin: Visitor) -> None:
    visitor = await asyncio.to_thread(new_visitor, team)
    loaded = "performance.getEntriesByType('resource').filter(one => one.name.includes('/admin')).length"
    for who, count in ((admin, 1), (visitor, 0)):
        async with signed_in(browser, team, visitor=who) as page:
            async with page.expect_response("**/user/me"):
                await page.reload()
            await expect(page.get_by_role("link", name="Administration")).to_have_count(count)
            assert await page.evaluate(loaded) == 0
            if who is visitor:
                await page.goto("/#/admin")
                await expect(page.get_by_text("Only for administrators")).to_be_visible()
