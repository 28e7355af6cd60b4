"""Sign-in with any OpenID Connect issuer: discovery, the code exchange, and the verification of its ID token.

identity: code -> token endpoint -> ID token -> signature (keys are fetched again at most once a minute) -> claims
          -> the email address, from the userinfo endpoint if the token has none
"""

import asyncio
import hmac
import math
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

import jwt
import orjson

from svc.auth.oauth import Flow, Identity, SignInProvider, invalid, refused, wrong_client
from svc.config import IdentityProvider
from svc.outbound.addresses import checked_url
from svc.outbound.client import Outbound
from svc.outbound.errors import InvalidURL

T = TypeVar("T")
# No HMAC: the provider's public key must never be accepted as the secret of one.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_JWS = jwt.PyJWS(options={"enforce_minimum_key_length": True})
_KEEP_SECONDS = 3600.0
_REFETCH_SECONDS = 60.0
_SKEW_SECONDS = 60
_TOKEN_LENGTH = 16 * 1024
_SUBJECT_LENGTH = 255
_MOST_KEYS = 50


class OpenID(SignInProvider):
    """One OpenID Connect issuer. `clock` gives Unix seconds, `monotonic` the seconds by which its documents expire."""

    scope = "openid email profile"

    def __init__(
        self,
        settings: IdentityProvider,
        client: Outbound,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        super().__init__(settings, client)
        self._trust_email, self._trusted_domains = settings.trust_email, settings.trusted_domains
        self._groups_claim = settings.groups_claim
        self._clock = clock
        self._metadata = _Kept(self._discover, monotonic)
        self._keys = _Kept(self._fetch_keys, monotonic)

    async def metadata(self) -> dict[str, Any]:
        return await self._metadata.get()

    async def check(self, redirect_uri: str) -> None:
        await self._keys.get()  # this fetches the discovery document as well
        _, answer = await self._answer_to("none", redirect_uri, "none")
        # RFC 6749 5.2. A client that is accepted gets invalid_grant for the code.
        if isinstance(answer, dict) and answer.get("error") in ("invalid_client", "unauthorized_client"):
            raise wrong_client()

    async def identity(self, flow: Flow, code: str) -> Identity:
        answer = await self._exchanged(code, flow.redirect_uri, flow.verifier)
        token, access_token = answer.get("id_token"), answer.get("access_token")
        if not isinstance(token, str) or not token.isascii() or len(token) > _TOKEN_LENGTH:
            raise invalid("no ID token")
        claims = await self._verified(token)
        check_claims(claims, self.issuer, self._client_id, flow.nonce, self._clock())
        subject, userinfo = claims["sub"], (await self.metadata()).get("userinfo_endpoint")
        groups, more = claims.get(self._groups_claim or ""), {}
        lacks = "email" not in claims or (self._groups_claim and groups is None)
        if lacks and userinfo and isinstance(access_token, str):
            more = await self._object(userinfo, {"authorization": f"Bearer {access_token}"})
            if more.get("sub") != subject:
                raise invalid("the email address of another person")
        if groups is None:
            groups = more.get(self._groups_claim or "")
        claims = claims if "email" in claims else more
        email, name = (value if isinstance(value := claims.get(field), str) else None for field in ("email", "name"))
        verified = claims.get("email_verified")
        says_so = verified is True or verified == "true"  # some issuers send a string
        found = Identity(self.issuer, subject, email, says_so, name, _texts(groups) if self._groups_claim else None)
        # Entra ID and others never send the claim. One that says false is not overruled.
        trusted = verified is None and (self._trust_email or found.domain in self._trusted_domains)
        return found._replace(email_verified=True) if trusted else found

    async def _verified(self, token: str) -> dict[str, Any]:
        """Return the claims of an ID token. An unknown key may be new: then the keys are fetched again."""
        for newer in (False, True):
            claims = signed_claims(token, await self._keys.get(newer))
            if claims is not None:
                return claims
        raise invalid("an ID token that none of its keys has signed")

    async def _discover(self) -> dict[str, Any]:
        document = await self._object(self.issuer.rstrip("/") + "/.well-known/openid-configuration")
        if document.get("issuer") != self.issuer:
            raise invalid("the discovery document of another issuer")
        optional = ["userinfo_endpoint"] if document.get("userinfo_endpoint") else []
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri", *optional):
            url = document.get(name)
            try:
                normal = checked_url(url if isinstance(url, str) else "")
            except InvalidURL:
                raise invalid(f"no {name}") from None
            # Plain HTTP is allowed for a test issuer on loopback only.
            if normal.origin.scheme != "https" and not self.issuer.startswith("http://"):
                raise invalid(f"an insecure {name}")
            document[name] = str(normal)
        return document

    async def _fetch_keys(self) -> list[dict[str, Any]]:
        keys = (await self._object((await self.metadata())["jwks_uri"])).get("keys")
        if not isinstance(keys, list):
            raise refused(200)
        return [key for key in keys[:_MOST_KEYS] if isinstance(key, dict)]


def signed_claims(token: str, keys: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the claims of `token` if one of `keys` (JWKs) has signed it, else None. Raises ApiError for no JWT."""
    try:
        header = _JWS.get_unverified_header(token)
    except jwt.InvalidTokenError:
        raise invalid("an ID token that is no JWT") from None
    algorithm, kid = header.get("alg"), header.get("kid")
    if algorithm not in ALGORITHMS:
        raise invalid("an ID token signed in a way that is not allowed")
    for key in keys:
        fits = kid in (None, key.get("kid")) and key.get("use") in (None, "sig") and key.get("alg") in (None, algorithm)
        if not fits:
            continue
        try:
            payload = orjson.loads(_JWS.decode(token, jwt.PyJWK(key, algorithm), algorithms=[algorithm]))
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):  # another key, an unusable key, or no JSON
            continue
        return payload if isinstance(payload, dict) else None
    return None


def check_claims(claims: dict[str, Any], issuer: str, client_id: str, nonce: str, now_seconds: float) -> None:
    """Raise ApiError unless the claims are for this client, now, with this nonce (OpenID Connect Core 3.1.3.7)."""
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    party = claims.get("azp", None if len(audiences) > 1 else client_id)
    issued, expires, begins = times = [claims.get("iat"), claims.get("exp"), claims.get("nbf", 0)]
    has_times = all(type(value) in (int, float) for value in times)
    given, subject = claims.get("nonce"), claims.get("sub")
    faults = {
        "of another issuer": claims.get("iss") != issuer,
        "for another client": client_id not in audiences or party != client_id,
        "without its times": not has_times,
        "that has expired": has_times and now_seconds >= expires + _SKEW_SECONDS,
        "from the future": has_times and now_seconds < max(issued, begins) - _SKEW_SECONDS,
        "for another sign-in": not isinstance(given, str) or not hmac.compare_digest(given.encode(), nonce.encode()),
        "without a subject": not isinstance(subject, str)
        or not 0 < len(subject) <= _SUBJECT_LENGTH
        or not subject.isprintable(),
    }
    for fault, is_found in faults.items():
        if is_found:
            raise invalid(f"an ID token {fault}")


def _texts(claim: Any) -> list[str]:
    """Return the texts of a claim that is a list of them, or one text."""
    return [value for value in (claim if isinstance(claim, list) else [claim]) if isinstance(value, str)]


class _Kept(Generic[T]):
    """A document of the provider: fetched once for all concurrent callers, and kept for an hour."""

    def __init__(self, fetch: Callable[[], Coroutine[Any, Any, T]], monotonic: Callable[[], float]) -> None:
        self._fetch = fetch
        self._monotonic = monotonic
        self._kept: tuple[float, T] | None = None
        self._asked_at = -math.inf
        self._task: asyncio.Task[T] | None = None

    async def get(self, newer: bool = False) -> T:
        """Return the document; with `newer` fetch it now, unless that was tried within the last minute."""
        now = self._monotonic()
        kept = self._kept if self._kept and now < self._kept[0] + _KEEP_SECONDS else None
        if kept and not (newer and (self._task or now >= self._asked_at + _REFETCH_SECONDS)):
            return kept[1]
        if self._task is None:
            self._asked_at = now
            self._task = asyncio.create_task(self._fetch())
            self._task.add_done_callback(self._keep)
        return await asyncio.shield(self._task)  # a caller that is cancelled does not cancel it for the others

    def _keep(self, task: "asyncio.Task[T]") -> None:
        self._task = None
        if not task.cancelled() and task.exception() is None:
            self._kept = (self._asked_at, task.result())
