"""Guards that authenticate and limit requests. The route table in app.py puts them around its handlers.

signed_in(metered(handler)): bearer -> Caller (401) -> one admission (429) -> handler(request, caller)
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from starlette.responses import Response

from svc.auth import accounts, tokens
from svc.auth.accounts import Account
from svc.content.artifacts import account_of_link
from svc.db import Database, acting_for
from svc.errors import ApiError
from svc.groups import Group
from svc.server.interface import Implied, Refusal, bearer, named_header, token_in
from svc.server.limits import CHAT_PER_MINUTE, network_of
from svc.server.state import Request, State
from svc.server.web import Endpoint
from svc.shapes import string, whole

LINK = "link"
SUSPENDED = Refusal("account_suspended", when="An administrator has suspended the account.")
_DAY_SECONDS = 86_400
_TOKEN_LENGTH = 4096
_BEARER = bearer(
    "bearer", "A session token (a JWT, valid for 8 hours), or an API key (`svc-v1-…`, valid until it is deleted)."
)
_API_KEY_HEADER = token_in("header", "x-api-key", "apiKeyHeader", "The same token, as Anthropic's SDKs send it.")
_LINK = token_in(
    "query", "signature", "link", "The signature in a `content_url`. It is valid for an hour and for one file."
)
_FREE = CHAT_PER_MINUTE["free"]
_RATE_LIMIT_HEADERS = {
    "x-ratelimit-limit-requests": named_header(
        "RateLimitLimit",
        f"The account's limit of chat requests a minute: {_FREE}, or {CHAT_PER_MINUTE['pro']} for a pro account, or "
        "that of the account's group. On every answer to a counted request.",
        whole,
        _FREE,
        required=False,
    ),
    "x-ratelimit-remaining-requests": named_header(
        "RateLimitRemaining", "The requests that are left in this window.", whole.about(minimum=0), 19, required=False
    ),
    "x-ratelimit-reset-requests": named_header(
        "RateLimitReset", "The time until the window ends.", string.about(pattern="^[0-9]+s$"), "37s", required=False
    ),
}


@dataclass(slots=True, eq=False)
class Caller:
    """The account that sent a request, as it is now. `auth` is how: `session`, `api_key` or LINK. `key_id` is the
    key's.

    `identity_at` is when an identity provider began the session (Unix seconds), else 0.
    `group` is None if the catalog has no groups: then every account may use every model.
    """

    id: str
    tier: str
    default_model: str | None
    auth: str
    key_id: str | None = None
    identity_at: int = 0
    group: Group | None = None
    admin: bool = False  # never with an API key

    def account(self, db: Database) -> Account:
        """Return the account as it is now. Raises ApiError `invalid_api_key` if it has been deleted."""
        return _account(db, self.id)


Handler = Callable[[Request, Caller], Awaitable[Response | None]]


@Implied(security=_API_KEY_HEADER)
def key_in_header(endpoint: Endpoint) -> Endpoint:
    """Accept the token in `x-api-key`, too. Two different tokens are refused, as two `Authorization` headers are."""

    def guarded(request: Request) -> Awaitable[Response | None]:
        context = request.context
        key = context.headers.get(b"x-api-key")
        if key is not None:
            sent = context.headers.get(b"authorization", b"Bearer " + key)
            if _bearer(sent).encode("latin-1") != key.strip(b" "):
                raise ApiError("invalid_api_key")
            context.headers = {**context.headers, b"authorization": sent}
        return endpoint(request)

    return guarded


@Implied(
    [
        Refusal("invalid_api_key", when="The token is missing, malformed, unknown or deleted."),
        Refusal("session_expired", when="The session is older than 8 hours."),
        SUSPENDED,
        Refusal("sign_in_required", when="The owner of the API key has to sign in with the identity provider again."),
        Refusal("storage_unavailable"),
        Refusal("overloaded"),
    ],
    security=_BEARER,
)
def signed_in(handler: Handler) -> Endpoint:
    """Require a valid token of either kind, else 401."""

    async def with_session(request: Request, token: str) -> Response | None:
        await tokens.load_jwt()
        state = request.state
        session = tokens.read_session(state.derived_keys["session"], token, state.clock())
        return await _enter(handler, request, _caller(state, session.account_id, "session", session.identity_at))

    def endpoint(request: Request) -> Awaitable[Response | None]:
        token = _bearer(request.context.headers.get(b"authorization", b""))
        if not token.startswith(tokens.KEY_PREFIX):  # no JWT has this prefix
            return with_session(request, token)
        state, hashed = request.state, tokens.key_hash(token)
        holder = None if hashed is None else state.db.look_up(tokens.holder_of, hashed)
        if holder is None:
            raise ApiError("invalid_api_key")
        account_id, tier, default_model, key_id, last_used_at, group_name = holder
        if tier is None:
            raise ApiError("account_suspended")
        minute_seconds = state.clock() // 60 * 60
        if last_used_at < minute_seconds:
            state.key_uses.put((account_id, key_id), minute_seconds)
        groups = state.models.catalog.groups
        group = None if groups is None else groups.of(group_name)
        if groups is not None and groups.max_days_without_sign_in:
            _check_signed_in(state, account_id, groups.max_days_without_sign_in)
        return _enter(handler, request, Caller(account_id, tier, default_model, "api_key", key_id, 0, group))

    return endpoint


def _check_signed_in(state: State, account_id: str, days: int) -> None:
    """Raise ApiError `sign_in_required` if the account has not signed in with its identity provider for `days`."""
    if not state.db.look_up(accounts.has_signed_in_since, account_id, state.clock() - days * _DAY_SECONDS):
        text = f"API keys are refused after {days} days without a sign-in. Sign in at {state.config.base_url}."
        raise ApiError("sign_in_required", text)


def _enter(handler: Handler, request: Request, caller: Caller) -> Awaitable[Response | None]:
    context = request.context
    context.account_id = context.log_fields["account"] = caller.id
    acting_for.set(caller.id)
    return handler(request, caller)


def linked(handler: Handler) -> Endpoint:
    """Require a valid link to an artifact's content, or a token."""

    @Implied(security=_LINK)
    def with_link(endpoint: Endpoint) -> Endpoint:
        def guarded(request: Request) -> Awaitable[Response | None]:
            state, artifact_id = request.state, request.path_params["artifact_id"]
            account_id = account_of_link(
                state.derived_keys["content"], request.query_params, artifact_id, state.clock()
            )
            if account_id is None:
                return endpoint(request)
            return _enter(handler, request, _caller(state, account_id, LINK))

        return guarded

    return with_link(signed_in(handler))


def _requirement(
    code: str, when: str, is_met: Callable[..., bool]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a guard that refuses requests with `code` before the body is read. A guard outside may pass the caller."""

    @Implied([Refusal(code, when=when)])
    def guard(handler: Callable[..., Awaitable[Response | None]]) -> Callable[..., Awaitable[Response | None]]:
        def guarded(request: Request, *caller: Caller) -> Awaitable[Response | None]:
            if not is_met(request, *caller):
                raise ApiError(code)
            return handler(request, *caller)

        return guarded

    return guard


session_only = _requirement(
    "session_required",
    "The token is an API key. This needs a session.",
    lambda request, caller: caller.auth == "session",
)
pro_only = _requirement(
    "pro_required", "The account is not a pro account.", lambda request, caller: caller.tier == "pro"
)
admin_only = _requirement("not_found", "The caller is not an administrator.", lambda request, caller: caller.admin)
open_signup = _requirement(
    "signup_closed",
    "Sign-up is closed. Only the operator creates accounts.",
    lambda request: request.state.config.signup == "open",
)
with_passwords = _requirement(
    "passwords_disabled",
    "Passwords are disabled. Sign in with an identity provider.",
    lambda request: request.state.config.passwords,
)


def administered(handler: Handler) -> Endpoint:
    """Require a session of an administrator: 401 without a token, 403 with a key, 404 for other sessions."""
    return signed_in(session_only(admin_only(handler)))


@Implied(
    [
        Refusal(
            "rate_limit_exceeded",
            f"Too many requests: {_FREE} in 60 seconds are allowed. Try again in 37 seconds.",
            when="The account has used all its chat requests of this minute.",
        )
    ],
    headers=_RATE_LIMIT_HEADERS,
)
def metered(handler: Handler) -> Handler:
    """Count one request of the account's chat limit before the body is read. The answer's headers have what is left."""

    def guarded(request: Request, caller: Caller) -> Awaitable[Response | None]:
        group = caller.group
        limit = (group.chats_per_minute if group else None) or CHAT_PER_MINUTE[caller.tier]
        try:
            admission = request.state.limits.chat.take(caller.id, limit)
        except ApiError as error:
            request.context.answer_headers += _limit_headers(limit, 0, error.retry_after_seconds or 1)
            raise
        request.context.answer_headers += _limit_headers(*admission)
        return handler(request, caller)

    return guarded


def per_ip(rule: str) -> Callable[[Endpoint], Endpoint]:
    """Count one request of the client's address under `rule`, else 429."""

    @Implied(
        [
            Refusal(
                "rate_limit_exceeded",
                "Too many requests: 5 in 60 seconds are allowed. Try again in 37 seconds.",
                when="The client's IP address has sent too many requests.",
            )
        ]
    )
    def guard(handler: Endpoint) -> Endpoint:
        def endpoint(request: Request) -> Awaitable[Response | None]:
            request.state.limits.take(rule, network_of(request.context.client_ip))
            return handler(request)

        return endpoint

    return guard


@lru_cache(1024)  # many callers get the same; each entry takes half a KB
def _limit_headers(limit: int, remaining: int, reset_seconds: int) -> tuple[tuple[bytes, bytes], ...]:
    return (
        (b"x-ratelimit-limit-requests", b"%d" % limit),
        (b"x-ratelimit-remaining-requests", b"%d" % remaining),
        (b"x-ratelimit-reset-requests", b"%ds" % reset_seconds),
    )


def _account(db: Database, account_id: str) -> Account:
    account = db.look_up(accounts.account_by_id, account_id)
    if account is None:
        raise ApiError("invalid_api_key")
    return account


def _caller(state: State, account_id: str, auth: str, identity_at: int = 0) -> Caller:
    account = _account(state.db, account_id)
    account.check_active()
    if (account.last_seen_at or 0) <= state.clock() - accounts.SEEN_SECONDS:
        state.key_uses.put((account.id, ""), state.clock())
    groups = state.models.catalog.groups
    group = groups and groups.of(account.group)
    return Caller(account.id, account.tier, account.default_model, auth, None, identity_at, group, account.admin)


def _bearer(authorization: bytes) -> str:
    scheme, _, token = authorization.decode("latin-1").partition(" ")
    token = token.strip(" ")
    if scheme.lower() != "bearer" or not token or len(token) > _TOKEN_LENGTH:
        raise ApiError("invalid_api_key")
    return token
