"""Signing in with any OpenID Connect issuer: discovery, the code exchange, and the proof of its ID token.

identity: code -> token endpoint -> ID token -> signature (keys fetched anew at most once a minute) -> claims
          -> the e-mail, from the userinfo endpoint where the token has none
"""

import asyncio
import base64
import hmac
import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote_plus, urlencode

import jwt
import orjson

from svc.auth.oauth import Flow, Identity, ask, nonsense, refused
from svc.config import IdentityProvider
from svc.outbound.addresses import checked_url
from svc.outbound.errors import InvalidURL

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
# Signatures alone: a key of the provider, public as it is, must never pass for the secret of an HMAC.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_JWS = jwt.PyJWS(options={"enforce_minimum_key_length": True})
_KEEP_SECONDS = 3600.0
_REFETCH_SECONDS = 60.0
_SKEW_SECONDS = 60
_TOKEN_LENGTH = 16 * 1024
_SUBJECT_LENGTH = 255
_MOST_KEYS = 50


class _Metadata(NamedTuple):
    """What the discovery document says, as far as it matters here."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None
    secret_in_body: bool
    sends_issuer: bool


class OpenID:
    """One OpenID Connect issuer. `clock` gives Unix seconds, `monotonic` the seconds for which what it said is kept."""

    def __init__(
        self, settings: IdentityProvider, client: "httpx.AsyncClient", clock: Callable[[], float], monotonic: Callable[[], float]
    ) -> None:
        self.name = settings.name
        self.issuer = settings.issuer
        self._settings = settings
        self._client = client
        self._clock = clock
        self._metadata = _Kept(self._discover, monotonic)
        self._keys = _Kept(self._fetch_keys, monotonic)

    async def check(self) -> None:
        await self._keys.get()  # after the discovery document, which says where they are

    async def authorization_url(self, flow: Flow) -> str:
        endpoint = (await self._metadata.get()).authorization_endpoint
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": flow.redirect_uri,
            "scope": "openid email profile",
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": flow.challenge,
            "code_challenge_method": "S256",
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    async def answers_as(self, issuer: str | None) -> bool:
        return issuer == self.issuer or (issuer is None and not (await self._metadata.get()).sends_issuer)

    async def identity(self, flow: Flow, code: str) -> Identity:
        metadata = await self._metadata.get()
        answer = await self._exchange(metadata, flow, code)
        token, access_token = answer.get("id_token"), answer.get("access_token")
        if not isinstance(token, str) or not token.isascii() or len(token) > _TOKEN_LENGTH:
            raise nonsense("no ID token")
        claims = await self._verified(token)
        check_claims(claims, self.issuer, self._settings.client_id, flow.nonce, self._clock())
        subject = claims["sub"]
        if "email" not in claims and metadata.userinfo_endpoint and isinstance(access_token, str):
            claims = await self._userinfo(metadata.userinfo_endpoint, access_token, subject)
        email, name = claims.get("email"), claims.get("name")
        verified = claims.get("email_verified")
        return Identity(
            self.issuer,
            subject,
            email if isinstance(email, str) else None,
            verified is True or verified == "true",  # some issuers send a string
            name if isinstance(name, str) else None,
        )

    async def _exchange(self, metadata: _Metadata, flow: Flow, code: str) -> dict[str, Any]:
        client_id, secret = self._settings.client_id, self._settings.client_secret
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": flow.redirect_uri,
            "code_verifier": flow.verifier,
        }
        headers = {}
        if metadata.secret_in_body:
            form |= {"client_id": client_id, "client_secret": secret}
        else:
            pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"  # RFC 6749 2.3.1
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        status, answer = await ask(self._client, "POST", metadata.token_endpoint, headers, form)
        if status != 200 or not isinstance(answer, dict):
            raise refused(status)
        return answer

    async def _verified(self, token: str) -> dict[str, Any]:
        """The claims of an ID token. A key that is not known may be new: then the keys are asked for again."""
        for newer in (False, True):
            claims = signed_claims(token, await self._keys.get(newer))
            if claims is not None:
                return claims
        raise nonsense("an ID token that none of its keys has signed")

    async def _userinfo(self, endpoint: str, access_token: str, subject: str) -> dict[str, Any]:
        status, answer = await ask(self._client, "GET", endpoint, {"authorization": f"Bearer {access_token}"})
        if status != 200 or not isinstance(answer, dict):
            raise refused(status)
        if answer.get("sub") != subject:
            raise nonsense("somebody else's e-mail")
        return answer

    async def _discover(self) -> _Metadata:
        url = self.issuer.rstrip("/") + "/.well-known/openid-configuration"
        status, document = await ask(self._client, "GET", url)
        if status != 200 or not isinstance(document, dict):
            raise refused(status)
        if document.get("issuer") != self.issuer:
            raise nonsense("the discovery document of another issuer")
        methods = document.get("token_endpoint_auth_methods_supported")
        in_body = isinstance(methods, list) and "client_secret_basic" not in methods and "client_secret_post" in methods
        return _Metadata(
            self._endpoint(document, "authorization_endpoint"),
            self._endpoint(document, "token_endpoint"),
            self._endpoint(document, "jwks_uri"),
            self._endpoint(document, "userinfo_endpoint") if document.get("userinfo_endpoint") else None,
            in_body,
            document.get("authorization_response_iss_parameter_supported") is True,
        )

    def _endpoint(self, document: dict[str, Any], name: str) -> str:
        url = document.get(name)
        try:
            normal = checked_url(url if isinstance(url, str) else "")
        except InvalidURL:
            raise nonsense(f"no {name}") from None
        # Whoever is on loopback for a test may speak plain HTTP, an issuer on the network may not send us elsewhere with it.
        if normal.origin.scheme != "https" and not self.issuer.startswith("http://"):
            raise nonsense(f"an insecure {name}")
        return str(normal)

    async def _fetch_keys(self) -> list[dict[str, Any]]:
        status, answer = await ask(self._client, "GET", (await self._metadata.get()).jwks_uri)
        keys = answer.get("keys") if isinstance(answer, dict) else None
        if status != 200 or not isinstance(keys, list):
            raise refused(status)
        return [key for key in keys[:_MOST_KEYS] if isinstance(key, dict)]


def signed_claims(token: str, keys: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The claims of `token` if one of `keys` (JWKs) has signed it, else None. Raises ApiError for what is no proper token."""
    try:
        header = _JWS.get_unverified_header(token)
    except jwt.InvalidTokenError:
        raise nonsense("an ID token that is no JWT") from None
    algorithm, kid = header.get("alg"), header.get("kid")
    if algorithm not in ALGORITHMS:
        raise nonsense("an ID token signed in a way that is not allowed")
    for key in keys:
        fits = kid in (None, key.get("kid")) and key.get("use") in (None, "sig") and key.get("alg") in (None, algorithm)
        if not fits:
            continue
        try:
            payload = orjson.loads(_JWS.decode(token, jwt.PyJWK(key, algorithm), algorithms=[algorithm]))
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):  # not this one, or no usable key, or no JSON
            continue
        return payload if isinstance(payload, dict) else None
    return None


def check_claims(claims: dict[str, Any], issuer: str, client_id: str, nonce: str, now_seconds: float) -> None:
    """Raises ApiError unless an ID token's claims are for us, now, and for the flow of `nonce` (OpenID Connect Core 3.1.3.7)."""
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    party = claims.get("azp", None if len(audiences) > 1 else client_id)
    if claims.get("iss") != issuer:
        raise nonsense("an ID token of another issuer")
    if client_id not in audiences or party != client_id:
        raise nonsense("an ID token for another client")
    times = {name: claims[name] for name in ("exp", "iat", "nbf") if name in claims}
    if not {"exp", "iat"} <= set(times) or not all(type(value) in (int, float) for value in times.values()):
        raise nonsense("an ID token without its times")
    if now_seconds >= times["exp"] + _SKEW_SECONDS:
        raise nonsense("an ID token that has expired")
    if now_seconds < max(times["iat"], times.get("nbf", 0)) - _SKEW_SECONDS:
        raise nonsense("an ID token from the future")
    given = claims.get("nonce")
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(), nonce.encode()):
        raise nonsense("an ID token for another sign-in")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _SUBJECT_LENGTH or not subject.isprintable():
        raise nonsense("an ID token without a subject")


class _Kept(Generic[T]):
    """A document of the provider: fetched once for all who ask at the same time, and kept for an hour."""

    def __init__(self, fetch: Callable[[], Awaitable[T]], monotonic: Callable[[], float]) -> None:
        self._fetch = fetch
        self._monotonic = monotonic
        self._kept: tuple[float, T] | None = None
        self._asked_at = -math.inf
        self._task: asyncio.Task[T] | None = None

    async def get(self, newer: bool = False) -> T:
        """The document; with `newer` one that is fetched now, unless that was tried within the last minute."""
        now = self._monotonic()
        kept = self._kept if self._kept and now < self._kept[0] + _KEEP_SECONDS else None
        if kept and not (newer and (self._task or now >= self._asked_at + _REFETCH_SECONDS)):
            return kept[1]
        if self._task is None:
            self._asked_at = now
            self._task = asyncio.create_task(self._fetch_and_keep(now))
            self._task.add_done_callback(self._over)
        return await asyncio.shield(self._task)  # who gives up does not take it from the others

    async def _fetch_and_keep(self, now: float) -> T:
        value = await self._fetch()
        self._kept = (now, value)
        return value

    def _over(self, task: "asyncio.Task[T]") -> None:
        self._task = None
        if not task.cancelled():
            task.exception()  # looked at, although everybody who waited may have gone
