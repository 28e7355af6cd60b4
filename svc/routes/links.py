"""What the one-time links in e-mails do: set a new password, and prove an address.

POST /auth/password-reset -> mail -> /password-reset#TOKEN -> the page -> POST /auth/password-reset/confirm
sign-up or POST /user/verify-email -> mail -> /verify-email#TOKEN -> the page -> POST /auth/verify-email
"""

import sqlite3
from email.message import EmailMessage
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from svc import checks
from svc.auth import accounts, links, tokens
from svc.auth.accounts import Account
from svc.auth.emails import check_email
from svc.auth.mail import Mail
from svc.errors import ApiError
from svc.routes.first_proof import delete_keys_and_providers, prove
from svc.routes.schemas.accounts import (
    PASSWORD_RESET_ACCEPTED,
    PASSWORD_RESET_CONFIRMATION,
    PASSWORD_RESET_REQUEST,
    VERIFICATION_ACCEPTED,
    VERIFY_EMAIL_REQUEST,
)
from svc.routes.schemas.refusals import STORAGE
from svc.server.bodies import read_json
from svc.server.gate import Caller
from svc.server.interface import Answer, Refusal, describes
from svc.server.state import State
from svc.server.web import no_content, reply

_RESET_TEXT = """\
Somebody, probably you, asked for a new password for your account at
{base_url}

Open this link within an hour to set one. It works once:

{base_url}/password-reset#{token}

If it was not you, do nothing: your password stays as it is.
"""
_VERIFY_TEXT = """\
Somebody, probably you, made an account with this e-mail address at
{base_url}

Open this link within a day to confirm that the address is yours:

{base_url}/verify-email#{token}

If it was not you, do not confirm it. You can take the account over with
"Forgot your password?" at {base_url}
"""


_NO_TOKEN = Refusal("missing_field", "token is required: the last part of the link.", "token")
_WRONG_TOKEN = Refusal("invalid_value", "token must be the last part of the link.", "token")


# --- a new password


@describes(
    "Sign-in",
    "requestPasswordReset",
    "Ask for a password link",
    "Limit: 3 an hour for one IP address. The answer does not tell whether there is such an account. Where "
    "the operator has set up no mail, `python -m svc user reset-link EMAIL` prints a link.",
    body=PASSWORD_RESET_REQUEST,
    answers={202: Answer("Accepted.", PASSWORD_RESET_ACCEPTED)},
    errors=[
        Refusal("missing_field", "email is required: an address such as ada@example.com.", "email"),
        Refusal("invalid_value", "email must be an address such as ada@example.com.", "email"),
        STORAGE,
    ],
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
    found = await state.db.write(_add_reset_link, email, state.clock())
    if found is None:
        return None
    account, token = found
    text = _RESET_TEXT.format(base_url=state.config.base_url, token=token)
    return mail.message(account.email, "Set a new password", text)


def _add_reset_link(tx: sqlite3.Connection, email: str, now_seconds: float) -> tuple[Account, str] | None:
    account = accounts.account_by_email(tx, email)
    if account is None:
        return None
    token = links.new_link_token(proved=account.email_verified)
    added = links.add_link(tx, account.id, "reset", token, by_mail=True, now_seconds=now_seconds)
    return (account, token) if added else None


@describes(
    "Sign-in",
    "confirmPasswordReset",
    "Set a new password",
    "With the one-time token of a link, valid for an hour; using it makes the account's other links void. Limit: 10 a minute for "
    "one IP address. Open sessions end by themselves within 8 hours; the keys and providers stay unless `delete_keys` says "
    "otherwise. A mailed link proves the address: the first time, identities linked before are unlinked.",
    body=PASSWORD_RESET_CONFIRMATION,
    answers={204: Answer("The password is set.")},
    errors=[
        _NO_TOKEN,
        _WRONG_TOKEN,
        Refusal("invalid_token", param="token", when="The link was used, is over an hour old or was never made."),
        STORAGE,
    ],
)
async def confirm_password_reset(request: Request[State]) -> Response:
    """`{token, password, delete_keys?}` -> 204, once per link. Nothing is hashed for a link that is not good."""
    state = request.state
    body = await read_json(request)
    token = checks.required(body, "token", _link_token)
    password = checks.required(body, "password", accounts.check_password)
    delete_keys = checks.optional(body, "delete_keys", checks.boolean, False)
    link = await state.db.read(links.find_link, "reset", token, state.clock())
    password_hash = await state.passwords.hash(password)
    while delete_keys and await state.db.write(tokens.delete_some_keys, link.account_id):
        pass  # of many keys most go here: one long transaction would make everybody wait
    await state.db.write(_reset, token, password_hash, delete_keys, state.clock())
    return no_content()


def _reset(tx: sqlite3.Connection, token: str, password_hash: str, delete_keys: bool, now_seconds: float) -> None:
    link = links.use_link(tx, "reset", token, now_seconds)
    accounts.set_password(tx, link.account_id, password_hash)
    if link.by_mail:
        prove(tx, link.account_id, now_seconds)
    if delete_keys:
        delete_keys_and_providers(tx, link.account_id)


def _link_token(value: object, param: str) -> str:
    if not isinstance(value, str) or not value:
        raise checks.refusal(value, param, "the last part of the link")
    return value


# --- the proof of an address


@describes(
    "Sign-in",
    "verifyEmail",
    "Confirm an e-mail address",
    "With the one-time token of a link, valid for a day. The first proof of an address unlinks identities linked before.",
    body=VERIFY_EMAIL_REQUEST,
    answers={204: Answer("The address is confirmed.")},
    errors=[
        _NO_TOKEN,
        _WRONG_TOKEN,
        Refusal("invalid_token", param="token", when="The link was used, is over a day old or was never made."),
        STORAGE,
    ],
)
async def verify_email(request: Request[State]) -> Response:
    """`{token}` -> 204: the address of the account is proved, once per link."""
    token = checks.required(await read_json(request), "token", _link_token)
    await request.state.db.read(links.find_link, "verify", token, request.state.clock())
    await request.state.db.write(_verify, token, request.state.clock())
    return no_content()


def _verify(tx: sqlite3.Connection, token: str, now_seconds: float) -> None:
    link = links.use_link(tx, "verify", token, now_seconds)
    prove(tx, link.account_id, now_seconds)


@describes(
    "Account",
    "requestVerification",
    "Have the link that confirms the address mailed again",
    "Limit: 3 an hour for one account.",
    answers={202: Answer("Accepted.", VERIFICATION_ACCEPTED)},
    errors=[
        Refusal("already_verified"),
        Refusal("rate_limit_exceeded", when="More than 3 in an hour."),
    ],
)
async def request_verification(request: Request[State], caller: Caller) -> Response:
    """202: the mail with the link that proves the address is on its way again. 409 `already_verified`."""
    state = request.state
    account = await caller.account(state.db)
    if account.email_verified:
        raise ApiError("already_verified")
    state.limits.take_by_account("verify_email", caller.id)
    if state.mail is None:
        return reply({"message": "No mail is set up on this server. Its operator can tell how to go on."}, 202)
    send_verification(state, account)
    return reply({"message": "A link that confirms this address is on its way to it."}, 202)


def send_verification(state: State, account: Account) -> None:
    """Has the link that proves its address mailed to an account, where mail is set up."""
    if state.mail is not None:
        state.mail.later(partial(_verification_message, state, state.mail, account))


async def _verification_message(state: State, mail: Mail, account: Account) -> EmailMessage | None:
    token = links.new_link_token(proved=False)
    if not await state.db.write(_add_verification_link, account.id, token, state.clock()):
        return None
    return mail.message(account.email, "Confirm your address", _VERIFY_TEXT.format(base_url=state.config.base_url, token=token))


def _add_verification_link(tx: sqlite3.Connection, account_id: str, token: str, now_seconds: float) -> bool:
    account = accounts.account_by_id(tx, account_id)
    if account is None or account.email_verified:
        return False
    return links.add_link(tx, account_id, "verify", token, by_mail=True, now_seconds=now_seconds)
