"""Adding funds in the browser: who is known, what is refused, the sandbox from the first page to the pro tier."""

import asyncio
import dataclasses
import html
import re
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from typing import Any

import httpx
import pytest
from starlette.responses import Response

from svc.auth import accounts
from svc.billing import invariants, payments
from svc.billing.checkout_cookie import COOKIE, set_cookie
from svc.config import Config, from_environ
from svc.errors import StartError
from svc.routes.pages import release
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.support.cases import each
from tests.support.loopback_api import DROP
from tests.support.payment_processor import API_KEY, SECRET, processor_on_loopback

FORM = {"content-type": "application/x-www-form-urlencoded"}


@dataclasses.dataclass
class Browser:
    """Visits pages with the cookies it was given, as a browser does; forms carry the Origin of the page."""

    service: Service
    cookie: str | None = None
    headers: dict[str, str] = dataclasses.field(default_factory=dict)  # of the account's session, for the API

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self._send("GET", path, headers)

    async def post(self, path: str, fields: dict[str, str] | str = "", **headers: str) -> httpx.Response:
        content = fields if isinstance(fields, str) else str(httpx.QueryParams(fields))
        return await self._send(
            "POST", path, {"origin": self.service.config.base_url, **FORM, **headers}, content=content
        )

    async def _send(self, method: str, path: str, headers: dict[str, str], **options: Any) -> httpx.Response:
        self.service.client.cookies.clear()
        own = {"cookie": f"{COOKIE}={self.cookie}"} if self.cookie else {}
        answer = await self.service.client.request(method, path, headers={**own, **headers}, **options)
        self.service.client.cookies.clear()
        assert answer.status_code == 303 or answer.headers["content-type"] == "text/html; charset=utf-8"
        return answer

    async def balance_micros(self) -> int:
        account = await self.service.client.get("/billing/account", headers=self.headers)
        balance: int = account.json()["wallet_balance_micros"]
        return balance

    async def open_checkout(self, amount: str = "25.00") -> str:
        """The path of the sandbox's page for a new checkout."""
        answer = await self.post("/checkout", {"amount": amount})
        assert answer.status_code == 303, answer.text
        return answer.headers["location"].removeprefix(self.service.config.base_url)


async def browser_of_new_account(service: Service, email: str | None = None) -> Browser:
    service.client.cookies.clear()
    session = await service.sign_up(email)
    cookie = service.client.cookies[COOKIE]
    service.client.cookies.clear()
    return Browser(service, cookie, bearer(session["access_token"]))


@pytest.fixture
async def browser(service: Service) -> Browser:
    return await browser_of_new_account(service)


async def checkouts(service: Service) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = await service.state["db"].read(
        lambda conn: [
            tuple(row) for row in conn.execute("SELECT amount_micros, state FROM checkouts ORDER BY created_at")
        ]
    )
    return rows


# --- who is known here


async def test_sign_up_and_login_set_the_cookie_and_logout_clears_it(service: Service) -> None:
    session = await service.sign_up("ada@example.com")
    login = await service.client.post("/auth/login", json={"email": "ada@example.com", "password": PASSWORD})
    logout = await service.client.post("/auth/logout", headers=bearer(session["access_token"]))
    for answer, age in ((login, "28800"), (logout, "0")):
        [header] = answer.headers.get_list("set-cookie")
        assert header.startswith("__Host-svc_checkout=")
        morsel = SimpleCookie(header)[COOKIE]
        assert (morsel["path"], morsel["domain"], morsel["max-age"]) == ("/", "", age)
        assert morsel["secure"] and morsel["httponly"] and morsel["samesite"].lower() == "lax"
    failed = await service.client.post("/auth/login", json={"email": "ada@example.com", "password": "wrong password"})
    assert "set-cookie" not in failed.headers


async def test_cookie_and_session_are_not_interchangeable(browser: Browser) -> None:
    service, token = browser.service, browser.headers["authorization"].removeprefix("Bearer ")
    cookies = {COOKIE: browser.cookie or ""}
    for path in ("/user/me", "/billing/account", "/user/api-keys"):
        for headers in ({"cookie": f"{COOKIE}={browser.cookie}"}, bearer(browser.cookie or "")):
            assert (await service.client.get(path, headers=headers)).status_code == 401
    key = (await service.make_key(browser.headers))["key"]
    for value in (
        token,
        key,
        "",
        "x",
        cookies[COOKIE][:-1],
        cookies[COOKIE] + "A",
        cookies[COOKIE].replace(".", ".1", 1),
    ):
        assert (await Browser(service, value).get("/checkout")).status_code == 401
    forged = Response()
    account_id = (await service.client.get("/user/me", headers=browser.headers)).json()["id"]
    set_cookie(forged, service.state["derived_keys"]["session"], account_id, service.clocks.now)
    value = SimpleCookie(forged.headers["set-cookie"])[COOKIE].value
    assert (await Browser(service, value).get("/checkout")).status_code == 401
    for headers in (bearer(token), bearer(key)):
        assert (await Browser(service).get("/checkout", **headers)).status_code == 401
        assert (await Browser(service).post("/checkout", {"amount": "25"}, **headers)).status_code == 401
    assert await checkouts(service) == []


async def test_cookie_expires_after_8_hours_and_with_the_account(browser: Browser, clocks: Clocks) -> None:
    clocks.advance(8 * 3600 - 1)
    assert (await browser.get("/checkout")).status_code == 200
    other = await browser_of_new_account(browser.service)
    clocks.advance(1)
    assert (await browser.get("/checkout")).status_code == 401
    gone = await browser.service.client.request(
        "DELETE", "/user/me", json={"password": PASSWORD}, headers=other.headers
    )
    assert gone.status_code == 204 and (await other.get("/checkout")).status_code == 401


async def test_cookie_from_before_the_verification_of_the_address_is_rejected(browser: Browser) -> None:
    service = browser.service
    account_id = (await service.client.get("/user/me", headers=browser.headers)).json()["id"]
    for later_seconds, status in ((-1, 200), (0, 200), (0.001, 401)):
        verified = {"email_verified_at": service.clocks.now + later_seconds}
        await service.state["db"].write(accounts.update_account, account_id, verified)
        assert (await browser.get("/checkout")).status_code == status


async def test_cookie_of_another_installation_is_rejected(browser: Browser, config: Config, clocks: Clocks) -> None:
    elsewhere = dataclasses.replace(config, data_dir=config.data_dir / "elsewhere")
    async with serving(elsewhere, clocks) as service:
        assert (await Browser(service, browser.cookie).get("/checkout")).status_code == 401


async def test_sign_in_form_sets_the_cookie_only(service: Service) -> None:
    await service.sign_up("ada@example.com")
    visitor = Browser(service)
    page = await visitor.get("/checkout")
    assert page.status_code == 401 and 'action="/checkout/sign-in"' in page.text
    for fields in (
        {"email": "ada@example.com", "password": "wrong"},
        {"email": "bob@example.com", "password": PASSWORD},
        {},
    ):
        refused = await visitor.post("/checkout/sign-in", fields)
        assert refused.status_code == 401 and "set-cookie" not in refused.headers
        assert "The email address or the password is wrong." in refused.text
    answer = await visitor.post("/checkout/sign-in", {"email": "ADA@example.com", "password": PASSWORD})
    assert answer.status_code == 303 and answer.headers["location"] == f"{service.config.base_url}/checkout"
    visitor.cookie = SimpleCookie(answer.headers["set-cookie"])[COOKIE].value
    page = await visitor.get("/checkout")
    assert page.status_code == 200 and "ada@example.com" in page.text


async def test_form_and_login_share_one_limit(service: Service) -> None:
    body = {"email": "ada@example.com", "password": "wrong password"}
    statuses = [(await service.client.post("/auth/login", json=body)).status_code for _ in range(3)]
    forms = [await Browser(service).post("/checkout/sign-in", body) for _ in range(3)]
    assert statuses + [form.status_code for form in forms] == [401] * 5 + [429]
    assert forms[-1].headers["retry-after"] == "59"


# --- what is refused


@pytest.mark.parametrize(
    "origin", [None, "null", "", "https://evil.example", "http://127.0.0.1:8443", "https://127.0.0.1", "same/"]
)
async def test_form_of_another_site_is_403(browser: Browser, origin: str | None) -> None:
    service, path = browser.service, await browser.open_checkout()
    headers = {**FORM, "cookie": f"{COOKIE}={browser.cookie}"}
    if origin is not None:
        headers["origin"] = f"{service.config.base_url}/" if origin == "same/" else origin
    for target in ("/checkout", path, "/checkout/sign-in"):
        answer = await service.client.post(target, content="amount=25.00", headers=headers)
        assert answer.status_code == 403 and "set-cookie" not in answer.headers
    two = [*headers.items(), ("origin", service.config.base_url), ("origin", service.config.base_url)]
    assert (await service.client.post("/checkout", content="amount=25.00", headers=two)).status_code == 403
    assert await checkouts(service) == [(25_000_000, "open")] and await browser.balance_micros() == 0


async def test_origin_has_no_port_443(config: Config, clocks: Clocks) -> None:
    async with serving(dataclasses.replace(config, port=443, base_url=""), clocks) as service:
        browser = await browser_of_new_account(service)
        answer = await browser.post("/checkout", {"amount": "5"}, origin="https://127.0.0.1")
        assert answer.status_code == 303


AMOUNTS = {
    "5.00": 5_000_000,
    "5": 5_000_000,
    " 5.0 ": 5_000_000,
    "12.34": 12_340_000,
    "10000": 10_000_000_000,
    "10000.00": 10_000_000_000,
    "12,5": 12_500_000,
    " 12,34 ": 12_340_000,
}
WRONG_AMOUNTS = [
    *[
        "4.99",
        "0",
        "-5",
        "+5",
        "5.001",
        "5.009999",
        "10000.01",
        "10001",
        "99999999999999999999",
        "1e3",
        "1,000",
        "1.000,00",
        "1,000.00",
        "NaN",
    ],
    *["Infinity", "inf", "0x10", "5.", ".5", "", " ", "five", "\u0665", "5\0", "$5", "5 5", "5\n5"],
]


@pytest.mark.parametrize("amount", AMOUNTS)
async def test_amounts_from_5_to_10000_dollars_are_accepted(browser: Browser, amount: str) -> None:
    assert (await browser.post("/checkout", {"amount": amount})).status_code == 303
    assert await checkouts(browser.service) == [(AMOUNTS[amount], "open")]


async def test_other_amounts_are_400(browser: Browser) -> None:
    for amount in WRONG_AMOUNTS:
        browser.service.clocks.advance(61)  # reset every limit
        answer = await browser.post("/checkout", {"amount": amount})
        assert answer.status_code == 400 and "5.00 to 10000.00" in answer.text, amount
        assert await checkouts(browser.service) == [], amount


@each(
    ("content", "content_type", "status"),
    [
        ("", FORM["content-type"], 400),
        ("other=5", FORM["content-type"], 400),
        ("amount=25&amount=25", FORM["content-type"], 400),
        ("amount=%ff", FORM["content-type"], 400),
        ("&".join(f"a{n}=1" for n in range(50)), FORM["content-type"], 400),
        ("amount=25" + "0" * 20_000, FORM["content-type"], 413),
        ('{"amount": "25"}', "application/json", 415),
        ("amount=25", "text/plain", 415),
        ("amount=25&account_id=user_x&tier=pro&amount_micros=1", FORM["content-type"] + "; charset=UTF-8", 303),
    ],
)
async def test_malformed_form_is_rejected(browser: Browser, content: str, content_type: str, status: int) -> None:
    answer = await browser.post("/checkout", content, **{"content-type": content_type})
    assert answer.status_code == status
    assert await checkouts(browser.service) == ([(25_000_000, "open")] if status == 303 else [])


# --- the pages


async def test_pages_have_a_strict_policy_and_escape_values(service: Service) -> None:
    browser = await browser_of_new_account(service, "a'&`b@example.com")
    path = await browser.open_checkout()
    pages = [
        await browser.get("/checkout"),
        await Browser(service).get("/checkout"),
        await browser.get(path),
        await browser.get("/checkout/return?checkout=<script>alert(1)</script>"),
        await browser.get("/checkout/sandbox/<script>alert(1)"),
        await browser.post("/checkout", {"amount": '"><script>alert(1)</script>'}),
        await browser.post("/checkout", {"amount": "5"}, origin="https://evil.example"),
    ]
    assert [page.status_code for page in pages] == [200, 401, 200, 200, 404, 400, 403]
    for page in pages:
        policy = dict(part.strip().partition(" ")[::2] for part in page.headers["content-security-policy"].split(";"))
        assert policy == {
            "default-src": "'none'",
            "style-src": "'self'",
            "img-src": "'self' data:",
            "base-uri": "'none'",
            "form-action": "'self'",
            "frame-ancestors": "'none'",
        }
        assert page.headers["referrer-policy"] == "same-origin" and page.headers["cache-control"] == "no-store"
        assert page.headers["x-content-type-options"] == "nosniff" and "strict-transport-security" in page.headers
        assert (
            "<script" not in page.text
            and " on" not in re.sub(r">[^<]*<", "><", page.text)
            and "style=" not in page.text
        )
        sources = re.findall(r'(?:href|src|action)="([^"]*)"', page.text)
        assert all(source == "" or source.startswith(("/", "data:image/svg+xml,")) for source in sources)
    assert "a'&`b@example.com" not in pages[0].text and html.escape("a'&`b@example.com") in pages[0].text


async def test_style_sheets_of_the_pages_exist(browser: Browser) -> None:
    page = await browser.get("/checkout")
    sheets = re.findall(r'<link rel="stylesheet" href="([^"]+)">', page.text)
    assert sheets == [f"/static/{release()}/app/app.css"]
    for sheet in sheets:
        assert (await browser.service.client.get(sheet)).headers["content-type"] == "text/css; charset=utf-8"


async def test_every_sandbox_page_marks_test_money(browser: Browser) -> None:
    path = await browser.open_checkout()
    visitor = Browser(browser.service)
    pages = [
        await browser.get("/checkout"),
        await browser.get(path),
        await browser.get("/checkout/return"),
        await visitor.get(path),
    ]
    pages += [await browser.post("/checkout", {"amount": "x"}), await browser.get("/checkout/sandbox/none")]
    assert all("Test money." in page.text for page in pages)


# --- the sandbox, whole


async def test_sandbox_payment_credits_once_and_upgrades_to_pro(browser: Browser) -> None:
    service = browser.service
    page = await browser.get("/checkout")
    assert page.status_code == 200 and "Balance: $0.00" in page.text and "upgrades the account to pro: 120" in page.text
    assert re.findall(r'<form method="post" action="([^"]+)"', page.text) == ["/checkout", "/checkout"]
    path = await browser.open_checkout("12.50")
    assert path.startswith("/checkout/sandbox/")
    sandbox = await browser.get(path)
    assert f'<form method="post" action="{path}">' in sandbox.text and "$12.50" in sandbox.text
    before = (await browser.get(f"/checkout/return?checkout={path.rpartition('/')[2]}")).text
    assert "waiting for the confirmation" in before
    answers = await asyncio.gather(*(browser.post(path) for _ in range(5)))  # an impatient person
    answers.append(await browser.post(path))
    assert {answer.status_code for answer in answers} == {303}
    back = answers[0].headers["location"].removeprefix(service.config.base_url)
    assert "$12.50 was added to your wallet." in (await browser.get(back)).text
    assert await browser.balance_micros() == 12_500_000
    me = (await service.client.get("/user/me", headers=browser.headers)).json()
    ledger = (await service.client.get("/billing/ledger", headers=browser.headers)).json()["data"]
    assert "pro" not in (await browser.get("/checkout")).text  # which it is now
    assert me["tier"] == "pro" and [row["description"] for row in ledger] == ["Added funds (test money)"]
    assert "Balance: $12.50" in (await browser.get("/checkout")).text
    assert await service.state["db"].read(invariants.broken) == []


async def test_return_page_without_cookie_reveals_nothing(browser: Browser) -> None:
    path = await browser.open_checkout()
    back = (await browser.post(path)).headers["location"].removeprefix(browser.service.config.base_url)
    assert "$25.00" in (await browser.get(back)).text
    other = await browser_of_new_account(browser.service)
    unknown = (await other.get("/checkout/return?checkout=chk_unknown")).text
    for stranger in (other, Browser(browser.service)):
        page = await stranger.get(back)
        assert page.status_code == 200 and page.text == unknown and "$" not in page.text


async def test_checkout_of_another_account_is_404_and_stays_unpaid(browser: Browser) -> None:
    path = await browser.open_checkout()
    other = await browser_of_new_account(browser.service)
    for ask in (other.get, other.post):
        theirs, unknown = await ask(path), await ask("/checkout/sandbox/sandbox_" + "x" * 32)
        assert theirs.status_code == unknown.status_code == 404 and theirs.text == unknown.text
    assert (await Browser(browser.service).post(path)).status_code == 401
    checkout_id = (
        await browser.service.state["db"].read(lambda conn: conn.execute("SELECT id FROM checkouts").fetchone())
    )[0]
    assert (
        await browser.post(f"/checkout/sandbox/{checkout_id}")
    ).status_code == 404  # the session's id leads there, not ours
    assert (await browser.balance_micros(), await other.balance_micros()) == (0, 0)


async def test_sandbox_event_is_valid_only_for_its_installation(
    browser: Browser, config: Config, clocks: Clocks
) -> None:
    await browser.open_checkout()
    state = browser.service.state
    row = await state["db"].read(lambda conn: conn.execute("SELECT account_id, id FROM checkouts").fetchone())
    checkout = await state["db"].read(payments.checkout_of, *row)
    signature, body = state["payments"].sandbox_event(checkout, clocks.now)
    headers = {"stripe-signature": signature}
    elsewhere = dataclasses.replace(config, data_dir=config.data_dir / "elsewhere")
    async with serving(elsewhere, clocks) as other:
        assert (await other.client.post("/billing/webhook", content=body, headers=headers)).status_code == 400
    answers = [
        (await browser.service.client.post("/billing/webhook", content=body, headers=headers)).json() for _ in range(2)
    ]
    assert [answer["credited"] for answer in answers] == [True, False]
    assert await browser.balance_micros() == 25_000_000


# --- the other processors


async def test_without_payments_pages_say_so_and_webhook_is_400(config: Config, clocks: Clocks) -> None:
    async with serving(dataclasses.replace(config, payments="none"), clocks) as service:
        browser = await browser_of_new_account(service)
        page, form = await browser.get("/checkout"), await browser.post("/checkout", {"amount": "25"})
        assert (page.status_code, form.status_code) == (200, 403)
        assert all("switched off" in answer.text and "<form" not in answer.text for answer in (page, form))
        assert (await service.client.post("/billing/webhook", content=b"{}")).status_code == 400
        assert await checkouts(service) == []


@pytest.fixture
async def stripe_config(config: Config) -> AsyncIterator[tuple[Config, Any]]:
    async with processor_on_loopback() as processor:
        options = {"stripe_secret_key": API_KEY, "stripe_webhook_secret": SECRET, "stripe_api": processor.url}
        yield dataclasses.replace(config, payments="stripe", **options), processor  # type: ignore[arg-type]


async def test_stripe_is_in_the_form_policy_and_disables_the_sandbox(
    stripe_config: tuple[Config, Any], clocks: Clocks
) -> None:
    config, processor = stripe_config
    async with serving(config, clocks) as service:
        browser = await browser_of_new_account(service)
        page = await browser.get("/checkout")
        assert (
            f"form-action 'self' https://checkout.stripe.com {processor.url};"
            in page.headers["content-security-policy"]
        )
        assert "Test money" not in page.text
        answer = await browser.post("/checkout", {"amount": "25"})
        [session] = processor.sessions.values()
        assert answer.headers["location"] == session["url"]
        for ask in (browser.get, browser.post):
            assert (await ask(f"/checkout/sandbox/{session['id']}")).status_code == 404
        for faults, expected in (([DROP] * 3, "cannot be reached"), ([401], "refused with status 401")):
            processor.faults[:] = faults
            failed = await browser.post("/checkout", {"amount": "30"})
            assert failed.status_code == 502 and expected in failed.text and "Nothing was charged" in failed.text
        assert await checkouts(service) == [(25_000_000, "open"), (30_000_000, "open"), (30_000_000, "open")]


# --- settings


@each(
    ("settings", "mode"),
    [
        ({}, "sandbox"),
        ({"SVC_HOST": "0.0.0.0"}, "none"),
        ({"SVC_BASE_URL": "https://ai.example"}, "none"),
        ({"SVC_BASE_URL": "https://ai.example", "SVC_PAYMENTS": "sandbox"}, "sandbox"),
        ({"SVC_PAYMENTS": "none"}, "none"),
        ({"SVC_PAYMENTS": "stripe", "SVC_STRIPE_SECRET_KEY": "sk_x", "SVC_STRIPE_WEBHOOK_SECRET": "whsec_x"}, "stripe"),
    ],
)
def test_sandbox_is_the_default_only_in_local_posture(settings: dict[str, str], mode: str) -> None:
    assert from_environ(settings).payment_mode == mode


@each(
    ("settings", "name"),
    [
        ({"SVC_PAYMENTS": "paypal"}, "SVC_PAYMENTS"),
        ({"SVC_PAYMENTS": "stripe"}, "SVC_STRIPE_SECRET_KEY"),
        ({"SVC_PAYMENTS": "stripe", "SVC_STRIPE_SECRET_KEY": "sk_x"}, "SVC_STRIPE_WEBHOOK_SECRET"),
        ({"SVC_STRIPE_SECRET_KEY": "sk_x", "SVC_STRIPE_WEBHOOK_SECRET": "whsec_x"}, "SVC_PAYMENTS=stripe"),
        ({"SVC_STRIPE_SECRET_KEY": "sk_\u00e9"}, "SVC_STRIPE_SECRET_KEY"),
        ({"SVC_STRIPE_WEBHOOK_SECRET": "two words"}, "SVC_STRIPE_WEBHOOK_SECRET"),
        ({"SVC_STRIPE_API": "http://api.stripe.com"}, "SVC_STRIPE_API"),
        ({"SVC_STRIPE_API": "https://user:x@api.stripe.com"}, "SVC_STRIPE_API"),
        ({"SVC_STRIPE_API": "https://api.stripe.com:99999"}, "SVC_STRIPE_API"),
        ({"SVC_STRIPE_API": "api.stripe.com"}, "SVC_STRIPE_API"),
    ],
)
def test_wrong_payment_setting_stops_the_start(settings: dict[str, str], name: str) -> None:
    with pytest.raises(StartError) as refusal:
        from_environ(settings)
    assert name in str(refusal.value) and "\n" not in str(refusal.value)
    assert not any(secret in str(refusal.value) for secret in ("sk_", "whsec_", "two words"))


async def test_reachable_sandbox_logs_a_warning(config: Config, clocks: Clocks) -> None:
    for base_url, warned in ((config.base_url, False), ("https://ai.example", True)):
        own = dataclasses.replace(config, payments="sandbox", base_url=base_url)
        async with serving(own, clocks):
            pass
        log = (config.data_dir.parent / "log").read_text()
        assert ("test money" in log) == warned


async def test_wrong_form_is_shown_again_with_its_values(browser: Browser) -> None:
    answer = await browser.post("/checkout", {"amount": '4.99"><script>'})
    assert answer.status_code == 400 and 'role="alert"' in answer.text
    assert 'value="4.99&quot;&gt;&lt;script&gt;"' in answer.text and 'action="/checkout"' in answer.text
    answer = await Browser(browser.service).post("/checkout/sign-in", {"email": "ada@example.com", "password": "wrong"})
    assert (
        answer.status_code == 401
        and 'value="ada@example.com"' in answer.text
        and "wrong" not in answer.text.replace("is wrong", "")
    )


async def test_20_checkouts_an_hour_without_rejected_amounts(browser: Browser) -> None:
    for _ in range(20):
        assert (await browser.post("/checkout", {"amount": "1"})).status_code == 400
        assert (await browser.post("/checkout", {"amount": "5"})).status_code == 303
    refused = await browser.post("/checkout", {"amount": "7.50"})
    assert refused.status_code == 429 and int(refused.headers["retry-after"]) > 0 and 'value="7.50"' in refused.text
    other = await browser_of_new_account(browser.service)
    assert (await other.post("/checkout", {"amount": "5"})).status_code == 303
    browser.service.clocks.advance(3600)
    assert (await browser.post("/checkout", {"amount": "5"})).status_code == 303


async def test_unpaid_checkouts_are_deleted_after_30_days(browser: Browser) -> None:
    paid = await browser.open_checkout("10")
    assert (await browser.post(paid)).status_code == 303
    for amount in ("11", "12"):
        await browser.open_checkout(amount)
    browser.service.clocks.advance(30 * 24 * 3600 - 1)
    await (await browser_of_new_account(browser.service)).open_checkout("13")
    assert len(await checkouts(browser.service)) == 4
    browser.service.clocks.advance(8 * 3600)
    again = await browser_of_new_account(browser.service)
    await again.open_checkout("14")
    assert [amount // 1_000_000 for amount, _ in await checkouts(browser.service)] == [10, 13, 14]


async def test_suspended_account_cannot_pay(browser: Browser) -> None:
    await browser.service.sign_up("ada@example.com")
    form = {"email": "ada@example.com", "password": PASSWORD}
    db = browser.service.state["db"]
    for account in await db.read(accounts.all_accounts):
        await db.write(accounts.update_account, account.id, {"suspended_at": 1.0})
    for refused in (
        await browser.get("/checkout"),
        await browser.get("/checkout/return"),
        await browser.post("/checkout", {"amount": "25"}),
        await browser.post("/checkout/sign-in", form),
    ):
        assert (
            refused.status_code == 403
            and "This account is suspended" in refused.text
            and "set-cookie" not in refused.headers
        )
    wrong = await browser.post("/checkout/sign-in", {**form, "password": "a wrong one"})
    assert wrong.status_code == 401 and "is wrong" in wrong.text
