"""A stand-in for identity providers on loopback, OpenID Connect and GitHub: strict with our requests, with faults that
a test sets."""

import asyncio
import base64
import contextlib
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from svc.ids import random_base62
from tests.support.loopback_api import Answer, Received, loopback_api

CLIENT_ID = "svc-of-the-tests"
CLIENT_SECRET = "hunter2:hunter2/%+"
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@cache
def key_named(name: str) -> Key:
    """A private key, the same for the same name: `rsa…`, `small…`, `p256…`, `p384…` or `ed25519…`."""
    if name.startswith(("rsa", "small")):
        return rsa.generate_private_key(65537, 2048 if name.startswith("rsa") else 1024)
    if name.startswith("ed25519"):
        return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key(ec.SECP256R1() if name.startswith("p256") else ec.SECP384R1())


def jwk(name: str, **changes: Any) -> dict[str, Any]:
    """The public key of `key_named(name)` as it stands in a JWKS."""
    public = key_named(name).public_key()
    kind = {"rsa": "RS256", "small": "RS256", "p256": "ES256", "p384": "ES384", "ed25519": "EdDSA"}
    algorithm = next(value for start, value in kind.items() if name.startswith(start))
    value: dict[str, Any] = jwt.get_algorithm_by_name(algorithm).to_jwk(public, as_dict=True)  # type: ignore[arg-type]
    return {name: item for name, item in {**value, "kid": name, "use": "sig", **changes}.items() if item is not None}


@dataclass
class User:
    """A person at the provider. `claims` go into the ID token, `userinfo` into the answer of that endpoint."""

    subject: str = "248289761001"
    claims: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] = field(default_factory=dict)


def person(
    email: str | None = "ada@example.com", verified: Any = True, subject: str = "248289761001", **claims: Any
) -> User:
    """A person whose ID token contains an email."""
    with_email = {} if email is None else {"email": email, "email_verified": verified}
    return User(subject, {**with_email, **claims})


@dataclass
class StandIn:
    """`requests` counts them by path; `faults` strike by path: a status, HANG, DROP, FLOOD, or the bytes of a body.

    `metadata` and `claims` replace parts of the discovery document and of ID tokens (None leaves one out). `sign` makes
    tokens out of claims, `keys` is the JWKS.
    """

    clock: Callable[[], float]
    url: str = ""
    requests: Counter[str] = field(default_factory=Counter)
    faults: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    keys: list[Any] = field(default_factory=lambda: [jwk("rsa")])
    sign: Callable[[dict[str, Any]], str] = lambda claims: jwt.encode(claims, key_named("rsa"), "RS256", {"kid": "rsa"})
    emails: Any = None  # GitHub's, None: made of the user's claims
    secret_in_body: bool = False
    codes: dict[str, tuple[dict[str, str], User]] = field(default_factory=dict)
    tokens: dict[str, User] = field(default_factory=dict)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)  # by path: answers wait until it is set

    def authorize(self, address: str, user: User, **changes: str | None) -> str:
        """What a browser is sent back to when `user` agrees at `address`; `changes` to the parameters, None leaves one
        out.
        """
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query, strict_parsing=True).items()}
        assert asked["client_id"] == CLIENT_ID and asked["code_challenge_method"] == "S256"
        assert len(asked["state"]) >= 22 and len(asked["code_challenge"]) == 43
        if "/login/oauth/authorize" not in address:
            assert asked["response_type"] == "code" and "openid" in asked["scope"].split() and len(asked["nonce"]) >= 22
        code = random_base62(20)
        self.codes[code] = (asked, user)
        answer = {"code": code, "state": asked["state"], **changes}
        return (
            f"{asked['redirect_uri']}?{urlencode({name: value for name, value in answer.items() if value is not None})}"
        )

    async def respond(self, request: Received) -> Answer:
        self.requests[request.path] += 1
        fault = self.faults.get(request.path)
        if isinstance(fault, str):
            return fault
        if request.path in self.gates:
            await self.gates[request.path].wait()
        if isinstance(fault, int):
            return fault, {}
        status, value = self.answer(request)
        return status, value if fault is None else fault

    def answer(self, request: Received) -> tuple[int, Any]:
        method, path, headers, form = request
        user = self.tokens.get(headers.get("authorization", "").removeprefix("Bearer "))
        if (method, path) == ("GET", "/.well-known/openid-configuration"):
            return 200, self._discovery()
        if (method, path) == ("GET", "/jwks"):
            return 200, {"keys": self.keys}
        if (method, path) == ("POST", "/token"):
            return self._token(headers, form)
        if (method, path) == ("POST", "/login/oauth/access_token"):
            return self._github_token(headers, form)
        if user is None:
            return 401, {"error": "invalid_token"}
        if (method, path) == ("GET", "/userinfo"):
            return 200, {"sub": user.subject, **user.userinfo}
        assert headers["user-agent"] and "github" in headers["accept"]
        if (method, path) == ("GET", "/api/v3/user"):
            return 200, {
                "id": int(user.subject),
                "login": "ada",
                "name": user.claims.get("name"),
                "email": "public@example.com",
            }
        assert (method, path) == ("GET", "/api/v3/user/emails")
        email, verified = user.claims.get("email"), user.claims.get("email_verified")
        other = {"email": "other@example.com", "verified": True, "primary": False, "visibility": None}
        return 200, self.emails if self.emails is not None else [
            other,
            {"email": email, "verified": verified, "primary": True},
        ]

    def _discovery(self) -> dict[str, Any]:
        document = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "token_endpoint_auth_methods_supported": [
                "client_secret_post" if self.secret_in_body else "client_secret_basic"
            ],
            **self.metadata,
        }
        return {name: value for name, value in document.items() if value is not None}

    def _token(self, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        pair = f"{CLIENT_ID}:hunter2%3Ahunter2%2F%25%2B"
        basic = f"Basic {base64.b64encode(pair.encode()).decode()}"
        if self.secret_in_body:
            assert "authorization" not in headers
            known = (form["client_id"], form["client_secret"]) == (CLIENT_ID, CLIENT_SECRET)
        else:
            known = headers.get("authorization") == basic and "client_secret" not in form
        if not known:
            return 401, {"error": "invalid_client"}
        user, asked = self._use(form)
        if user is None or form["grant_type"] != "authorization_code":
            return 400, {"error": "invalid_grant"}
        access_token = random_base62(20)
        self.tokens[access_token] = user
        now = int(self.clock())
        claims = {
            "iss": self.url,
            "sub": user.subject,
            "aud": CLIENT_ID,
            "exp": now + 300,
            "iat": now,
            "nonce": asked["nonce"],
            **user.claims,
            **self.claims,
        }
        token = self.sign({name: value for name, value in claims.items() if value is not None})
        return 200, {"access_token": access_token, "token_type": "Bearer", "expires_in": 300, "id_token": token}

    def _github_token(self, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        assert headers["accept"] == "application/json"
        if (form["client_id"], form["client_secret"]) != (CLIENT_ID, CLIENT_SECRET):
            return 200, {"error": "incorrect_client_credentials"}
        user, _ = self._use(form)
        if user is None:
            return 200, {"error": "bad_verification_code"}
        access_token = f"gho_{random_base62(20)}"
        self.tokens[access_token] = user
        return 200, {"access_token": access_token, "token_type": "bearer", "scope": "read:user,user:email"}

    def _use(self, form: dict[str, str]) -> tuple[User | None, dict[str, str]]:
        """Return the user of a code, once, to the client that started the flow (RFC 7636)."""
        asked, user = self.codes.pop(form["code"], ({}, None))
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        proved = challenge == asked.get("code_challenge") and form["redirect_uri"] == asked.get("redirect_uri")
        return (user, asked) if proved else (None, {})


@contextlib.asynccontextmanager
async def stand_in(clock: Callable[[], float]) -> AsyncIterator[StandIn]:
    provider = StandIn(clock)
    async with loopback_api(provider.respond) as provider.url:
        yield provider
