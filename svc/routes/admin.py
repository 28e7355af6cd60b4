"""Administration: accounts. Administrators cannot read conversations, files or keys of others.

POST /admin/users -> a link to set a password: by mail to the new address, or else in the answer -> /password-reset#TOKEN
"""

from email.message import EmailMessage
from functools import partial

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from svc.admin import users
from svc.admin.users import AdminChanges, Invitation
from svc.auth import accounts, links, tokens
from svc.auth.mail import Mail
from svc.deletion.account import delete_account
from svc.routes.schemas.accounts import API_KEY
from svc.routes.schemas.admin import INVITATION, USER_IN_LIST
from svc.server.gate import Caller
from svc.server.interface import Answer, Refusal, Section, paged, parameter
from svc.server.state import Request, State
from svc.server.web import listing, no_content, page_after, page_limit, reply
from svc.shapes import given, text

describes = Section("Administration").describes
_NO_GROUP = Refusal("invalid_value", "There is no group 'x' in the catalog.", "group")
_LAST_ADMIN = Refusal("last_admin", when="The account is the only active administrator.")
_Q, _GROUP = text(500), text(63)
_INVITATION_TEXT = """\
An administrator of
{base_url}
has sent you a link to your account. It works once, within 72 hours:

{base_url}/password-reset#{token}
"""


async def _user(request: Request, account_id: str, status: int = 200, **more: str | None) -> Response:
    found = await request.state.db.read(users.user, account_id, request.state.clock())
    return reply({**found, **more}, status)


@describes(
    "List the accounts",
    parameters=[
        parameter("q", "query", "A part of the email address, the name or the id.", _Q),
        parameter("group", "query", "Only accounts of this group; empty: of none.", _GROUP),
        parameter("status", "query", "Only accounts with this status.", users.STATUS),
    ],
    answers=paged("A page of accounts.", "AdministeredUserList", USER_IN_LIST),
    errors=[Refusal("invalid_value", when="A parameter is wrong.")],
)
async def list_users(request: Request, caller: Caller) -> Response:
    query = request.query_params
    checks = {"q": _Q, "group": _GROUP, "status": users.STATUS}
    only = users.Filter(**{name: shape.check(query[name], name) for name, shape in checks.items() if name in query})
    limit, after = page_limit(request), page_after(request)
    page = await request.state.db.heavy_read(users.user_page, request.state.clock(), limit, after, only)
    return listing(page, dict)


@describes(
    "Invite a user",
    "The address counts as verified. A one-time link, valid for 72 hours, sets the password. It is mailed if the server can send "
    "mail; otherwise the answer shows it as `invite_url`, once.",
    body=users.INVITATION,
    answers={201: Answer("The new account.", INVITATION)},
    errors=[Refusal("email_taken", param="email", when="An account has this email address."), _NO_GROUP],
)
async def create_user(request: Request, caller: Caller, body: Invitation) -> Response:
    state, token = request.state, links.new_link_token(verified=True)
    invite = partial(users.invite, by_mail=state.mail is not None, now_seconds=state.clock())
    account_id = await state.db.write(invite, caller.id, body, state.models.catalog.groups, token)
    return await _user(request, account_id, 201, invite_url=_send(state, body.email, token))


def _send(state: State, email: str, token: str) -> str | None:
    """Mail a one-time link; return its address if the server cannot send mail."""
    if state.mail is None:
        return f"{state.config.base_url}/password-reset#{token}"
    state.mail.later(partial(_message, state, state.mail, email, token))
    return None


async def _message(state: State, mail: Mail, email: str, token: str) -> EmailMessage:
    return mail.message(email, "Your account", _INVITATION_TEXT.format(base_url=state.config.base_url, token=token))


@describes("Show an account", answers={200: Answer("The account.", USER_IN_LIST)})
async def get_user(request: Request, caller: Caller) -> Response:
    return await _user(request, request.path_params["account_id"])


@describes(
    "Change an account",
    "A suspended account is refused with 403 `account_suspended`, and its open streams end within 2 seconds.",
    body=users.ADMIN_CHANGES,
    answers={200: Answer("The changed account.", USER_IN_LIST)},
    errors=[_LAST_ADMIN, _NO_GROUP],
)
async def update_user(request: Request, caller: Caller, body: AdminChanges) -> Response:
    state, account_id = request.state, request.path_params["account_id"]
    groups = state.models.catalog.groups
    await state.db.write(users.change_user, caller.id, account_id, given(body), groups, state.clock())
    if body.status == "suspended":
        state.drain.end_all_of(account_id, "account_suspended")
    return await _user(request, account_id)


@describes(
    "Send a link to set a password",
    "A one-time link, valid for 72 hours: by mail, or else in the answer. Earlier links to reset the password become invalid.",
    answers={201: Answer("The account.", INVITATION)},
    errors=[Refusal("rate_limit_exceeded", "This account has too many valid links.", when="It has 20 valid links.")],
)
async def create_reset_link(request: Request, caller: Caller) -> Response:
    state = request.state
    account = await state.db.read(accounts.existing_account, request.path_params["account_id"])
    token = links.new_link_token(verified=account.email_verified)
    add = partial(users.add_reset_link, by_mail=state.mail is not None, now_seconds=state.clock(), seconds=users.LINK_SECONDS)
    await state.db.write(add, caller.id, account.id, token)
    return await _user(request, account.id, 201, invite_url=_send(state, account.email, token))


@describes(
    "Delete an account",
    "With everything personal, as its owner would. Its open streams end.",
    answers={204: Answer("The account is deleted.")},
    errors=[_LAST_ADMIN],
)
async def delete_user(request: Request, caller: Caller) -> Response:
    state, account_id = request.state, request.path_params["account_id"]
    await delete_account(state.db, state.drain, account_id, state.clock(), actor=caller.id)
    state.item_memory.delete_account(account_id)
    return no_content()


@describes(
    "List the API keys of an account",
    "The keys themselves are not shown.",
    answers=paged("A page of keys.", "ApiKeyList", API_KEY),
)
async def list_user_api_keys(request: Request, caller: Caller) -> Response:
    limit, after = page_limit(request), page_after(request)
    return listing(await request.state.db.read(users.key_page, request.path_params["account_id"], limit, after), dict)


@describes("Delete all API keys of an account", answers={204: Answer("The keys are deleted.")})
async def delete_user_api_keys(request: Request, caller: Caller) -> Response:
    state, account_id = request.state, request.path_params["account_id"]
    await state.db.write(users.note_deletion_of_keys, caller.id, account_id, state.clock())
    while await state.db.write(tokens.TABLE.delete_some, account_id):
        pass  # in short transactions, because there may be many keys
    return no_content()


@describes("Delete an API key of an account", answers={204: Answer("The key is deleted.")})
async def delete_user_api_key(request: Request, caller: Caller) -> Response:
    state, ids = request.state, request.path_params
    await state.db.write(users.delete_key, caller.id, ids["account_id"], ids["key_id"], state.clock())
    return no_content()


async def unknown(request: Request, caller: Caller) -> Response:
    """Refuse a path or method that does not exist below /admin: 404, or 405 if the path has other methods."""
    allowed = {
        method
        for route in request.app.router.routes
        if route.matches(request.scope)[0] is Match.PARTIAL
        for method in route.methods
    }
    if not allowed:
        raise HTTPException(404)
    raise HTTPException(405, headers={"allow": ", ".join(sorted(allowed))})
