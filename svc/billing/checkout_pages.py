"""The HTML of the checkout pages, which need no script. Every value in them is escaped here."""

from collections.abc import Mapping, Sequence
from html import escape

from svc.billing.payments import AMOUNT_RULE

_PRESETS = ("5", "10", "25", "100")
_BACK = '<p><a href="/">Back to the application</a></p>'


def notices(*, test_money: bool, problem: str | None) -> str:
    """Return what stands above the page's own text. `problem` is plain text."""
    test = '<p class="notice notice-warn" role="note"><strong>Test money.</strong> No real money is charged.</p>\n'
    alert = f'<p class="notice notice-bad" role="alert">{escape(problem)}</p>\n' if problem else ""
    return (test if test_money else "") + alert


def amounts(email: str, balance: str, chats_per_minute: Mapping[str, int], typed: str = "") -> str:
    """Return the form for the amount. `balance` is text such as `$3.20`; `typed` is a wrong amount to show again."""
    free, pro = chats_per_minute["free"], chats_per_minute["pro"]
    buttons = "\n".join(f'<button class="button" name="amount" value="{amount}">${amount}</button>' for amount in _PRESETS)
    return f"""<p class="quiet">Signed in as {escape(email)}. Balance: {escape(balance)}.</p>
<form method="post" action="/checkout" class="presets">
{buttons}
</form>
<form method="post" action="/checkout" class="stack">
<div class="field">
<label for="amount">Other amount in US dollars</label>
<input class="input" id="amount" name="amount" inputmode="decimal" autocomplete="off" required
    pattern="[0-9]+([.][0-9]{{1,2}})?" value="{escape(typed)}" aria-describedby="rule">
<p class="hint" id="rule">{AMOUNT_RULE}</p>
</div>
<button class="button button-primary">Continue to payment</button>
</form>
<p class="quiet">Your first payment upgrades the account to pro: {pro} chat requests a minute instead of {free}.</p>
{_BACK}"""


def sign_in(email: str | None, providers: Sequence[str]) -> str:
    """Return the ways to sign in. `email` is a wrong address to show again, or None without passwords."""
    links = "\n".join(
        f'<p><a class="button wide" href="/auth/oauth/{escape(name)}">Continue with {escape(name)}</a></p>' for name in providers
    )
    then = '<p class="quiet">After the sign-in, open this page again.</p>' if providers else ""
    form = "" if email is None else _password_form(email)
    return f"<p>Sign in to add funds to your wallet.</p>\n{form}\n{links}\n{then}\n{_BACK}"


def _password_form(email: str) -> str:
    return f"""<form method="post" action="/checkout/sign-in" class="stack">
<div class="field">
<label for="email">Email</label>
<input class="input" id="email" name="email" type="email" autocomplete="username" value="{escape(email)}" required>
</div>
<div class="field">
<label for="password">Password</label>
<input class="input" id="password" name="password" type="password" autocomplete="current-password" required>
</div>
<button class="button button-primary">Sign in</button>
</form>"""


def switched_off() -> str:
    return f"<p>Payments are switched off on this server. Contact its operator.</p>\n{_BACK}"


def sandbox(session_id: str, amount: str) -> str:
    return f"""<p>This is a test payment page. Pay {escape(amount)} with test money?</p>
<form method="post" action="/checkout/sandbox/{escape(session_id)}">
<button class="button button-primary wide">Pay {escape(amount)} (test money)</button>
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
