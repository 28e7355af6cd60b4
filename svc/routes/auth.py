"""Sign-up, login, logout and password reset."""

import sqlite3
from email.message import EmailMessage
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svc import checks
from svc.auth import accounts, links, oauth_flows, tokens
from svc.auth.accounts import Account
from svc.auth.emails import check_email
from svc.auth.mail import Mail
from svc.billing import checkout_cookie
from svc.errors import ApiError
from svc.ids import random_base62
from svc.routes.schemas.accounts import (
    LOG_IN_REQUEST,
    PASSWORD_RESET_ACCEPTED,
    PASSWORD_RESET_CONFIRMATION,
    PASSWORD_RESET_REQUEST,
    SESSION,
    SESSION_CODE_REQUEST,
    SIGN_UP_REQUEST,
)
from svc.routes.schemas.headers import CHECKOUT_COOKIE_HEADER
from svc.routes.schemas.refusals import STORAGE
from svc.server.bodies import read_json
from svc.server.interface import Answer, Refusal, describes
from svc.server.state import State
from svc.server.web import add_log_fields, no_content, reply

_NO_EMAIL = Refusal("missing_field", "email is required.", "email")
_WRONG_EMAIL = Refusal("invalid_value", "email must be an address such as ada@example.com.", "email")

_RESET_TEXT = """\
Somebody, probably you, asked for a new password for your account at
{base_url}

Open this link within an hour to set one. It works once:

{base_url}/password-reset#{token}

If it was not you, do nothing: your password stays as it is.
"""


@describes(
    "Sign-in",
    "signUp",
    "Create an account",
    "Limit: 10 an hour for one IP address (IPv6: for one /64 network).",
    body=SIGN_UP_REQUEST,
    answers={201: Answer("The account is made and signed in.", SESSION, headers={"set-cookie": CHECKOUT_COOKIE_HEADER})},
    errors=[
        _NO_EMAIL,
        _WRONG_EMAIL,
        Refusal("signup_closed", when="The operator alone makes accounts here."),
        Refusal("email_taken", param="email", when="There is an account with this e-mail."),
        STORAGE,
    ],
)
async def signup(request: Request[State]) -> Response:
    """`{email, password, name?}` -> 201 session."""
    state = request.state
    if state.config.signup == "closed":
        raise ApiError("signup_closed")
    body = await read_json(request)
    email = checks.required(body, "email", check_email)
    password = checks.required(body, "password", accounts.check_password)
    name = accounts.check_name(body.get("name"))
    password_hash = await state.passwords.hash(password)
    account = await state.db.write(accounts.add_account, email, name, password_hash, state.clock())
    return _session(request, account, 201)


@describes(
    "Sign-in",
    "logIn",
    "Sign in",
    "Limit: 5 a minute for one IP address. An unknown e-mail and a wrong password get the same answer in the same time.",
    body=LOG_IN_REQUEST,
    answers={200: Answer("Signed in.", SESSION, headers={"set-cookie": CHECKOUT_COOKIE_HEADER})},
    errors=[
        _NO_EMAIL,
        _WRONG_EMAIL,
        Refusal("invalid_credentials", when="The e-mail or the password is wrong: the same answer, in the same time, for both."),
        STORAGE,
    ],
)
async def login(request: Request[State]) -> Response:
    """`{email, password}` -> 200 session; the same answer, in the same time, for an unknown e-mail and a wrong password."""
    state = request.state
    body = await read_json(request)
    email, password = checks.required(body, "email", checks.string), checks.required(body, "password", checks.string)
    return _session(request, await checked_login(state, email, password), 200)


async def checked_login(state: State, email: str, password: str) -> Account:
    """The account that an e-mail and a password sign in to. Raises ApiError `invalid_credentials`, `overloaded`."""
    if len(password) > accounts.PASSWORD_LENGTH[1]:
        raise ApiError("invalid_credentials")
    account, stored = await state.db.read(accounts.login_by_email, email)
    if not await state.passwords.matches(password, stored) or account is None:
        raise ApiError("invalid_credentials")
    return account


@describes(
    "Sign-in",
    "logOut",
    "Sign out",
    "For the client to forget its token. A session token cannot be revoked: it stays valid until it expires.",
    answers={204: Answer("Signed out.", headers={"set-cookie": CHECKOUT_COOKIE_HEADER})},
)
async def logout(request: Request[State], caller: Any) -> Response:
    """204; the token stays valid until it expires, the checkout forgets the browser."""
    answer = no_content()
    checkout_cookie.forget(answer)
    return answer


@describes(
    "Sign-in",
    "requestPasswordReset",
    "Ask for a password link",
    "Limit: 3 an hour for one IP address. The answer does not tell whether there is such an account. Where "
    "the operator has set up no mail, `python -m svc user reset-link EMAIL` prints a link.",
    body=PASSWORD_RESET_REQUEST,
    answers={202: Answer("Accepted.", PASSWORD_RESET_ACCEPTED)},
    errors=[_NO_EMAIL, _WRONG_EMAIL, STORAGE],
)
async def request_password_reset(request: Request[State]) -> Response:
    """`{email}` -> 202 always, and at once, so that nobody learns who has an account here: all else happens afterwards."""
    state = request.state
    email = checks.required(await read_json(request), "email", check_email)
    if state.mail is not None:
        state.mail.later(partial(_reset_message, state, state.mail, email))
    return reply({"message": "If there is an account with this e-mail and mail is set up here, a link is on its way."}, 202)


async def _reset_message(state: State, mail: Mail, email: str) -> EmailMessage | None:
    """The mail with a new one-time link, None where nobody has this address. It goes to the address as the account has it."""
    token = random_base62(43)
    account = await state.db.write(_add_link, email, tokens.token_hash(token), state.clock())
    if account is None:
        return None
    text = _RESET_TEXT.format(base_url=state.config.base_url, token=token)
    return mail.message(account.email, "Set a new password", text)


def _add_link(tx: sqlite3.Connection, email: str, token_hash: bytes, now_seconds: float) -> Account | None:
    account = accounts.account_by_email(tx, email)
    if account is not None:
        links.add_password_reset(tx, account.id, token_hash, by_mail=True, now_seconds=now_seconds)
    return account


@describes(
    "Sign-in",
    "confirmPasswordReset",
    "Set a new password",
    "With the one-time token of a link, valid for an hour. A newer link makes an older one void.",
    body=PASSWORD_RESET_CONFIRMATION,
    answers={204: Answer("The password is set.")},
    errors=[
        _NO_EMAIL,
        _WRONG_EMAIL,
        Refusal("invalid_token", param="token", when="The link was used, is over an hour old or was never made."),
        STORAGE,
    ],
)
async def confirm_password_reset(request: Request[State]) -> Response:
    """`{token, password}` -> 204, once per link."""
    state = request.state
    body = await read_json(request)
    token = body.get("token")
    if not isinstance(token, str) or not token:
        raise ApiError(
            "missing_field" if token is None else "invalid_value", "token is the last part of the link.", param="token"
        )
    password = checks.required(body, "password", accounts.check_password)
    password_hash = await state.passwords.hash(password)
    await state.db.write(links.use_password_reset, tokens.token_hash(token), password_hash, state.clock())
    return no_content()


@describes(
    "Sign-in",
    "changeOauthCode",
    "Change a one-time code for a session",
    "Works once, within a minute, in the browser that began the sign-in: it knows it by a cookie.",
    body=SESSION_CODE_REQUEST,
    answers={200: Answer("Signed in.", SESSION, headers={"set-cookie": CHECKOUT_COOKIE_HEADER})},
    errors=[
        Refusal("missing_field", "code must be a string.", "code"),
        Refusal("invalid_value", "code must be a string.", "code"),
        Refusal(
            "invalid_token",
            param="code",
            when="The code was used, is over a minute old, was never made or belongs to another browser.",
        ),
        STORAGE,
    ],
)
async def change_code(request: Request[State]) -> Response:
    """`{code}` from the page's fragment -> 200 session, once, in the browser that began the sign-in with another provider."""
    state = request.state
    code = (await read_json(request)).get("code")
    if not isinstance(code, str) or not code:
        raise ApiError("missing_field" if code is None else "invalid_value", "code must be a string.", param="code")
    browser = oauth_flows.browser_of(request.headers) or ""
    account_id = await state.db.write(oauth_flows.use_code, code, browser, state.clock())
    account = await state.db.read(accounts.account_by_id, account_id)
    if account is None:
        raise ApiError("invalid_token", param="code")
    return _session(request, account, 200)


def _session(request: Request[State], account: Account, status: int) -> Response:
    state = request.state
    add_log_fields(request, account=account.id)
    token = tokens.issue_session(state.derived_keys["session"], account.id, state.clock())
    answer = reply(
        {
            "access_token": token,
            "token_type": "bearer",
            "expires_in": tokens.SESSION_SECONDS,
            "user": account.as_json("session"),
        },
        status,
    )
    checkout_cookie.remember(answer, state.derived_keys["checkout"], account.id, state.clock())
    return answer
