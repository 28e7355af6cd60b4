"""The HTML of the checkout: plain pages that work without a script; every value in them is escaped here."""

from html import escape

_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http:%2F%2Fwww.w3.org%2F2000%2Fsvg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' "
    "rx='4' fill='%230a58ca'%2F%3E%3Cpath d='M4 5h8M4 8h5M4 11h7' stroke='white' stroke-width='1.6'%2F%3E%3C%2Fsvg%3E"
)
_PRESETS = ("5", "10", "25", "100")
_BACK = '<p><a href="/">To the start page</a></p>'


def page(title: str, body: str, *, test_money: bool, problem: str | None = None) -> str:
    """A whole page around `body`, which is HTML already; `title` and `problem` are not."""
    banner = (
        '<p class="test" role="note"><strong>Test money.</strong> No real payment is made on this server.</p>'
        if test_money
        else ""
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


def amounts(email: str, balance: str, typed: str = "") -> str:
    """The choice of an amount, for who has `balance` (`$3.20`); `typed` is what was sent before and refused."""
    buttons = "\n".join(f'<button name="amount" value="{amount}">${amount}</button>' for amount in _PRESETS)
    return f"""<p class="quiet">Signed in as {escape(email)}. The wallet has {escape(balance)}.</p>
<form method="post" action="/checkout" class="presets">
{buttons}
</form>
<form method="post" action="/checkout">
<div class="field">
<label for="amount">Another amount in US dollars</label>
<input id="amount" name="amount" inputmode="decimal" autocomplete="off" required
    pattern="[0-9]+([.][0-9]{{1,2}})?" value="{escape(typed)}" aria-describedby="rule">
<small id="rule">5.00 to 10000.00, in whole cents</small>
</div>
<button>Go to payment</button>
</form>
<p class="quiet">The first funding makes the account pro: 120 chat requests a minute instead of 20.</p>
{_BACK}"""


def sign_in(email: str = "") -> str:
    """The form to sign in; `email` is what was sent before and refused."""
    return f"""<p>Sign in to add funds to your wallet.</p>
<form method="post" action="/checkout/sign-in">
<div class="field">
<label for="email">E-mail</label>
<input id="email" name="email" type="email" autocomplete="username" value="{escape(email)}" required>
</div>
<div class="field">
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
</div>
<button>Sign in</button>
</form>
{_BACK}"""


def switched_off() -> str:
    return f"<p>Adding funds is switched off on this server. Ask its operator.</p>\n{_BACK}"


def sandbox(session_id: str, amount: str) -> str:
    """The page that plays the processor."""
    return f"""<p>This page plays the payment processor. Pay {escape(amount)} of test money?</p>
<form method="post" action="/checkout/sandbox/{escape(session_id)}">
<button>Pay {escape(amount)} (test money)</button>
</form>
<p><a href="/checkout">Cancel</a></p>"""


def returned(state: str | None, amount: str) -> str:
    """Where the processor sends people back to; `state` of their checkout is None where it is not known whose it is."""
    texts = {
        "paid": f"<p>{escape(amount)} has been added to your wallet.</p>",
        "failed": "<p>The payment failed. Nothing was added to your wallet.</p>",
        "expired": "<p>The payment was not made in time. Nothing was added to your wallet.</p>",
        "open": '<p>The payment processor has not told us about the payment yet. <a href="">Look again</a> in a moment.</p>',
    }
    known = texts.get(state or "", "<p>The wallet is filled as soon as the payment processor tells us about the payment.</p>")
    return f'{known}\n<p><a href="/checkout">Add funds</a></p>\n{_BACK}'


def problem_only() -> str:
    return f'<p><a href="/checkout">Back to adding funds</a></p>\n{_BACK}'
