"""The checkout pages, the only way to add funds.

in_html(from_our_page(recognised(handler))): errors as pages -> Origin (403) -> the cookie's account (401, which asks to
sign in) -> handler(request, account)
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from urllib.parse import parse_qsl, urlsplit

from svc import languages
from svc.auth import accounts
from svc.auth.accounts import Account
from svc.auth.emails import LONGEST
from svc.billing import checkout_cookie, payments, wallet
from svc.billing import checkout_pages as pages
from svc.billing.stripe import CHECKOUT_ORIGIN
from svc.errors import ApiError
from svc.ids import new_id
from svc.money import dollars
from svc.routes.auth import checked_login
from svc.routes.billing import deliver
from svc.routes.pages import framed
from svc.routes.schemas.common import CHECKOUT_COOKIE_HEADER, STORAGE
from svc.server.bodies import read_body
from svc.server.guards import SUSPENDED
from svc.server.interface import Answer, Implied, Operation, Parameter, Refusal, header, path_id, token_in
from svc.server.limits import CHAT_PER_MINUTE, KIB
from svc.server.openapi import HTML, REFERRER_POLICY
from svc.server.web import Endpoint, Request, Response, add_log_fields
from svc.shapes import json_object, string

describes = partial(Operation, "Checkout")
_WRONG_FORM = Refusal("invalid_value", when="The amount or the form is wrong.")
_COOKIE = token_in(
    "cookie",
    checkout_cookie.COOKIE,
    "checkoutCookie",
    f"The cookie `{checkout_cookie.COOKIE}`, which sign-in sets. Only the checkout pages accept it.",
)
_TO_CHECKOUT = {
    "location": header("The address to open.", string, "https://127.0.0.1:8443/checkout"),
    "referrer-policy": REFERRER_POLICY,
}
_PAGE = {"text/html": HTML}
_NO_PAYMENT = Refusal("not_found", "There is no such payment.", when="The account has no such payment.")
_PAYMENT = path_id(
    "session_id",
    "The id of the sandbox payment.",
    "sandbox_4fGk2mXq9TzLw8RbYc1VdN4fGk2mXq9T",
    _NO_PAYMENT,
)
_FORM_BYTES = 16 * KIB
_FORM_TYPE = "application/x-www-form-urlencoded"
# Keyboards of many languages have no point. In "1,000" the comma is none of these, and the amount is refused.
_DECIMAL_COMMA = re.compile(r",(?=[0-9]{1,2}$)")
_TYPED_LENGTH = 20  # of a wrong amount that the form shows again


@Implied(html=True)
def in_html(handler: Endpoint) -> Endpoint:
    """Show errors as pages; 401 asks to sign in. If payments are switched off, every page says so."""

    async def endpoint(request: Request) -> Response | None:
        if request.state.payments.mode == "none":
            status = 403 if request.scope["method"] == "POST" else 200
            return _page(request, "title", pages.switched_off(_texts(request)), status)
        try:
            return await handler(request)
        except ApiError as error:
            signs_in = error.status == 401 or error.code == "passwords_disabled"
            return _refused(request, error, _sign_in_form(request) if signs_in else pages.problem_only(_texts(request)))

    return endpoint


_FOREIGN_FORM = "The form was not sent from a page of this service, or payments are switched off."


@Implied([Refusal("invalid_request", when=_FOREIGN_FORM, status="403")])
def from_our_page(handler: Endpoint) -> Endpoint:
    """Refuse a form of another site, which could be sent with the account's cookie."""

    async def guarded(request: Request) -> Response | None:
        ours = _origin(request.state.config.base_url)
        if request.headers.getlist("origin") != [ours]:
            raise ApiError("invalid_request", f"Open {ours}/checkout and send the form from there.", status=403)
        return await handler(request)

    return guarded


@Implied([Refusal("session_expired", when="The form to sign in."), SUSPENDED, STORAGE], security=_COOKIE)
def recognised(handler: Callable[[Request, Account], Awaitable[Response | None]]) -> Endpoint:
    """Pass the cookie's account to the handler. Bearer tokens are ignored."""

    async def endpoint(request: Request) -> Response | None:
        account = await _account_of_cookie(request)
        if account is None:
            raise ApiError("session_expired")
        return await handler(request, account)

    return endpoint


async def _account_of_cookie(request: Request) -> Account | None:
    cookie = checkout_cookie.read_cookie(request.headers, request.state.derived_keys["checkout"], request.state.clock())
    if cookie is None:
        return None
    account_id, set_at_ms = cookie
    add_log_fields(request, account=account_id)
    account = await request.state.db.read(accounts.account_by_id, account_id)
    if account is None or set_at_ms < int((account.email_verified_at or 0) * 1000):
        return None  # a cookie from before the address was verified may be another person's
    request.scope["language"] = account.language
    return account.check_active()


def _origin(base_url: str) -> str:
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc.removesuffix(':443')}"  # as browsers write it


@describes("Show the page to add funds", answer=Answer("The form for the amount.", contents=_PAGE))
async def get_checkout_page(request: Request, account: Account) -> Response:
    return _page(request, "title", await _amounts(request, account))


async def _amounts(request: Request, account: Account, typed: str = "") -> str:
    found = await request.state.db.read(wallet.balances, account.id)
    offered = CHAT_PER_MINUTE if account.tier == "free" else None
    balance = languages.money(_language(request), dollars(found["wallet_balance_micros"]))
    return pages.amounts(_texts(request), account.email, balance, typed, offered)


@describes(
    "Sign in to add funds",
    "Only from this service's page. Limit: 5 a minute by default for an IP address, shared with `/auth/login`.",
    body=json_object(
        "CheckoutSignInForm",
        email="ada@example.com",
        password=string.about(example="correct horse battery"),
    ),
    most_bytes=_FORM_BYTES,
    media_type=_FORM_TYPE,
    answer=Answer(
        "To the page to add funds.", headers={**_TO_CHECKOUT, "set-cookie": CHECKOUT_COOKIE_HEADER}, status=303
    ),
    errors=[_WRONG_FORM, Refusal("invalid_credentials", when="The form to sign in."), SUSPENDED],
)
async def sign_in_to_checkout(request: Request) -> Response:
    form = await _form(request)
    email = form.get("email", "")
    try:
        account = await checked_login(request, email, form.get("password", ""))
    except ApiError as error:
        if error.code != "invalid_credentials":
            raise
        return _refused(request, error, _sign_in_form(request, email[:LONGEST]))
    answer = _see_other(f"{request.state.config.base_url}/checkout")
    checkout_cookie.set_cookie(answer, request.state.derived_keys["checkout"], account.id, request.state.clock())
    return answer


def _sign_in_form(request: Request, email: str = "") -> str:
    typed = email if request.state.config.passwords else None
    return pages.sign_in(_texts(request), typed, list(request.state.identity_providers))


@describes(
    "Start a payment",
    "Only from this service's page: `Origin` must be this server.",
    body=json_object("CheckoutForm", amount=string.about(f"{payments.AMOUNT_RULE}.", "25.00")),
    most_bytes=_FORM_BYTES,
    media_type=_FORM_TYPE,
    answer=Answer("To the payment processor's page.", headers=_TO_CHECKOUT, status=303),
    errors=[
        _WRONG_FORM,
        Refusal("rate_limit_exceeded", when="More than 20 checkouts in an hour."),
        Refusal("upstream_error", when="The payment processor failed or cannot be reached. Nothing was charged."),
        Refusal("upstream_timeout", when="The payment processor did not answer in time. Nothing was charged."),
    ],
)
async def begin_checkout(request: Request, account: Account) -> Response:
    state = request.state
    typed = _DECIMAL_COMMA.sub(".", (await _form(request)).get("amount", "").strip())
    try:
        amount_micros = payments.check_amount(typed)
        state.limits.take("checkout", account.id)
    except ApiError as error:
        return _refused(request, error, await _amounts(request, account, typed[:_TYPED_LENGTH]))
    checkout_id = new_id("chk", state.clock())
    await state.db.write(payments.add_checkout, account.id, checkout_id, amount_micros, state.clock())
    session_id, url = await state.payments.open_session(checkout_id, amount_micros)
    await state.db.write(payments.set_session, account.id, checkout_id, session_id)
    return _see_other(url)


@describes(
    "Show the page after a payment",
    parameters=[Parameter("checkout", "The checkout's id.", string, "chk_01m3250v3vn4qvxnatpwzmywwn")],
    answer=Answer("The state of the payment.", contents=_PAGE),
    errors=[SUSPENDED, STORAGE],
)
async def get_checkout_return_page(request: Request) -> Response:
    account = await _account_of_cookie(request)
    checkout_id = request.query_params.get("checkout", "")
    checkout = await request.state.db.read(payments.checkout_of, account.id, checkout_id) if account else None
    amount = languages.money(_language(request), dollars(checkout.amount_micros)) if checkout else ""
    return _page(request, "returned", pages.returned(_texts(request), checkout and checkout.state, amount))


@describes(
    "Show the sandbox payment page",
    "With test money, if `SVC_PAYMENTS` is `sandbox`.",
    parameters=[_PAYMENT],
    answer=Answer("The payment.", contents=_PAGE),
)
async def get_sandbox_page(request: Request, account: Account, session_id: str) -> Response:
    checkout = await _sandbox_checkout(request, account, session_id)
    amount = languages.money(_language(request), dollars(checkout.amount_micros))
    return _page(request, "sandbox_title", pages.sandbox(_texts(request), session_id, amount))


@describes(
    "Pay with test money",
    "Only from this service's page.",
    parameters=[_PAYMENT],
    answer=Answer("To the page after the payment.", headers=_TO_CHECKOUT, status=303),
    errors=[_WRONG_FORM],
)
async def pay_in_sandbox(request: Request, account: Account, session_id: str) -> Response:
    state = request.state
    checkout = await _sandbox_checkout(request, account, session_id)
    signature, body = state.payments.sandbox_event(checkout, state.clock())
    await deliver(request, [signature], body)
    return _see_other(f"{state.config.base_url}/checkout/return?checkout={checkout.id}")


async def _sandbox_checkout(request: Request, account: Account, session_id: str) -> payments.Checkout:
    checkout = await request.state.db.read(payments.checkout_of, account.id, session_id)
    if request.state.payments.mode != "sandbox" or checkout is None or checkout.session_id != session_id:
        raise _NO_PAYMENT.error()
    return checkout


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a urlencoded form, each at most once."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM_TYPE:
        raise ApiError("unsupported_media_type", "Send the form of this page.")
    body = await read_body(request, _FORM_BYTES)
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:
        raise ApiError("invalid_value", "The form is not well-formed.") from None
    if len(dict(fields)) < len(fields):
        raise ApiError("invalid_value", "The form has a repeated field.")
    return dict(fields)


def _see_other(url: str) -> Response:
    return Response(
        status_code=303, headers={"location": url, "cache-control": "no-store", "referrer-policy": "same-origin"}
    )


def _refused(request: Request, error: ApiError, body: str) -> Response:
    add_log_fields(request, code=error.code)
    problem = None if error.code == "session_expired" else _problem(request, error)
    page = _page(request, "title", body, error.status, problem)
    page.headers.update(error.headers)
    if error.status == 401:
        page.headers["www-authenticate"] = "Cookie"
    return page


def _problem(request: Request, error: ApiError) -> str:
    if error.error["param"] == "amount":
        texts = _texts(request)
        return languages.filled(texts["wrong_amount"], pages.bounds(texts))
    return languages.message(_language(request), error.code, str(error))


def _language(request: Request) -> str:
    """Return the language of the account, or of the request."""
    return request.scope.get("language") or languages.requested(request.headers)


def _texts(request: Request) -> Mapping[str, str]:
    texts = languages.texts(_language(request))
    return {**texts["shared"], **texts["checkout"]}


def _page(request: Request, title: str, body: str, status: int = 200, problem: str | None = None) -> Response:
    """Return a page. `title` is the name of its text."""
    state, texts = request.state, _texts(request)
    # Chromium also applies form-action to redirects of a form, so it must contain the processor's page.
    processor = f" {CHECKOUT_ORIGIN} {_origin(state.payments.stripe.api)}" if state.payments.stripe else ""
    policy = (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; "
        f"form-action 'self'{processor}; frame-ancestors 'none'"
    )
    # With `no-referrer` Chromium would post `Origin: null`.
    headers = {"content-security-policy": policy, "referrer-policy": "same-origin", "cache-control": "no-store"}
    above = pages.notices(texts, test_money=state.payments.mode == "sandbox", problem=problem)
    return Response(
        framed(_language(request), texts[title], above + body), status, headers, media_type="text/html; charset=utf-8"
    )
