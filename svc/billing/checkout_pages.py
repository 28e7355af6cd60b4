"""The HTML of the checkout pages (svc/static/checkout/), which need no script. Every value in them is escaped here.

`t` are the page's texts in one language (svc/languages.py).
"""

from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path

from svc.billing.payments import LEAST_MICROS, MOST_MICROS
from svc.languages import filled
from svc.money import MICROS_PER_DOLLAR

_FOLDER = Path(__file__).parent.parent / "static" / "checkout"
TEMPLATES = ("amount", "sandbox", "sign-in")
_BOUNDS = {"least": LEAST_MICROS, "most": MOST_MICROS}
Texts = Mapping[str, str]
_PRESETS = (5, 10, 25, 100)


@cache
def template(name: str) -> str:
    return (_FOLDER / f"{name}.html").read_text()


def bounds(t: Texts) -> dict[str, str]:
    """Return the least and the most amount, with the decimal mark of the language."""
    return {name: f"{micros // MICROS_PER_DOLLAR}{t['point']}00" for name, micros in _BOUNDS.items()}


def _filled(name: str, t: Texts, **values: object) -> str:
    """Insert the texts, and in them the values. A text cannot name another one, and a value inserts nothing."""
    written = {key: filled(text, values) for key, text in t.items()}
    return filled(template(name), {key: escape(str(value)) for key, value in {**written, **values}.items()})


def _paragraph(text: str, **values: object) -> str:
    return f"<p>{escape(filled(text, values))}</p>"


def _link(address: str, text: str) -> str:
    return f'<p><a href="{address}">{escape(text)}</a></p>'


def back(t: Texts) -> str:
    return _link("/", t["back"])


def switched_off(t: Texts) -> str:
    return f"{_paragraph(t['off'])}\n{back(t)}"


def problem_only(t: Texts) -> str:
    return f"{_link('/checkout', t['again'])}\n{back(t)}"


def notices(t: Texts, *, test_money: bool, problem: str | None) -> str:
    """Return what stands above the page's own text. `problem` is plain text."""
    what, why = escape(t["test_money"]), escape(t["no_charge"])
    test = f'<p class="notice notice-warn" role="note"><strong>{what}</strong> {why}</p>\n'
    alert = f'<p class="notice notice-bad" role="alert">{escape(problem)}</p>\n' if problem else ""
    return (test if test_money else "") + alert


def amounts(
    t: Texts, email: str, balance: str, typed: str = "", chats_per_minute: Mapping[str, int] | None = None
) -> str:
    """Return the form for the amount. `balance` is text such as `$3.20`; `typed` is a wrong amount to show again.

    `chats_per_minute` by tier offers the upgrade of a free account.
    """
    presets = "\n".join(
        f'<button class="button" name="amount" value="{number}">{t["dollars"].format(amount=number)}</button>'
        for number in _PRESETS
    )
    offer = ""
    if chats_per_minute is not None:
        offer = f'<p class="quiet">{escape(filled(t["upgrade"], chats_per_minute))}</p>\n'
    return (
        f'<p class="quiet">{escape(filled(t["signed_in"], {"email": email, "balance": balance}))}</p>\n'
        f'<form method="post" action="/checkout" class="presets">\n{presets}\n</form>\n'
        f"{_filled('amount', t, typed=typed, **bounds(t))}{offer}{back(t)}"
    )


def sign_in(t: Texts, email: str | None, providers: Sequence[str]) -> str:
    """Return the ways to sign in. `email` is a wrong address to show again, or None without passwords."""
    links = "\n".join(
        f'<p><a class="button wide" href="/auth/oauth/{escape(name)}">'
        f"{escape(filled(t['provider'], {'provider': name}))}</a></p>"
        for name in providers
    )
    then = f'<p class="quiet">{escape(t["then"])}</p>' if providers else ""
    form = "" if email is None else _filled("sign-in", t, typed=email)
    return f"{_paragraph(t['sign_in_title'])}\n{form}\n{links}\n{then}\n{back(t)}"


def sandbox(t: Texts, session_id: str, amount: str) -> str:
    return _filled("sandbox", t, session=session_id, amount=amount)


def returned(t: Texts, state: str | None, amount: str) -> str:
    """Return the page after the payment. `state` of the checkout is None if the account is unknown."""
    known = _paragraph(t[state or "unknown"], amount=amount)
    again = _link("", t["reload"]) if state == "open" else ""
    return f"{known}\n{again}{_link('/checkout', t['title'])}\n{back(t)}"
