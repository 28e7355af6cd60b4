"""Administration: accounts and state. Spending and logs are in svc/routes/admin_reports.py, and the support inbox in
svc/routes/support.py.

Administrators cannot read conversations, files or keys of others.
POST /admin/users -> a link to set a password: by mail to the new address, or else in the answer ->
/password-reset#TOKEN
"""

import asyncio
from functools import partial
from typing import Any

from svc.admin import health, users
from svc.auth import tokens
from svc.auth.links import Recipient
from svc.billing import wallet
from svc.deletion.slices import delete_account
from svc.ids import timestamp
from svc.routes.api_keys import API_KEY
from svc.routes.links import mail_link
from svc.routes.schemas.common import COUNT, TIMESTAMP, WRONG_PARAMETER
from svc.routes.user import PERSON
from svc.server.guards import Caller
from svc.server.interface import Answer, Operation, Parameter, Refusal, paged
from svc.server.status import now, readings
from svc.server.web import Request, Response, page_after, page_limit, read_page
from svc.shapes import anything, boolean, given, json_object, list_of, mapping, nullable, one_of, string, text

describes = partial(Operation, "Administration")
_USER_IN_LIST = json_object(
    "AdministeredUser",
    "An account as administrators see it.",
    PERSON,
    admin=boolean.about("Whether the account is an administrator.", False),
    group_chosen=boolean.about("Whether an administrator chose the group, or that there is none.", False),
    last_seen_at=nullable(TIMESTAMP).about("The last use, to about an hour. Null means never."),
    balance_micros=COUNT.about("The balance of the wallet, in micros."),
    spent_month_micros=COUNT.about("The cost of its calls in this month (UTC), in micros."),
    stored_bytes=COUNT.about("The bytes that it stores."),
    keys=COUNT.about("The number of its API keys, counted up to 10,000."),
)
_INVITATION = json_object(
    "Invitation",
    "An account and a link to set its password.",
    _USER_IN_LIST,
    invite_url=nullable(string).about(
        "The one-time link, which is not shown again. Null means that it was mailed.",
        "https://127.0.0.1:8443/password-reset#9hQ2vXk4LmT7bR1cWz8NfYp3JdS6gAe5uHxK0oEiVtp",
    ),
)
_FINDING = json_object(
    "Finding",
    grade=one_of("ok", "look", "wrong").about("`look`: it works, but check it."),
    about="backup",
    text="the last one was made 0.3 days ago",
    code=string.about("Names the text, for other languages. Empty: the text has no name.", "backup_made"),
    values=list_of(anything).about("Texts and numbers in the text.", [0.3]),
)
_PROVIDER = json_object(
    "ProviderState",
    name="ollama",
    models=COUNT,
    answers=nullable(boolean).about("Whether it answered the last request for its list of models. Null: never asked."),
)
_SERVER = json_object(
    "ServerState",
    provider="lab",
    server=string.about("Its address.", "http://gpu1:8000/v1"),
    calls=COUNT.about("Attempts since the start of the service."),
    failures=COUNT.about("Attempts for which it was down."),
    skipped=boolean.about("Whether it has failed in the last 15 seconds, so that others are asked first.", False),
)
_BACKUP = json_object(
    "BackupState",
    running=boolean.about("Whether it is being made.", False),
    percent=COUNT.about("How much of the database is copied, in percent.", 100),
    started_at=TIMESTAMP,
    finished_at=nullable(TIMESTAMP),
    file=nullable(string).about("The archive, on the server.", "/backups/svc-1f2e3d4c-20260921T141320000Z.tar"),
    bytes=nullable(COUNT),
    error=nullable(string).about("Why it failed. Null: it did not.", None),
)
BACKUPS = json_object(
    "Backups",
    folder=nullable(string).about("The folder of `SVC_BACKUP_DIR`. Null: not set.", "/backups"),
    last=nullable(_BACKUP).about("The last backup that an administrator has started since the start of the server."),
)
_STATUS = json_object(
    "Status",
    version="1.0.0",
    pid=COUNT,
    base_url="https://127.0.0.1:8443",
    started_at=TIMESTAMP,
    draining=boolean.about("Whether the server is shutting down."),
    gauges=mapping.about("The gauges of `GET /metrics` without labels, by name.", {"svc_open_answers": 2}),
    holds=COUNT.about("The calls in progress that hold money."),
    held_micros=COUNT,
    wallets=COUNT,
    balance_micros=COUNT.about("The sum of all wallets."),
    backups=BACKUPS,
    last_backup_at=nullable(TIMESTAMP).about("Null means none yet."),
    certificate_expires_at=nullable(TIMESTAMP).about("Null means that a proxy has the certificate."),
    providers=list_of(_PROVIDER).about("The operator's model servers."),
    servers=list_of(_SERVER).about("Each server of the providers with several addresses."),
    groups=list_of(string).about("The names of the catalog's groups.", ["research"]),
    findings=list_of(_FINDING),
)
_NO_GROUP = Refusal("invalid_value", "There is no group 'x' in the catalog.", "group")
_LAST_ADMIN = Refusal("last_admin", when="The account is the only active administrator.")
_TIMES = {
    "last_backup_at": "svc_last_backup_timestamp_seconds",
    "certificate_expires_at": "svc_certificate_expiry_timestamp_seconds",
}
_FILTERS = (
    Parameter("q", "A part of the email address, the name or the id.", text(500)),
    Parameter("group", "Only accounts of this group; empty: of none.", text(63)),
    Parameter("status", "Only accounts with this status.", users.STATUS),
)
_SORT = Parameter(
    "sort",
    "The account that is listed first: the newest, the last seen, or the one that spent or stores most.",
    one_of(*users.ORDERS),
    default="created",
)


async def _user(request: Request, account_id: str) -> dict[str, Any]:
    return await request.state.db.read(users.user, account_id, request.state.clock())


@describes(
    "List the accounts",
    "Sorted by another value than `created`, a page after a deleted account is 400: begin again without `after`.",
    parameters=[*_FILTERS, _SORT],
    answer=paged("A page of accounts.", "AdministeredUserList", _USER_IN_LIST),
    errors=[WRONG_PARAMETER],
)
async def list_users(request: Request, caller: Caller) -> object:
    only = {one.name: one.of(request) for one in _FILTERS}
    limit, after, now_seconds = page_limit(request), page_after(request), request.state.clock()
    return await request.state.db.heavy_read(users.user_page, now_seconds, limit, after, only, _SORT.of(request))


@describes(
    "Invite a user",
    answer=Answer("The new account.", _INVITATION, 201),
    errors=[Refusal("email_taken", param="email", when="An account has this email address."), _NO_GROUP],
)
async def create_user(request: Request, caller: Caller, body: users.Invitation) -> object:
    state = request.state
    invite = partial(users.invite, by_mail=state.mail is not None, now_seconds=state.clock())
    account_id, link = await state.db.write(invite, caller.id, body, state.models.catalog.groups)
    return await _invitation(request, caller, "invitation", account_id, link)


async def _invitation(
    request: Request, caller: Caller, letter: str, account_id: str, link: Recipient
) -> dict[str, Any]:
    """Mail a one-time link. If the server cannot send mail, the answer has the address of the link."""
    state = request.state
    inviter = caller.account(state.db)
    action = "password" if state.config.passwords else "sign_in"
    mail_link(request, letter, link, inviter=inviter.name or inviter.email, action=action)
    url = None if state.mail else f"{state.config.base_url}/password-reset#{link.token}"
    return {**await _user(request, account_id), "invite_url": url}


@describes("Show an account", answer=Answer("The account.", _USER_IN_LIST))
async def get_user(request: Request, caller: Caller, account_id: str) -> object:
    return await _user(request, account_id)


@describes(
    "Change an account",
    "A suspended account is refused with 403 `account_suspended`, and its open streams end within 2 seconds.",
    answer=Answer("The changed account.", _USER_IN_LIST),
    errors=[_LAST_ADMIN, _NO_GROUP],
)
async def update_user(request: Request, caller: Caller, account_id: str, body: users.AdminChanges) -> object:
    state = request.state
    await state.db.write(
        users.change_user, caller.id, account_id, given(body), state.models.catalog.groups, state.clock()
    )
    if body.status == "suspended":
        state.drain.end_all_of(account_id, "account_suspended")
    return await _user(request, account_id)


@describes(
    "Send a link to set a password",
    "A one-time link, valid for 72 hours: by mail, or else in the answer. Earlier links to reset the password become "
    "invalid.",
    answer=Answer("The account.", _INVITATION, 201),
    errors=[Refusal("rate_limit_exceeded", "This account has too many valid links.", when="It has 20 valid links.")],
)
async def create_reset_link(request: Request, caller: Caller, account_id: str) -> object:
    state = request.state
    add = partial(users.add_reset_link, by_mail=state.mail is not None, seconds=users.LINK_SECONDS)
    link = await state.db.write(add, caller.id, account_id, now_seconds=state.clock())
    return await _invitation(request, caller, "reset-by-admin", account_id, link)


@describes(
    "Delete an account",
    "With everything personal, as its owner would. Its open streams end.",
    answer=Answer("The account is deleted."),
    errors=[_LAST_ADMIN],
)
async def delete_user(request: Request, caller: Caller, account_id: str) -> None:
    state = request.state
    await delete_account(state.db, state.drain, account_id, state.clock(), actor=caller.id)
    state.item_memory.delete_account(account_id)


@describes(
    "List the API keys of an account",
    "The keys themselves are not shown.",
    answer=paged("A page of keys.", "ApiKeyList", API_KEY),
)
async def list_user_api_keys(request: Request, caller: Caller, account_id: str) -> object:
    return await read_page(request, partial(users.key_page, now_seconds=request.state.clock()), account_id)


@describes("Delete all API keys of an account", answer=Answer("The keys are deleted."))
async def delete_user_api_keys(request: Request, caller: Caller, account_id: str) -> None:
    await request.state.db.write(users.note_deletion_of_keys, caller.id, account_id, request.state.clock())
    while await request.state.db.write(tokens.TABLE.delete_some, account_id):
        pass  # in short transactions, because there may be many keys


@describes("Delete an API key of an account", answer=Answer("The key is deleted."))
async def delete_user_api_key(request: Request, caller: Caller, account_id: str, key_id: str) -> None:
    await request.state.db.write(users.delete_key, caller.id, account_id, key_id, request.state.clock())


@describes(
    "Show the state of the service",
    "What `svc status` prints, and what `svc doctor` finds without asking other services.",
    answer=Answer("The state.", _STATUS),
)
async def get_status(request: Request, caller: Caller) -> object:
    state = request.state
    found = now(state)
    measured = {name: value for name, labels, value in await readings(state) if not labels}
    return {
        **{name: found[name] for name in ("version", "pid", "base_url", "started_at", "draining")},
        "gauges": measured,
        "backups": state.backups.as_json(),
        **await state.db.read(wallet.sums),
        **{name: timestamp(measured[gauge]) if measured.get(gauge) else None for name, gauge in _TIMES.items()},
        "providers": [
            {"name": name, "models": models, "answers": answers}
            for name, (models, answers) in state.models.catalog.providers().items()
        ],
        "servers": found["servers"],
        "groups": list(state.models.catalog.groups.by_name) if state.models.catalog.groups else [],
        "findings": [one._asdict() for one in await asyncio.to_thread(health.findings, state.config)],
    }


async def unknown(request: Request, caller: Caller) -> Response:
    """Refuse a path or method that does not exist below /admin: 404, or 405 if the path has other methods."""
    raise request.scope["routes"].refusal(request.scope)
