"""What administrators do instead of commands, at both widths: bookings, a backup now, and the catalog with its reload."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from tests.support.browser import WIDTHS, WITH_BROWSER, Visitor, new_visitor, signed_in
from tests.support.server import RunningServer, running_server

pytestmark = [*WITH_BROWSER, WIDTHS]
CATALOG = """
[[providers]]
name = "lab"
base_url = "http://127.0.0.1:9/v1"
api_key_env = "LAB_KEY"

[[providers.models]]
id = "small"
aliases = ["tiny"]
input_micros_per_million_tokens = 2_000_000
output_micros_per_million_tokens = 3_000_000

[[providers]]
name = "farm"
base_urls = ["http://127.0.0.1:9/v1", "http://127.0.0.1:11/v1"]
models = [{ id = "wheat" }]

[access]
contact = "it-help@example.com"
users_may_delete_themselves = false

[[groups]]
name = "research"
models = ["lab/*"]
allowance_micros = 20_000_000
emails = ["*@research.example"]
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("operations")
    (folder / "backups").mkdir()
    (folder / "catalog.toml").write_text(CATALOG)
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def team(folder: Path) -> AsyncIterator[RunningServer]:
    settings = {
        "SVC_CATALOG": str(folder / "catalog.toml"),
        "SVC_BACKUP_DIR": str(folder / "backups"),
        "SVC_PAYMENTS": "none",
        "LAB_KEY": "sk-operators-own",
    }
    async with running_server(folder, settings) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def admin(team: RunningServer) -> Visitor:
    """The first account of the server, which is an administrator."""
    return await asyncio.to_thread(new_visitor, team)


async def test_double_click_books_a_credit_once(
    browser: Browser, team: RunningServer, admin: Visitor, width: int
) -> None:
    user = await asyncio.to_thread(new_visitor, team)
    address, allow = f"/#/admin/users/{user.id}", ["ERR_FAILED", "402"]
    async with signed_in(browser, team, address, visitor=admin, width=width, allow=allow) as page:

        async def lose(route: Route) -> None:
            """Let the request reach the service, and lose its first answer."""
            await route.fetch()
            await route.abort()

        await page.get_by_role("button", name="Add funds", exact=True).click()
        dialog = page.get_by_role("dialog", name=f"Add funds for {user.email}")
        await dialog.get_by_label("Amount in US dollars").fill("12.5")
        await dialog.get_by_label("Note").fill("Course")
        await page.route("**/credits", lose, times=1)
        book = dialog.get_by_role("button", name="Add funds", exact=True)
        await book.click()
        await expect(dialog.get_by_role("alert")).to_be_visible()
        await book.click()
        await expect(dialog).to_have_count(0)
        await expect(page.get_by_text("The balance is $12.50. Each booking")).to_be_visible()
        box = await page.get_by_text("The balance is $12.50. Each booking").bounding_box()
        assert box is not None and box["width"] > 250, "the text has the width of the page"
        await page.get_by_role("button", name="Take funds", exact=True).click()
        dialog = page.get_by_role("dialog", name=f"Take funds from {user.email}")
        await dialog.get_by_label("Amount in US dollars").fill("100")
        await dialog.get_by_role("button", name="Take funds", exact=True).click()
        await expect(dialog.get_by_role("alert")).to_contain_text("The wallet has $12.50")
        await dialog.get_by_label("Amount in US dollars").fill("2.5")
        await dialog.get_by_role("button", name="Take funds", exact=True).click()
        await expect(page.get_by_text("The balance is $10.00. Each booking")).to_be_visible()
        async with team.client(headers=user.headers) as client:
            ledger = (await client.get("/billing/ledger")).json()["data"]
        assert [(row["amount_micros"], row["description"]) for row in ledger] == [
            (-2_500_000, "Debit by an administrator"),
            (12_500_000, "Course"),
        ]
        await page.goto("/#/admin/audit")
        await expect(page.locator(".item-title", has_text=f"Added funds · {user.email} · $12.50")).to_have_count(1)


async def test_backup_is_started_and_its_result_shown(
    browser: Browser, team: RunningServer, admin: Visitor, width: int, folder: Path
) -> None:
    before = len(list((folder / "backups").glob("*.tar")))
    async with signed_in(browser, team, "/#/admin/status", visitor=admin, width=width) as page:
        await expect(page.get_by_text(f"Backups are written to {folder / 'backups'}")).to_be_visible()
        await page.get_by_role("button", name="Back up now").click()
        async with asyncio.timeout(30):
            while len(list((folder / "backups").glob("*.tar"))) == before:
                await asyncio.sleep(0.1)
        newest = max(path.name for path in (folder / "backups").glob("*.tar"))
        again = page.get_by_role("button", name="Refresh")
        async with asyncio.timeout(30):
            while not await page.get_by_text(newest).is_visible():
                await again.click()
                await asyncio.sleep(0.2)
        await page.goto("/#/admin/audit")
        await expect(page.locator(".item-title", has_text="Started a backup").first).to_be_visible()


async def test_catalog_is_shown_and_reloaded(
    browser: Browser, team: RunningServer, admin: Visitor, width: int, folder: Path
) -> None:
    file = folder / "catalog.toml"
    async with signed_in(browser, team, "/#/admin/catalog", visitor=admin, width=width) as page:
        await expect(page.get_by_text(str(file))).to_be_visible()
        small = page.get_by_role("row", name="lab/small")
        await expect(small).to_contain_text("Also tiny")
        await expect(small).to_contain_text("$2.00 in · $3.00 out / 1M")
        await expect(page.get_by_role("row", name="research")).to_contain_text("*@research.example")
        assert "sk-operators-own" not in await page.content() and "LAB_KEY" not in await page.content()
        try:
            file.write_text(CATALOG.replace("20_000_000", "30_000_000"))
            await page.get_by_role("button", name="Reload").click()
            await expect(page.get_by_text("The catalog was read again.")).to_be_visible()
            await expect(page.get_by_role("row", name="research")).to_contain_text("$30.00")
            file.write_text("nonsense")
            await page.get_by_role("button", name="Reload").click()
            await expect(page.get_by_text("so the earlier one stays in use")).to_be_visible()
            await expect(small).to_be_visible()
        finally:
            file.write_text(CATALOG)
            await page.get_by_role("button", name="Reload").click()
            await expect(page.get_by_role("row", name="research")).to_contain_text("$20.00")


async def test_each_server_of_a_provider_is_shown(
    browser: Browser, team: RunningServer, admin: Visitor, width: int
) -> None:
    async with team.client(headers=admin.headers) as client:
        body = {"model": "farm/wheat", "messages": [{"role": "user", "content": "Hi"}]}
        assert (await client.post("/v1/chat/completions", json=body)).status_code == 502
    async with signed_in(browser, team, "/#/admin/status", visitor=admin, width=width) as page:
        for port in (9, 11):
            row = page.get_by_role("row", name=f"farm at http://127.0.0.1:{port}/v1")
            await expect(row).to_contain_text("Skipped for 15 seconds")
        await page.goto("/#/admin/catalog")
        row = page.get_by_role("row", name="farm").first
        await expect(row).to_contain_text("http://127.0.0.1:9/v1, http://127.0.0.1:11/v1")


async def test_user_learns_whom_to_ask_and_cannot_delete_the_account(
    browser: Browser, team: RunningServer, admin: Visitor, width: int
) -> None:
    user = await asyncio.to_thread(new_visitor, team)
    async with signed_in(browser, team, "/#/wallet", visitor=user, width=width) as page:
        await expect(page.get_by_text("To get more funds, ask it-help@example.com.")).to_be_visible()
        await page.goto("/#/settings")
        await expect(page.get_by_role("button", name="Export data")).to_be_visible()
        await expect(page.get_by_role("heading", name="Delete account")).to_have_count(0)
