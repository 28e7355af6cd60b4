"""The views of the administration on the contact sheets, and the pages before a sign-in and around payments."""

import json
import time
from typing import Any

import httpx
from playwright.async_api import Page

from svc import audit
from tests.support.browser import Visitor, database, new_visitor
from tests.support.server import RunningServer
from tests.support.sheet_account import Account
from tests.support.sheet_views import Views, at, closed

_KEEP = "items => { localStorage.clear(); for (const {name, value} of items) localStorage[name] = value; }"
_OPERATORS = {"restore": None, "secrets.rotate": None, "backup": None, "model.remove": {"file": "old.gguf"}}
_SIZES = {"size_bytes": 639_446_688, "used_bytes": 0, "error": None}
_LOCAL = {
    "installed": True,
    "folder": "/var/lib/svc/models",
    "data": [
        {"id": f"local/{state}", "file": f"{state}.gguf", "state": state, **_SIZES}
        for state in ("ready", "unloaded", "loading")
    ],
    "download": {"name": "small", "url": "", "running": True, "bytes": 312e6, "size_bytes": 807e6, "error": None},
}
_LOCAL["data"].append({**_LOCAL["data"][0], "id": "local/broken", "state": "failed", "error": "The file is too short."})


def fill_administration(server: RunningServer) -> Visitor:
    """Sign up the administrator and one more person, and make entries of the audit log."""
    administrator, person = new_visitor(server, "ada@example.com", dollars=42), new_visitor(server, dollars=5)
    with httpx.Client(
        base_url=server.base_url, verify=server.tls or False, headers=administrator.headers, trust_env=False
    ) as client:
        user = f"/admin/users/{person.id}"
        requests: list[tuple[str, str, dict[str, Any]]] = [
            ("PATCH", user, {"name": "Grace Hopper", "admin": True}),
            ("PATCH", user, {"admin": False, "status": "suspended"}),
            ("POST", f"{user}/credits", {"amount_micros": 12_500_000, "id": "first"}),
            ("POST", f"{user}/debits", {"amount_micros": 2_500_000, "id": "second"}),
            ("POST", f"{user}/reset-link", {}),
            ("POST", "/admin/users", {"email": "someone.with.a.long.name@department.example.com"}),
        ]
        for method, path, body in requests:
            client.request(method, path, json=body).raise_for_status()
    with database(server) as tx:
        for action, details in _OPERATORS.items():
            audit.add(tx, time.time(), audit.OPERATOR, action, None, details)
    return administrator


async def _seen_by(page: Page, visitor: Visitor | None) -> None:
    """Sign in as another person, or sign out."""
    await page.goto("/healthz")
    await page.context.clear_cookies()
    if visitor:
        await page.context.add_cookies(visitor.storage["cookies"])
    await page.evaluate(_KEEP, visitor.storage["origins"][0]["localStorage"] if visitor else [])


async def administration_views(page: Page, of: Account) -> Views:
    await _seen_by(page, of.administrator)
    await at(page, "admin/users", "tbody tr")
    yield "users"
    await page.locator(".section-head .button-primary").click()
    await page.locator("dialog[open]").wait_for()
    yield "invite"
    await closed(page)
    await at(page, f"admin/users/{of.visitor.id}", ".account-facts")
    yield "user"
    await page.locator(".section-row .button-danger").click()
    await page.locator("dialog[open]").wait_for()
    yield "delete user"
    await closed(page)
    await page.route("**/admin/models", lambda route: route.fulfill(json=_LOCAL))
    for part, ready in (
        ("spend", ".table-total"),
        ("support", ".list > li"),
        ("status", ".figures"),
        ("models", ".table"),
        ("prompts", ".button-primary"),
        ("tools", ".table"),
        ("catalog", ".table"),
        ("audit", ".list > li"),
        ("sign-ins", ".table"),
    ):
        await at(page, f"admin/{part}", ready)
        yield f"admin, {part}"
    await page.unroute("**/admin/models")
    await at(page, f"admin/support/{of.ids['support']}", ".desk-messages")
    yield "admin, support, one"
    await _seen_by(page, of.visitor)


async def other_pages(page: Page, of: Account) -> Views:
    await page.goto("/checkout")
    yield "checkout"
    await page.locator("#amount").evaluate("field => { field.removeAttribute('pattern'); field.value = 3; }")
    await page.locator("#amount").press("Enter")
    await page.get_by_role("alert").wait_for()
    yield "checkout, refused"
    await page.locator("#amount").fill("25")
    await page.locator("#amount").press("Enter")
    await page.wait_for_url("**/sandbox/**")
    yield "sandbox"
    await _seen_by(page, None)
    await page.goto("/")
    await page.locator(".welcome-form input").first.wait_for()
    yield "sign-up"
    await page.locator(".welcome-links .button").first.click()
    yield "sign-in"
    await page.locator(".welcome-links .button").nth(1).click()
    yield "forgotten password"
    for path in ("verify-email", "verify-email#token", "password-reset", "password-reset#token", "nowhere"):
        await page.goto("/healthz")
        await page.goto(f"/{path}")
        yield path
    await _seen_by(page, of.visitor)
    await page.evaluate("value => { localStorage['svc.model'] = value }", json.dumps("lab/aurora"))
