"""The HTML of the checkout pages, which need no script. Every value in them is escaped here."""

from collections.abc import Mapping, Sequence
from html import escape

from svc.billing.payments import AMOUNT_RULE

_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http:%2F%2Fwww.w3.org%2F2000%2Fsvg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' "
    "rx='4' fill='%230a58ca'%2F%3E%3Cpath d='M4 5h8M4 8h5M4 11h7' stroke='white' stroke-width='1.6'%2F%3E%3C%2Fsvg%3E"
)
_PRESETS = ("5", "10", "25", "100")
_BACK = '<p><a href="/">Back to home</a></p>'


def page(title: str, body: str, *, test_money: bool, problem: str | None = None) -> str:
    """Return a page with `body`, which is HTML; `title` and `problem` are plain text."""
    banner = (
        '<p class="test" role="note"><strong>Test money.</strong> This server takes no real payments.</p>' if test_money else ""
    )
    alert = f'<div role="alert">{escape(problem)}</div>' if problem else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} · svc</title>
<link rel="icon" href="{_ICON}">
<link rel="stylesheet" href="/static/style.css">
<link rel="stylesheet" href="/static/checkout.css">
</head>
<body>
<main class="column form">
{banner}
<h1>{escape(title)}</h1>
{alert}
{body}
</main>
</body>
</html>
"""


def amounts(email: str, balance: str, chats_per_minute: Mapping[str, int], typed: str = "") -> str:
    """Return the form for the amount. `balance` is text such as `$3.20`; `typed` is a wrong amount to show again."""
    free, pro = chats_per_minute["free"], chats_per_minute["pro"]
    buttons = "\n".join(f'<button name="amount" value="{amount}">${amount}</button>' for amount in _PRESETS)
    return f"""<p class="quiet">Signed in as {escape(email)}. Balance: {escape(balance)}.</p>
<form method="post" action="/checkout" class="presets">
{buttons}
</form>
<form method="post" action="/checkout">
<div class="field">
<label for="amount">Other amount in US dollars</label>
<input id="amount" name="amount" inputmode="decimal" autocomplete="off" required
    pattern="[0-9]+([.][0-9]{{1,2}})?" value="{escape(typed)}" aria-describedby="rule">
<small id="rule">{AMOUNT_RULE}</small>
</div>
<button>Continue to payment</button>
</form>
<p class="quiet">Your first payment upgrades the account to pro: {pro} chat requests a minute instead of {free}.</p>
{_BACK}"""


def sign_in(email: str | None, providers: Sequence[str]) -> str:
    """Return the ways to sign in. `email` is a wrong address to show again, or None without passwords."""
    links = "\n".join(f'<p><a href="/auth/oauth/{escape(name)}">Sign in with {escape(name)}</a></p>' for name in providers)
    then = '<p class="quiet">After the sign-in, open this page again.</p>' if providers else ""
    form = "" if email is None else _password_form(email)
    return f"<p>Sign in to add funds to your wallet.</p>\n{form}\n{links}\n{then}\n{_BACK}"


def _password_form(email: str) -> str:
    return f"""<form method="post" action="/checkout/sign-in">
<div class="field">
<label for="email">Email</label>
<input id="email" name="email" type="email" autocomplete="username" value="{escape(email)}" required>
</div>
<div class="field">
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
</div>
<button>Sign in</button>
</form>"""


def switched_off() -> str:
    return f"<p>Payments are switched off on this server. Contact its operator.</p>\n{_BACK}"


def sandbox(session_id: str, amount: str) -> str:
    return f"""<p>This is a test payment page. Pay {escape(amount)} with test money?</p>
<form method="post" action="/checkout/sandbox/{escape(session_id)}">
<button>Pay {escape(amount)} (test money)</button>
</form>
<p><a href="/checkout">Cancel</a></p>"""


def returned(state: str | None, amount: str) -> str:
    """Return the page after the payment. `state` of the checkout is None if the account is unknown."""
    texts = {
        "paid": f"<p>{escape(amount)} was added to your wallet.</p>",
        "failed": "<p>The payment failed. Nothing was added to your wallet.</p>",
        "expired": "<p>The payment expired. Nothing was added to your wallet.</p>",
        "open": '<p>We are waiting for the confirmation of your payment. <a href="">Reload</a> this page in a moment.</p>',
    }
    known = texts.get(state or "", "<p>We add the funds to your wallet when the payment is confirmed.</p>")
    return f'{known}\n<p><a href="/checkout">Add funds</a></p>\n{_BACK}'


def problem_only() -> str:
    return f'<p><a href="/checkout">Back to Add funds</a></p>\n{_BACK}'
