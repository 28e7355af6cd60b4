"""A new password or address, which the owner sets in a session.

PATCH /user/me {email} -> mail to the new address -> /verify-email#TOKEN -> POST /auth/verify-email (routes/links.py): the address
is changed -> mail to the address before, with a link to undo it
"""

import sqlite3
from email.message import EmailMessage
from functools import partial
from typing import Annotated, NamedTuple

from starlette.responses import Response

from svc.auth import accounts, links
from svc.auth.mail import Mail
from svc.errors import ApiError
from svc.server.gate import Caller
from svc.server.interface import Answer, Refusal, Section
from svc.server.state import Request, State
from svc.server.web import no_content
from svc.shapes import record, string

describes = Section("Account").describes
_RECENT_SECONDS = 600
_CHANGE_TEXT = """\
A user wants to use this email address for an account at
{base_url}

To confirm the new address, open this link within a day. It works once:

{base_url}/verify-email#{token}

If you did not request this, ignore this mail.
"""
CURRENT_PASSWORD = string.about(
    "The account's password. An account without one needs a recent sign-in with its identity provider."
)
WRONG_PASSWORD = Refusal("invalid_credentials", "The password is wrong.", "current_password")
OWNER_REFUSALS = [
    WRONG_PASSWORD,
    Refusal("missing_field", "current_password is required: a string.", "current_password"),
    Refusal("recent_sign_in_required", when="No password, and no sign-in with an identity provider in the last 10 minutes."),
    Refusal("rate_limit_exceeded", when="More than 5 attempts in a minute."),
]


class ChangePassword(NamedTuple):
    password: Annotated[str, accounts.PASSWORD]
    current_password: Annotated[str | None, CURRENT_PASSWORD] = None


_CHANGE_PASSWORD = record(
    "ChangePasswordRequest",
    ChangePassword,
    example={"current_password": "correct horse battery", "password": "an even better one"},
)


@describes(
    "Change the password",
    "In a session only, 5 attempts a minute. An account without a password sets its first one within 10 minutes of a sign-in "
    "with its identity provider. Sessions and API keys stay valid; links to reset the password or to change the address do not.",
    body=_CHANGE_PASSWORD,
    answers={204: Answer("The password is changed.")},
    errors=OWNER_REFUSALS,
)
async def change_password(request: Request, caller: Caller, body: ChangePassword) -> Response:
    state = request.state
    before = await check_owner(state, caller, body.current_password)
    password_hash = await state.passwords.hash(body.password)
    if not await state.db.write(_change_password, caller.id, before, password_hash):
        raise WRONG_PASSWORD.error()  # another request has just changed it
    return no_content()


def _change_password(tx: sqlite3.Connection, account_id: str, before: str | None, password_hash: str) -> bool:
    links.end_links(tx, account_id, "reset")
    return accounts.replace_password(tx, account_id, before, password_hash)


async def check_owner(state: State, caller: Caller, password: str | None, refusal: Refusal = WRONG_PASSWORD) -> str | None:
    """Check that the account's owner sends this request, and return the stored password hash.

    That is who knows the password, or without one has just signed in with an identity provider. Raises ApiError `missing_field`,
    `invalid_credentials`, `recent_sign_in_required`, `rate_limit_exceeded`.
    """
    state.limits.take_by_account("owner", caller.id)
    stored = await state.db.read(accounts.password_hash, caller.id)
    account = await caller.account(state.db)  # after it: an account that is being deleted has no password
    if stored is None or not state.config.passwords:
        # A session from before the address was verified may be of another person.
        began_at = max(state.clock() - _RECENT_SECONDS, int(account.email_verified_at or 0))
        if caller.identity_at < began_at:
            raise ApiError("recent_sign_in_required")
        return stored
    password = string.check(password, refusal.param or "")
    if len(password) > accounts.PASSWORD_LENGTH[1] or not await state.passwords.matches(password, stored, login=False):
        raise refusal.error()
    return stored


async def request_email_change(state: State, caller: Caller, email: str, password: str | None) -> None:
    """Mail a link to `email` that makes it the account's address. The caller does not learn whether the address is taken."""
    if caller.auth != "session":
        raise ApiError("session_required")
    if state.mail is None:
        raise ApiError("mail_not_set_up")
    await check_owner(state, caller, password)
    state.limits.take_by_account("change_email", caller.id)
    state.mail.later(partial(_change_message, state, state.mail, caller.id, email))


async def _change_message(state: State, mail: Mail, account_id: str, email: str) -> EmailMessage | None:
    token = links.new_link_token(verified=True)
    if not await state.db.write(_add_change_link, account_id, token, email, state.clock()):
        return None
    text = _CHANGE_TEXT.format(base_url=state.config.base_url, token=token)
    return mail.message(email, "Confirm your new email address", text)


def _add_change_link(tx: sqlite3.Connection, account_id: str, token: str, email: str, now_seconds: float) -> bool:
    if accounts.is_taken(tx, email, account_id, now_seconds) or accounts.account_by_id(tx, account_id) is None:
        return False
    return links.add_link(tx, account_id, "change", token, by_mail=True, now_seconds=now_seconds, email=email)
