"""One-time links in mails: they set a new password, or verify, change or restore an address.

POST /auth/password-reset -> mail -> /password-reset#TOKEN -> the page -> POST /auth/password-reset/confirm
sign-up, POST /user/verify-email or PATCH /user/me -> mail -> /verify-email#TOKEN -> the page -> POST /auth/verify-email
A changed address: -> mail to the address before, with a link to undo the change -> /password-reset#TOKEN
"""

import sqlite3
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from functools import partial
from importlib import import_module
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

from svc import languages
from svc.auth import accounts, identities, links, oauth_flows, tokens
from svc.auth.emails import EMAIL
from svc.auth.links import Recipient
from svc.errors import ApiError
from svc.groups import Groups
from svc.inference import providers
from svc.inference.tool_servers import records as tool_servers
from svc.server.guards import SUSPENDED, Caller
from svc.server.interface import Answer, Operation, Refusal
from svc.server.web import Request
from svc.shapes import json_object, record, string, text

describes = partial(Operation, "Sign-in")
describes_account = partial(Operation, "Account")
_PASSWORD_RESET_ACCEPTED = json_object(
    "PasswordResetAccepted",
    message=string.about(
        "The same text for every address.",
        "If an account has this email address and mail is set up, a link is on its way.",
    ),
)
_VERIFICATION_ACCEPTED = json_object(
    "VerificationAccepted",
    message=string.about("The next step.", "A verification link is on its way to your email address."),
)


_TO_ADDRESS = ("verify", "change")
TOKEN = text(10_000, least=1).about("The part of the link after `#`.")


def first_use() -> Iterator[Callable[[], object]]:
    """Yield what must be done before letters are sent."""
    yield partial(import_module, "email.headerregistry")
    yield from (partial(languages.texts, language) for language in languages.LANGUAGES)


def mail_link(
    request: Request,
    name: str,
    link: Recipient | Callable[[sqlite3.Connection, float], Recipient | None],
    *,
    action: str = "",
    **words: str,
) -> None:
    """Mail the letter of that name in the background, if mail is set up, in the language of the account or the request.

    A function `link` stores the link and returns the recipient, or None. `words` are inserted into the letter, and its
    text `action`.
    """
    state, of_request = request.state, languages.requested(request.headers)
    mail = state.mail
    if mail is None:
        return

    async def compose() -> EmailMessage | None:
        recipient = link if isinstance(link, tuple) else await state.db.write(link, state.clock())
        if recipient is None:
            return None
        letter = languages.texts(recipient.language or of_request)["letters"][name]
        base_url = state.config.base_url
        inserted = {**words, "base_url": base_url, "host": urlsplit(base_url).netloc, "token": recipient.token}
        inserted["action"] = letter.get(action, "")
        return mail.message(recipient.address, *(letter[part].format(**inserted) for part in ("subject", "text")))

    mail.later(compose)


def verify_address(
    tx: sqlite3.Connection, account_id: str, now_seconds: float, *, by_identity: tuple[str, str] | None = None
) -> None:
    """Mark the address as verified. The first time, delete what another person may have made before.

    That is: identities (except the issuer and subject `by_identity`, which verified the address), unfinished sign-ins,
    and a default model of an own provider. Checkout cookies made before are not valid any more.
    """
    if not accounts.verify_email(tx, account_id, now_seconds):
        return
    identities.delete_identities(tx, account_id, but=by_identity)
    oauth_flows.delete_flows(tx, account_id)
    _reset_own_default_model(tx, account_id)


def delete_keys_and_providers(tx: sqlite3.Connection, account_id: str) -> None:
    """Delete all API keys, own model providers and tool servers. A default model of such a provider is deleted with
    it.
    """
    for table in (tokens.TABLE, providers.TABLE, tool_servers.TABLE):
        while table.delete_some(tx, account_id):
            pass


def _reset_own_default_model(tx: sqlite3.Connection, account_id: str) -> None:
    account = accounts.existing_account(tx, account_id)
    provider_name = (account.default_model or "").partition("/")[0]
    if providers.provider_by_name(tx, account_id, provider_name) is not None:
        accounts.update_account(tx, account_id, {"default_model": None})


@record("PasswordResetRequest", example={"email": "ada@example.com"})
class PasswordReset(NamedTuple):
    email: Annotated[str, EMAIL]


@record("VerifyEmailRequest", example={"token": "9hQ2vXk4LmT7bR1cWz8NfYp3JdS6gAe5uHxK0oEiVtu"})
class VerifyEmail(NamedTuple):
    token: Annotated[str, TOKEN]


@describes("Request a password reset", answer=Answer("Accepted.", _PASSWORD_RESET_ACCEPTED, 202))
async def request_password_reset(request: Request, body: PasswordReset) -> object:
    """Always answer 202 at once, so that the answer does not reveal accounts. The mail is written afterwards."""
    mail_link(request, "reset", partial(_add_reset_link, body.email))
    return _PASSWORD_RESET_ACCEPTED.example


def _add_reset_link(email: str, tx: sqlite3.Connection, now_seconds: float) -> Recipient | None:
    account = accounts.account_by_email(tx, email)
    return account and links.add_link(tx, account, "reset", now_seconds)


@describes(
    "Verify an email address",
    answer=Answer("The address is verified."),
    errors=[
        Refusal("invalid_token", param="token", when="The link was used, is over a day old, or is unknown."),
        Refusal("email_taken", when="Another account has the new address."),
        Refusal("rate_limit_exceeded", when="The address was changed too often in 72 hours."),
        SUSPENDED,
    ],
)
async def verify_email(request: Request, body: VerifyEmail) -> None:
    state = request.state
    await state.db.read(links.find_link, _TO_ADDRESS, body.token, state.clock())
    changed = await state.db.write(_verify, body.token, state.models.catalog.groups, state.clock())
    if changed is not None:
        mail_link(request, *changed)


def _verify(
    tx: sqlite3.Connection, token: str, groups: Groups | None, now_seconds: float
) -> tuple[str, Recipient] | None:
    """Use the link. If the address is changed, return the letter for the one before, with a link that restores it.

    An address that was never verified may be that of a stranger, who must not get the account.
    """
    link = links.use_link(tx, _TO_ADDRESS, token, now_seconds)
    before = accounts.account_by_id(tx, link.account_id)
    if link.email is None or before is None:
        verify_address(tx, link.account_id, now_seconds)
        accounts.join_group(tx, link.account_id, groups)
        return None
    accounts.set_email(tx, before.id, link.email, now_seconds, now_seconds)
    accounts.join_group(tx, before.id, groups)
    if not before.email_verified:
        return "changed", Recipient(before.email, "", before.language)
    undo = links.add_link(tx, before, "undo", now_seconds, before.email)
    if undo is None:
        raise ApiError("rate_limit_exceeded", "The address was changed too often. Try again in 3 days.")
    return "changed-with-undo", undo


@describes_account(
    "Resend the verification mail",
    "Limit: 3 an hour for an account.",
    answer=Answer("Accepted.", _VERIFICATION_ACCEPTED, 202),
    errors=[Refusal("already_verified"), Refusal("rate_limit_exceeded", when="More than 3 in an hour.")],
)
async def request_verification(request: Request, caller: Caller) -> object:
    state = request.state
    account = caller.account(state.db)
    if account.email_verified:
        raise ApiError("already_verified")
    state.limits.take("verify_email", caller.id)
    if state.mail is None:
        return {"message": "Mail is not set up on this server. Contact its operator."}
    mail_link(request, "verify", partial(add_verification_link, account.id))
    return _VERIFICATION_ACCEPTED.example


def add_verification_link(account_id: str, tx: sqlite3.Connection, now_seconds: float) -> Recipient | None:
    account = accounts.account_by_id(tx, account_id)
    if account is None or account.email_verified:
        return None
    return links.add_link(tx, account, "verify", now_seconds)


def add_change_link(account_id: str, email: str, tx: sqlite3.Connection, now_seconds: float) -> Recipient | None:
    """Store a link that makes `email` the account's address. The caller does not learn whether the address is taken."""
    account = accounts.account_by_id(tx, account_id)
    if account is None or accounts.is_taken(tx, email, account_id, now_seconds):
        return None
    return links.add_link(tx, account, "change", now_seconds, email)
