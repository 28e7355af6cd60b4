"""Signing in with other providers, and the identities that an account is linked with.

GET /auth/oauth/google -> 302 to Google -> GET .../callback: state and cookie -> code -> identity -> _arrive -> 302 to the page
with a one-time code in its fragment, or what went wrong -> POST /auth/oauth/session (routes/auth.py)
"""

import sqlite3
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from svc.auth import accounts, identities, oauth_flows
from svc.auth.emails import EMAIL, same_email
from svc.auth.oauth import Flow, Identity, SignInProvider, new_flow
from svc.db import Page
from svc.errors import ApiError
from svc.routes import email_verification
from svc.routes.schemas.accounts import IDENTITY_LIST, IDENTITY_PROVIDER_LIST, LINKING_BEGUN
from svc.routes.schemas.headers import LOCATION_HEADER, OAUTH_COOKIE_HEADER
from svc.server.gate import Caller
from svc.server.interface import Answer, Refusal, describes, parameter, path_id
from svc.server.openapi import REFERRER_POLICY
from svc.server.state import State
from svc.server.web import add_log_fields, listing, no_content, page_after, page_limit, reply
from svc.shapes import Shape, string

_PROVIDER = path_id("provider", "The name of a configured identity provider.", "google")
_NOT_FOUND = Refusal(
    "not_found",
    "There is no such identity provider. GET /auth/oauth lists them.",
    when="No such identity provider is configured.",
)

_CODE_LENGTH = 4096


class Refused(Exception):
    """A sign-in that ends without a session, for a reason that no answer of the API has: the page's fragment tells it.

    `access_denied` (at the provider), `email_missing`, `identity_taken` (linked to another account).
    """


# --- signing in


@describes(
    "Sign-in",
    "listIdentityProviders",
    "List the identity providers",
    answers={200: Answer("Those that the operator has configured.", IDENTITY_PROVIDER_LIST)},
)
async def list_providers(request: Request[State]) -> Response:
    """The configured providers, with the address that begins a sign-in."""
    base_url = request.state.config.base_url
    found = [
        {"provider": provider.name, "issuer": provider.issuer, "url": f"{base_url}/auth/oauth/{provider.name}"}
        for provider in request.state.identity_providers.values()
    ]
    return listing(Page(found, has_more=False), dict)


@describes(
    "Sign-in",
    "beginOauth",
    "Begin a sign-in elsewhere",
    "For the browser: authorization code with PKCE, state and nonce. Limit: 300 a minute for one IP address, "
    "for all three steps together.",
    parameters=[_PROVIDER],
    answers={
        302: Answer(
            "To the identity provider; where that cannot be, to the page with `#error=<code>&provider=<name>`.",
            headers={"location": LOCATION_HEADER, "referrer-policy": REFERRER_POLICY, "set-cookie": OAUTH_COOKIE_HEADER},
        )
    },
    errors=[_NOT_FOUND],
)
async def begin(request: Request[State]) -> Response:
    """302 to the provider. Trouble is shown on the page, as people come here by a link."""
    provider = _provider(request, request.path_params["provider"])
    try:
        url, browser = await _begin(request, provider, None)
    except ApiError as error:
        return _trouble(request, provider, error.code, str(error))
    answer = _found(url)
    oauth_flows.set_cookie(answer, browser)
    return answer


@describes(
    "Sign-in",
    "finishOauth",
    "Come back from an identity provider",
    "For the browser, sent here by the identity provider. An identity joins an existing account only where "
    "both sides have verified the e-mail.",
    parameters=[
        _PROVIDER,
        parameter("state", "query", "What the sign-in began with.", string),
        parameter("code", "query", "What the identity provider gave.", string),
        parameter("error", "query", "Why it gave none.", string),
        parameter("iss", "query", "Who answers.", string),
    ],
    answers={
        302: Answer(
            "To the page, with `#code=…` to change for a session, `#linked=<name>`, or `#error=<code>&provider=<name>`.",
            headers={"location": LOCATION_HEADER, "referrer-policy": REFERRER_POLICY, "set-cookie": OAUTH_COOKIE_HEADER},
        )
    },
    errors=[_NOT_FOUND],
)
async def callback(request: Request[State]) -> Response:
    """302 to the page: `#code=…` to change for a session, `#linked=…`, or `#error=…`."""
    provider = _provider(request, request.path_params["provider"])
    try:
        answered = await _come_back(request, provider)
    except Refused as refusal:
        return _trouble(request, provider, str(refusal))
    except ApiError as error:
        return _trouble(request, provider, error.code, str(error))
    return _to_page(request, answered)


# --- the identities of an account


@describes(
    "Account",
    "listIdentities",
    "List the linked identities",
    answers={200: Answer("A page of identities.", IDENTITY_LIST)},
    paged=True,
)
async def list_identities(request: Request[State], caller: Caller) -> Response:
    """Newest first, `?limit= ?after=`."""
    page = await request.state.db.read(identities.identities_page, caller.id, page_limit(request), page_after(request))
    names = {provider.issuer: provider.name for provider in request.state.identity_providers.values()}
    return listing(page, lambda identity: identity.as_json(names.get(identity.issuer)))


@describes(
    "Account",
    "beginLinking",
    "Begin to link an identity",
    parameters=[path_id("identity", "The name of a configured identity provider.", "google")],
    answers={200: Answer("Where to go.", LINKING_BEGUN, headers={"set-cookie": OAUTH_COOKIE_HEADER})},
    errors=[
        _NOT_FOUND,
        Refusal("upstream_unreachable", "The identity provider cannot be reached. Try again later."),
        Refusal("upstream_error", "The identity provider refused with status 500.", when="The identity provider failed."),
        Refusal(
            "upstream_invalid_response", "The identity provider gave no valid configuration.", when="Its answer makes no sense."
        ),
        Refusal(
            "upstream_timeout",
            "The identity provider did not answer in time. Try again.",
            when="The identity provider did not answer in time.",
        ),
    ],
)
async def begin_linking(request: Request[State], caller: Caller) -> Response:
    """`{url}`: where this browser, and no other, goes to link an identity to this account within 10 minutes."""
    url, browser = await _begin(request, _provider(request, request.path_params["identity"]), caller.id)
    answer = reply({"url": url})
    oauth_flows.set_cookie(answer, browser)
    return answer


@describes(
    "Account",
    "deleteIdentity",
    "Unlink an identity",
    parameters=[path_id("identity", "The identity's id.", "idn_01m3250v3vn4qvxnatpwzmywwn")],
    answers={204: Answer("It signs in to this account no more.")},
    errors=[
        Refusal("not_found", "There is no such identity.", when="The account has no such identity."),
        Refusal("last_identity", when="It is the only way in to the account."),
    ],
)
async def unlink(request: Request[State], caller: Caller) -> Response:
    """204; 409 when it is the only way in."""
    identity_id = request.path_params["identity"]
    db = request.state.db
    account = await caller.account(db)
    await db.write(identities.delete_identity, caller.id, identity_id, has_password=account.has_password)
    return no_content()


# --- the way to a provider and back


def _provider(request: Request[State], name: str) -> SignInProvider:
    provider: SignInProvider | None = request.state.identity_providers.get(name)
    if provider is None:
        raise ApiError("not_found", "There is no such identity provider. GET /auth/oauth lists them.")
    return provider


def _flow(request: Request[State], provider: SignInProvider, state: str) -> Flow:
    redirect_uri = f"{request.state.config.base_url}/auth/oauth/{provider.name}/callback"
    return new_flow(request.state.derived_keys["oauth"], redirect_uri, state)


async def _begin(request: Request[State], provider: SignInProvider, account_id: str | None) -> tuple[str, str]:
    """Where to send the browser, and what it is known by. It keeps its name, so that two sign-ins may be under way in it."""
    browser, token = oauth_flows.browser_of(request.headers) or oauth_flows.new_token(), oauth_flows.new_token()
    url = await provider.authorization_url(_flow(request, provider, token))
    now_seconds = request.state.clock()
    await request.state.db.write(oauth_flows.begin, token, browser, provider.name, account_id, now_seconds)
    return url, browser


async def _come_back(request: Request[State], provider: SignInProvider) -> dict[str, str]:
    """The page's fragment for a callback. The flow ends first of all, so that nothing can be tried with its state again."""
    state, query = request.state, request.query_params
    browser, token = oauth_flows.browser_of(request.headers), query.get("state", "")
    flow = await state.db.write(oauth_flows.end, token, browser, state.clock()) if browser else None
    if not browser or not flow:
        raise ApiError("invalid_token", "The state is used, old, unknown, or of another browser.")
    if flow.provider != provider.name or not await provider.answers_as(query.get("iss")):
        raise ApiError("invalid_token", "The answer is another provider's.")
    if query.get("error") == "access_denied":
        raise Refused("access_denied")
    # A parameter that comes twice could be read in two ways (RFC 6749 3.1).
    if "error" in query or not 0 < len(query.get("code", "")) <= _CODE_LENGTH or len(query) != len(query.multi_items()):
        raise ApiError("upstream_error", "The provider answered with an error, or without a code.")
    identity = _usable(await provider.identity(_flow(request, provider, token), query["code"]))
    code = None if flow.account_id else oauth_flows.new_token()
    account_id = await state.db.write(
        _arrive, identity, flow.account_id, browser, code, state.config.signup == "open", state.clock()
    )
    add_log_fields(request, account=account_id, provider=provider.name)
    return {"code": code} if code else {"linked": provider.name}


def _to_page(request: Request[State], fragment: dict[str, str]) -> Response:
    return _found(f"{request.state.config.base_url}/#{urlencode(fragment)}")


def _trouble(request: Request[State], provider: SignInProvider, code: str, detail: str | None = None) -> Response:
    add_log_fields(request, code=code, provider=provider.name, detail=detail)
    return _to_page(request, {"error": code, "provider": provider.name})


def _found(url: str) -> Response:
    headers = {"location": url, "cache-control": "no-store", "referrer-policy": "no-referrer"}
    return Response(status_code=302, headers=headers)


# --- whose identity it is


def _arrive(
    tx: sqlite3.Connection,
    identity: Identity,
    link_to: str | None,
    browser: str,
    code: str | None,
    signup_open: bool,
    now_seconds: float,
) -> str:
    """The account that an identity belongs to from now on, with the `code` that signs `browser` in to it (None when linking).

    Raises Refused, and ApiError `email_taken`, `signup_closed`, `invalid_token` (the account to link to is gone).
    """
    account_id = identities.account_of(tx, identity.issuer, identity.subject)
    if account_id is not None and link_to not in (None, account_id):
        raise Refused("identity_taken")
    if account_id is None:
        account_id = link_to or _account_for(tx, identity, signup_open, now_seconds)
        identities.add_identity(tx, account_id, identity.issuer, identity.subject, identity.email, now_seconds)
    _verify_email(tx, account_id, identity, now_seconds)
    if code is not None:
        oauth_flows.add_code(tx, code, browser, account_id, now_seconds)
    return account_id


def _account_for(tx: sqlite3.Connection, identity: Identity, signup_open: bool, now_seconds: float) -> str:
    """The account that a new identity joins, or a new one.

    It joins only where both sides have verified the e-mail: else whoever signed up first with somebody's address, here or
    there, would share an account with them.
    """
    if identity.email is None:
        raise Refused("email_missing")
    account = accounts.account_by_email(tx, identity.email)
    if account is None:
        if not signup_open:
            raise ApiError("signup_closed")
        account = accounts.add_account(tx, identity.email, identity.name, None, now_seconds)
    elif not (identity.email_verified and same_email(identity.email, account.email)) or account.email_verified_at is None:
        raise ApiError("email_taken")
    return account.id


def _verify_email(tx: sqlite3.Connection, account_id: str, identity: Identity, now_seconds: float) -> None:
    account = accounts.account_by_id(tx, account_id)
    same = account is not None and identity.email is not None and same_email(identity.email, account.email)
    if same and identity.email_verified:
        email_verification.verify_email(tx, account_id, now_seconds, by_identity=(identity.issuer, identity.subject))


def _usable(identity: Identity) -> Identity:
    """The identity without an e-mail or a name that no account here could have."""

    def usable(shape: Shape[str] | Shape[str | None], value: str | None) -> str | None:
        try:
            return shape.check(value, "")
        except ApiError:
            return None

    email = usable(EMAIL, identity.email)
    return identity._replace(email=email, name=usable(accounts.PERSON_NAME, identity.name))
