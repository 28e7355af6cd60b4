"""Sign-up, login and logout, and the one-time links that replace a lost password."""

import sqlite3
from contextlib import suppress
from functools import partial
from typing import Annotated, NamedTuple

from svc.auth import accounts, links, oauth_flows, sign_ins, tokens
from svc.auth.accounts import Account
from svc.auth.emails import EMAIL
from svc.billing import checkout_cookie
from svc.errors import ApiError
from svc.routes.links import TOKEN, add_verification_link, delete_keys_and_providers, mail_link, verify_address
from svc.routes.schemas.common import CHECKOUT_COOKIE_HEADER
from svc.routes.user import USER
from svc.server.guards import SUSPENDED, Caller
from svc.server.interface import Answer, Operation, Refusal
from svc.server.web import Request, Response, add_log_fields, no_content, reply
from svc.shapes import boolean, json_object, one_of, record, string, text, whole

describes = partial(Operation, "Sign-in")
_SESSION = json_object(
    "Session",
    "A session.",
    access_token=string.about(
        "A JWT. Send it as `Authorization: Bearer <token>`.",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJ1c2VyXzAxbTMyIn0.dGhpcyBpcyBhbiBleGFtcGxl",
    ),
    token_type=one_of("bearer"),
    expires_in=whole.about("The seconds until the token expires: 8 hours.", 28800, const=28800),
    user=USER,
)


@record("SignUpRequest", example={"email": "ada@example.com", "password": "correct horse battery", "name": "Ada"})
class SignUp(NamedTuple):
    email: Annotated[str, EMAIL]
    password: Annotated[str, accounts.PASSWORD]
    name: Annotated[str | None, accounts.PERSON_NAME] = None


@record("LogInRequest", example={"email": "ada@example.com", "password": "correct horse battery"})
class LogIn(NamedTuple):
    email: Annotated[str, string.about("The account's email address, in any case.")]
    password: Annotated[str, string]


@record(
    "PasswordResetConfirmation",
    example={"token": "9hQ2vXk4LmT7bR1cWz8NfYp3JdS6gAe5uHxK0oEiVtB", "password": "an even better one"},
)
class PasswordResetConfirmation(NamedTuple):
    token: Annotated[str, TOKEN]
    password: Annotated[
        str | None, accounts.PASSWORD.about("The new password. Required, unless passwords are disabled.")
    ] = None
    delete_keys: Annotated[
        bool,
        boolean.about(
            "Also delete all API keys, own model providers and own tool servers, which someone else may have created."
        ),
    ] = False


@record("SessionCodeRequest", example={"code": "fZ3kQ9vTq0aXw7LmB2cYs8RdJ5hNu1PgEo6WiKt4xVy"})
class SessionCode(NamedTuple):
    code: Annotated[str, text(10_000, least=1).about("The one-time code from the page's fragment.")]


_COOKIE = {"set-cookie": CHECKOUT_COOKIE_HEADER}
_TO_NEW_PASSWORD = ("reset", "undo")


@describes(
    "Create an account",
    "Limit: 10 an hour by default for an IP address (IPv6: a /64 network).",
    answer=Answer("The new account's session.", _SESSION, headers=_COOKIE, status=201),
    errors=[Refusal("email_taken", param="email", when="An account has this email address.")],
)
async def sign_up(request: Request, body: SignUp) -> Response:
    state = request.state
    password_hash = await state.passwords.hash(body.password)
    add = partial(_add_account, local=state.config.local_posture)
    account = await state.db.write(add, body, password_hash, state.clock())
    mail_link(request, "verify", partial(add_verification_link, account.id))
    return await _session(request, account, 201)


def _add_account(
    tx: sqlite3.Connection, body: SignUp, password_hash: str, now_seconds: float, *, local: bool
) -> Account:
    account = accounts.add_account(tx, body.email, body.name, password_hash, now_seconds, local=local)
    sign_ins.add(tx, account.id, "password", sign_ins.OK, now_seconds)
    return account


@describes(
    "Sign in",
    "Limit: 5 a minute by default for an IP address.",
    answer=Answer("The session.", _SESSION, headers=_COOKIE),
    errors=[
        Refusal(
            "invalid_credentials",
            when="The email address or the password is wrong. Both have the same answer and time.",
        ),
        SUSPENDED,
    ],
)
async def log_in(request: Request, body: LogIn) -> Response:
    return await _session(request, await checked_login(request, body.email, body.password))


async def checked_login(request: Request, email: str, password: str) -> Account:
    """Return the account. Raises ApiError `invalid_credentials`, `account_suspended` after the right password,
    `overloaded`.

    The log line of a failed sign-in has the client's address, so that the operator can block it.
    """
    account, stored = await request.state.db.read(accounts.login_by_email, email)
    matches = await request.state.passwords.matches(password, stored)
    code = "account_suspended" if account and account.suspended_at is not None else sign_ins.OK
    await note_sign_in(request, account and account.id, "password", code if matches else "invalid_credentials")
    if account is None or not matches:
        add_log_fields(request, client_ip=request.context.client_ip)
        raise ApiError("invalid_credentials")
    return account.check_active()


async def note_sign_in(request: Request, account_id: str | None, way: str, code: str) -> None:
    """Store and count a sign-in, also a refused one. A full disk does not prevent it."""
    state = request.state
    state.metrics.sign_ins.add(way, code)
    with suppress(ApiError):
        await state.db.write(sign_ins.add, account_id, way, code, state.clock())


@describes(
    "Set a new password",
    answer=Answer("The password is set.", status=204),
    others=[Answer("Passwords are disabled: a session of the account.", _SESSION, headers=_COOKIE)],
    errors=[Refusal("invalid_token", param="token", when="The link was used, has expired, or is unknown."), SUSPENDED],
)
async def confirm_password_reset(request: Request, body: PasswordResetConfirmation) -> Response | None:
    state = request.state
    token, given, delete_keys = body
    password = accounts.PASSWORD.check(given, "password") if state.config.passwords else None
    # Before the password is hashed, which is expensive.
    link = await state.db.read(links.find_link, _TO_NEW_PASSWORD, token, state.clock())
    password_hash = None if password is None else await state.passwords.hash(password)
    while delete_keys and await state.db.write(tokens.TABLE.delete_some, link.account_id):
        pass  # in short transactions, because there may be many keys
    account = await state.db.write(_use_password_link, token, password_hash, delete_keys, state.clock())
    if password_hash is not None:
        return None
    await note_sign_in(request, account.id, "link", sign_ins.OK)
    return await _session(request, account)


def _use_password_link(
    tx: sqlite3.Connection, token: str, password_hash: str | None, delete_keys: bool, now_seconds: float
) -> Account:
    link = links.use_link(tx, _TO_NEW_PASSWORD, token, now_seconds)
    if link.email is not None:  # not verified: what another person has linked since is deleted below
        accounts.set_email(tx, link.account_id, link.email, None, now_seconds)
    if password_hash is not None or link.email is not None:
        accounts.update_account(tx, link.account_id, {"password_hash": password_hash})
    if link.by_mail:
        verify_address(tx, link.account_id, now_seconds)
    if delete_keys:
        delete_keys_and_providers(tx, link.account_id)
    return accounts.existing_account(tx, link.account_id)


@describes(
    "Sign out",
    "The client deletes its token. A session token cannot be revoked: it is valid until it expires.",
    answer=Answer("Signed out.", headers=_COOKIE, status=204),
)
async def log_out(request: Request, caller: Caller) -> Response:
    answer = no_content()
    checkout_cookie.delete_cookie(answer)
    return answer


@describes(
    "Exchange a one-time code for a session",
    "A code works once, within a minute, in the browser that started the sign-in. A cookie identifies the browser.",
    answer=Answer("The session.", _SESSION, headers=_COOKIE),
    errors=[
        Refusal(
            "invalid_token",
            param="code",
            when="The code was used, is over a minute old, is unknown, or belongs to another browser.",
        ),
        SUSPENDED,
    ],
)
async def change_oauth_code(request: Request, body: SessionCode) -> Response:
    browser = oauth_flows.browser_of(request.headers) or ""
    account_id = await request.state.db.write(oauth_flows.use_code, body.code, browser, request.state.clock())
    account = await request.state.db.read(accounts.account_by_id, account_id)
    if account is None:
        raise ApiError("invalid_token", param="code")
    return await _session(request, account.check_active(), by_identity=True)


async def _session(request: Request, account: Account, status: int = 200, *, by_identity: bool = False) -> Response:
    state = request.state
    groups = state.models.catalog.groups
    add_log_fields(request, account=account.id)
    if accounts.due_group(account, groups) != account.group:
        joined = await state.db.write(accounts.join_group, account.id, groups)
        account = joined or account
    await tokens.load_jwt()
    token = tokens.issue_session(state.derived_keys["session"], account.id, state.clock(), by_identity=by_identity)
    session = {"access_token": token, "token_type": "bearer", "expires_in": tokens.SESSION_SECONDS}
    answer = reply({**session, "user": account.as_json("session")}, status)
    checkout_cookie.set_cookie(answer, state.derived_keys["checkout"], account.id, state.clock())
    return answer
