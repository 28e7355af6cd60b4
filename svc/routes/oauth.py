"""Sign-in with other providers, and the identities that are linked to an account.

GET /auth/oauth/google -> 302 to Google -> GET .../callback: state and cookie -> code -> identity -> _account_of -> 302
to the page with a one-time code or an error in its fragment -> POST /auth/oauth/session (routes/auth.py)
"""

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from urllib.parse import urlencode

from svc.admin import users
from svc.auth import accounts, identities, oauth_flows, sign_ins
from svc.auth.emails import EMAIL, same_email
from svc.auth.oauth import Flow, Identity, SignInProvider, new_flow
from svc.errors import ApiError
from svc.groups import Groups
from svc.routes.auth import note_sign_in
from svc.routes.links import verify_address
from svc.routes.schemas.common import TIMESTAMP, id_of
from svc.server.guards import Caller
from svc.server.interface import Answer, Operation, Parameter, Refusal, item_id, named_header, paged, path_id
from svc.server.openapi import REFERRER_POLICY
from svc.server.web import Request, Response, add_log_fields, read_page, reply
from svc.shapes import boolean, json_object, list_of, nullable, one_of, string
from svc.tables import Page

describes = partial(Operation, "Sign-in")
describes_account = partial(Operation, "Account")
_IDENTITY_PROVIDER = json_object(
    "IdentityProvider",
    provider="google",
    issuer="https://accounts.google.com",
    url=string.about("The address of a link that starts a sign-in.", "https://127.0.0.1:8443/auth/oauth/google"),
)
_IDENTITY_PROVIDER_LIST = json_object(
    "IdentityProviderList",
    object=one_of("list"),
    data=list_of(_IDENTITY_PROVIDER),
    has_more=boolean.about(example=False, const=False),
)
IDENTITY = json_object(
    "Identity",
    id=id_of("idn"),
    provider=nullable(string).about("The provider's name. Null means that it is no longer configured.", "google"),
    issuer="https://accounts.google.com",
    email=nullable(string).about("The address at the provider.", "ada@example.com"),
    created_at=TIMESTAMP,
)
_LINKING_BEGUN = json_object(
    "LinkingBegun",
    url=string.about(
        "The address to open in this browser within 10 minutes.", "https://accounts.google.com/o/oauth2/v2/auth?state=…"
    ),
)
_NO_PROVIDER = Refusal("not_found", "There is no such identity provider. GET /auth/oauth lists them.")
_PROVIDER, _PROVIDER_TO_LINK = (
    path_id(name, "The name of a configured identity provider.", "google", _NO_PROVIDER)
    for name in ("provider", "identity")
)
_COOKIE = named_header(
    "OAuthCookie",
    "`__Host-svc_oauth`, which binds the sign-in to this browser.",
    string,
    "__Host-svc_oauth=…; HttpOnly; Max-Age=660; Path=/; SameSite=lax; Secure",
    required=False,
)
_LOCATION = named_header(
    "Location", "The address to open.", string, "https://127.0.0.1:8443/#error=access_denied&provider=google"
)
_REDIRECT = {"location": _LOCATION, "referrer-policy": REFERRER_POLICY, "set-cookie": _COOKIE}

_CODE_LENGTH = 4096


# Why a sign-in fails, for the log, by the code for the page's fragment. Others are errors of the table.
_CAUSES = {
    "access_denied": "The person or the provider cancelled the sign-in.",
    "domain_not_allowed": "Sign-up is closed, there is no account, and SVC_OAUTH_<NAME>_DOMAINS lacks the domain.",
    "email_missing": "The provider sent no valid email address: the claim email is missing.",
    "email_not_verified": "The provider does not say that the address is verified: the claim email_verified is missing "
    "or false. If it never sends the claim, set SVC_OAUTH_<NAME>_TRUSTED_DOMAINS.",
    "identity_taken": "The identity is linked to another account.",
    "signup_closed": "Sign-up is closed, there is no account, and SVC_OAUTH_<NAME>_DOMAINS is not set.",
}


# Not in the list of sign-ins: everybody can call this address, and linking is no sign-in.
_NO_SIGN_IN = ("invalid_token", "identity_taken")


class Refused(Exception):
    """A sign-in that fails for one of the causes above."""

    def __init__(self, code: str) -> None:
        super().__init__(_CAUSES[code])
        self.code = code


@describes("List the identity providers", answer=Answer("The configured identity providers.", _IDENTITY_PROVIDER_LIST))
async def list_identity_providers(request: Request) -> object:
    base_url = request.state.config.base_url
    found = [
        {"provider": provider.name, "issuer": provider.issuer, "url": f"{base_url}/auth/oauth/{provider.name}"}
        for provider in request.state.identity_providers.values()
    ]
    return Page(found, has_more=False)


@describes(
    "Start a sign-in with an identity provider",
    parameters=[_PROVIDER],
    answer=Answer(
        "To the identity provider, or to the page with `#error=<code>&provider=<name>`.", headers=_REDIRECT, status=302
    ),
)
async def begin_oauth(request: Request, provider: str) -> Response:
    return await _redirected(request, provider, lambda found: _begin(request, found, None, _found))


@describes(
    "Return from an identity provider",
    parameters=[
        _PROVIDER,
        Parameter("state", "The state of the sign-in.", string),
        Parameter("code", "The code of the identity provider.", string),
        Parameter("error", "The error of the identity provider.", string),
        Parameter("iss", "The issuer that answers.", string),
    ],
    answer=Answer(
        "To the page, with `#code=…` to exchange for a session, `#linked=<name>`, or `#error=<code>&provider=<name>`.",
        headers=_REDIRECT,
        status=302,
    ),
)
async def finish_oauth(request: Request, provider: str) -> Response:
    return await _redirected(request, provider, partial(_come_back, request))


@describes_account("List the linked identities", answer=paged("A page of identities.", "IdentityList", IDENTITY))
async def list_identities(request: Request, caller: Caller) -> object:
    page = await read_page(request, identities.TABLE.page, caller.id)
    names = {provider.issuer: provider.name for provider in request.state.identity_providers.values()}
    return page.of(lambda identity: {"provider": names.get(identity["issuer"]), **identity})


@describes_account(
    "Start to link an identity",
    parameters=[_PROVIDER_TO_LINK],
    answer=Answer("The address to open.", _LINKING_BEGUN, headers={"set-cookie": _COOKIE}),
    errors=[
        Refusal("upstream_unreachable", "The identity provider cannot be reached. Try again later."),
        Refusal(
            "upstream_error", "The identity provider refused with status 500.", when="The identity provider failed."
        ),
        Refusal(
            "upstream_invalid_response",
            "The identity provider has no valid configuration.",
            when="Its answer is invalid.",
        ),
        Refusal("upstream_timeout", "The identity provider did not answer in time. Try again."),
    ],
)
async def begin_linking(request: Request, caller: Caller, identity: str) -> Response:
    return await _begin(request, _provider(request, identity), caller.id, lambda url: reply({"url": url}))


@describes_account(
    "Unlink an identity",
    parameters=[item_id("identity", "identity", "idn")],
    answer=Answer("The identity is unlinked."),
    errors=[Refusal("last_identity", when="It is the only way to sign in to the account.")],
)
async def delete_identity(request: Request, caller: Caller, identity: str) -> None:
    db = request.state.db
    has_password = caller.account(db).has_password and request.state.config.passwords
    await db.write(identities.delete_identity, caller.id, identity, has_password=has_password)


def _provider(request: Request, name: str) -> SignInProvider:
    provider = request.state.identity_providers.get(name)
    if provider is None:
        raise _NO_PROVIDER.error()
    return provider


async def _redirected(request: Request, name: str, step: Callable[[SignInProvider], Awaitable[Response]]) -> Response:
    """Return the answer of a step. The page shows its errors, because people open these addresses by a link."""
    provider = _provider(request, name)
    try:
        return await step(provider)
    except (Refused, ApiError) as error:
        code, detail = error.code, str(error)
    if code in _NO_SIGN_IN:
        request.state.metrics.sign_ins.add(provider.name, code)
    else:
        await note_sign_in(request, None, provider.name, code)
    add_log_fields(request, code=code, provider=provider.name, detail=detail)
    return _to_page(request, {"error": code, "provider": provider.name})


def _flow(request: Request, provider: SignInProvider, state: str) -> Flow:
    redirect_uri = f"{request.state.config.base_url}/auth/oauth/{provider.name}/callback"
    return new_flow(request.state.derived_keys["oauth"], redirect_uri, state)


async def _begin(
    request: Request, provider: SignInProvider, account_id: str | None, answer_to: Callable[[str], Response]
) -> Response:
    """Return the answer with the provider's address. A browser keeps its cookie, because it may have several flows."""
    browser, token = oauth_flows.browser_of(request.headers) or oauth_flows.new_token(), oauth_flows.new_token()
    url = await provider.authorization_url(_flow(request, provider, token))
    await request.state.db.write(oauth_flows.begin, token, browser, provider.name, account_id, request.state.clock())
    answer = answer_to(url)
    oauth_flows.set_cookie(answer, browser)
    return answer


async def _come_back(request: Request, provider: SignInProvider) -> Response:
    """Redirect to the page after a callback. The flow ends first, so that its state cannot be used again."""
    state, query = request.state, request.query_params
    browser, token = oauth_flows.browser_of(request.headers), query.get("state", "")
    flow = await state.db.write(oauth_flows.end, token, browser, state.clock()) if browser else None
    if not browser or not flow:
        raise ApiError("invalid_token", "The state was used, expired, is unknown, or belongs to another browser.")
    if flow.provider != provider.name or not await provider.answers_as(query.get("iss")):
        raise ApiError("invalid_token", "Another provider sent the answer.")
    if query.get("error") == "access_denied":
        raise Refused("access_denied")
    # A repeated parameter is ambiguous (RFC 6749 3.1).
    if "error" in query or not 0 < len(query.get("code", "")) <= _CODE_LENGTH or len(query) != len(query.multi_items()):
        raise ApiError("upstream_error", "The provider sent an error, or no code.")
    identity = _usable(await provider.identity(_flow(request, provider, token), query["code"]))
    code = None if flow.account_id else oauth_flows.new_token()
    groups, refusal = state.models.catalog.groups, _refusal(request, provider, identity)
    find = partial(_account_of, groups=groups, refusal=refusal, local=state.config.local_posture)
    account_id = await state.db.write(find, identity, flow.account_id, browser, code, state.clock())
    if code:
        await note_sign_in(request, account_id, provider.name, sign_ins.OK)
    add_log_fields(request, account=account_id, provider=provider.name)
    return _to_page(request, {"code": code} if code else {"linked": provider.name})


def _to_page(request: Request, fragment: dict[str, str]) -> Response:
    return _found(f"{request.state.config.base_url}/#{urlencode(fragment)}")


def _found(url: str) -> Response:
    headers = {"location": url, "cache-control": "no-store", "referrer-policy": "no-referrer"}
    return Response(status_code=302, headers=headers)


def _account_of(
    tx: sqlite3.Connection,
    identity: Identity,
    link_to: str | None,
    browser: str,
    code: str | None,
    now_seconds: float,
    *,
    groups: Groups | None,
    refusal: str | None,
    local: bool,
) -> str:
    """Return the account of an identity. Store its claims, and the `code` that signs `browser` in (None when linking).

    `refusal` is the code of the reason why the person gets no new account. Raises Refused, and ApiError `email_taken`,
    `account_suspended`, `invalid_token` (the account to link to was deleted).
    """
    account_id = identities.account_of(tx, identity.issuer, identity.subject)
    if account_id is not None and link_to not in (None, account_id):
        raise Refused("identity_taken")
    if account_id is None:
        account_id = link_to or _account_for(tx, identity, refusal, local, now_seconds)
        identities.add_identity(tx, account_id, identity.issuer, identity.subject, identity.email, now_seconds)
    account = accounts.existing_account(tx, account_id).check_active()
    if identity.email_verified and identity.email is not None and same_email(identity.email, account.email):
        verify_address(tx, account_id, now_seconds, by_identity=(identity.issuer, identity.subject))
    accounts.note_sign_in(tx, account_id, identity.claims, groups, now_seconds)
    if groups and groups.admin_claims and identity.claims is not None:
        is_admin = not {*groups.admin_claims}.isdisjoint(identity.claims)
        users.set_admin_by_claim(tx, account_id, is_admin, now_seconds)
    if code is not None:
        oauth_flows.add_code(tx, code, browser, account_id, now_seconds)
    return account_id


def _refusal(request: Request, provider: SignInProvider, identity: Identity) -> str | None:
    """Return the code of the reason why a person without an account gets none, or None."""
    if request.state.config.signup == "open":
        return None
    if not provider.domains:
        return "signup_closed"
    if identity.domain not in provider.domains:
        return "domain_not_allowed"
    return None if identity.email_verified else "email_not_verified"


def _account_for(
    tx: sqlite3.Connection, identity: Identity, refusal: str | None, local: bool, now_seconds: float
) -> str:
    """Return the account that a new identity joins, or a new account.

    It joins only if both sides have verified the address. Otherwise someone who signed up with a foreign address, here
    or there, would share the account of its owner.
    """
    if identity.email is None:
        raise Refused("email_missing")
    account = accounts.account_by_email(tx, identity.email)
    if account is None:
        if refusal is not None:
            raise Refused(refusal)
        return accounts.add_account(tx, identity.email, identity.name, None, now_seconds, local=local).id
    if not account.email_verified or not same_email(identity.email, account.email):
        raise ApiError("email_taken")
    if not identity.email_verified:
        raise Refused("email_not_verified")
    return account.id


def _usable(identity: Identity) -> Identity:
    """Return the identity without an address or name that is not valid for an account."""
    email = name = None
    with suppress(ApiError):
        email = EMAIL.check(identity.email, "")
    with suppress(ApiError):
        name = accounts.PERSON_NAME.check(identity.name, "")
    return identity._replace(email=email, name=name)
