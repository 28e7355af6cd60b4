"""The HTML of the checkout pages (svc/static/checkout/), which need no script. Every value in them is escaped here."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path

from svc.billing.payments import AMOUNT_RULE

_FOLDER = Path(__file__).parent.parent / "static" / "checkout"
TEMPLATES = ("amount", "sandbox", "sign-in")
_BACK = '<p><a href="/">Back to the application</a></p>'
SWITCHED_OFF = f"<p>Payments are switched off on this server. Contact its operator.</p>\n{_BACK}"
PROBLEM_ONLY = f'<p><a href="/checkout">Back to Add funds</a></p>\n{_BACK}'


@cache
def template(name: str) -> str:
    return (_FOLDER / f"{name}.html").read_text()


def _filled(name: str, **values: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: escape(values[match[1]]), template(name))


def notices(*, test_money: bool, problem: str | None) -> str:
    """Return what stands above the page's own text. `problem` is plain text."""
    test = '<p class="notice notice-warn" role="note"><strong>Test money.</strong> No real money is charged.</p>\n'
    alert = f'<p class="notice notice-bad" role="alert">{escape(problem)}</p>\n' if problem else ""
    return (test if test_money else "") + alert


def amounts(email: str, balance: str, typed: str = "", chats_per_minute: Mapping[str, int] | None = None) -> str:
    """Return the form for the amount. `balance` is text such as `$3.20`; `typed` is a wrong amount to show again.

    `chats_per_minute` by tier offers the upgrade of a free account.
    """
    offer = ""
    if chats_per_minute is not None:
        free, pro = chats_per_minute["free"], chats_per_minute["pro"]
        text = f"Your first payment upgrades the account to pro: {pro} chat requests a minute instead of {free}."
        offer = f'<p class="quiet">{text}</p>\n'
    return _filled("amount", email=email, balance=balance, typed=typed, rule=AMOUNT_RULE) + offer + _BACK


def sign_in(email: str | None, providers: Sequence[str]) -> str:
    """Return the ways to sign in. `email` is a wrong address to show again, or None without passwords."""
    links = "\n".join(
        f'<p><a class="button wide" href="/auth/oauth/{escape(name)}">Continue with {escape(name)}</a></p>'
        for name in providers
    )
    then = '<p class="quiet">After the sign-in, open this page again.</p>' if providers else ""
    form = "" if email is None else _filled("sign-in", email=email)
    return f"<p>Sign in to add funds to your wallet.</p>\n{form}\n{links}\n{then}\n{_BACK}"


def sandbox(session_id: str, amount: str) -> str:
    return _filled("sandbox", session=session_id, amount=amount)


def returned(state: str | None, amount: str) -> str:
    """Return the page after the payment. `state` of the checkout is None if the account is unknown."""
    texts = {
        "paid": f"<p>{escape(amount)} was added to your wallet.</p>",
        "failed": "<p>The payment failed. Nothing was added to your wallet.</p>",
        "expired": "<p>The payment expired. Nothing was added to your wallet.</p>",
        "open": (
            '<p>We are waiting for the confirmation of your payment. <a href="">Reload</a> this page in a moment.</p>'
        ),
    }
    known = texts.get(state or "", "<p>We add the funds to your wallet when the payment is confirmed.</p>")
    return f'{known}\n<p><a href="/checkout">Add funds</a></p>\n{_BACK}'
