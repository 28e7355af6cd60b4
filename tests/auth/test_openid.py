"""svc/auth/openid.py against a hostile issuer: ID tokens, keys, discovery, faults and floods."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from svc.auth.oauth import Flow, Identity, new_flow
from svc.auth.openid import OpenID, check_claims, signed_claims
from svc.config import IdentityProvider
from svc.errors import ApiError
from svc.outbound.client import Outbound
from tests.conftest import Clocks
from tests.support.cases import each
from tests.support.identity_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    StandIn,
    User,
    jwk,
    key_named,
    person,
    stand_in,
)
from tests.support.loopback_api import DROP, FLOOD, HANG
from tests.support.outgoing_answers import Answers

SECRET = bytes(32)
NOW = 1_790_000_000


@pytest.fixture
async def provider(clocks: Clocks) -> AsyncIterator[StandIn]:
    async with stand_in(lambda: clocks.now) as provider:
        yield provider


class Client:
    """A client of `provider`, without the service."""

    def __init__(self, provider: StandIn, clocks: Clocks, issuer: str | None = None) -> None:
        self.provider = provider
        self.clocks = clocks
        self.http = Outbound()
        settings = IdentityProvider("stub", issuer or provider.url, CLIENT_ID, CLIENT_SECRET)
        self.openid = OpenID(settings, self.http, lambda: clocks.now, lambda: clocks.ticks)

    async def sign_in(self, user: User | None = None, number: int = 0) -> Identity:
        flow = new_flow(SECRET, "https://svc.example/callback", f"state-{number}-of-22-characters")
        address = self.provider.authorize(await self.openid.authorization_url(flow), user or person())
        code = dict(httpx.URL(address).params)["code"]
        return await self.openid.identity(flow, code)

    async def refusal(self, user: User | None = None) -> str:
        """Return the code and the message of a failed sign-in."""
        with pytest.raises(ApiError) as caught:
            await self.sign_in(user)
        assert caught.value.code.startswith("upstream_") and "hunter2" not in str(caught.value)
        return f"{caught.value.code}: {caught.value}"


@pytest.fixture
async def client(provider: StandIn, clocks: Clocks) -> AsyncIterator[Client]:
    client = Client(provider, clocks)
    yield client
    await client.http.aclose()


def signer(key: str, algorithm: str, **header: Any) -> Callable[[dict[str, Any]], str]:
    def sign(claims: dict[str, Any]) -> str:
        return jwt.encode(claims, key_named(key), algorithm, {"kid": key, **header})

    return sign


def pem(key: str) -> bytes:
    return (
        key_named(key)
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def by_hand(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def hmac_signed(claims: dict[str, Any], secret: bytes, **header: Any) -> str:
    algorithm = jwt.get_algorithm_by_name("HS256")
    bare = by_hand({"alg": "HS256", "typ": "JWT", **header}, claims).removesuffix(".")
    return f"{bare}.{base64.urlsafe_b64encode(algorithm.sign(bare.encode(), secret)).rstrip(b'=').decode()}"


# --- what is right


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [("rsa", "RS256"), ("rsa", "PS512"), ("p256", "ES256"), ("p384", "ES384"), ("ed25519", "EdDSA")],
)
async def test_valid_id_token_gives_the_identity(client: Client, provider: StandIn, key: str, algorithm: str) -> None:
    provider.keys, provider.sign = [jwk("rsa-of-others"), jwk(key, alg=algorithm)], signer(key, algorithm)
    identity = await client.sign_in(person(name="Ada"))
    assert identity == Identity(provider.url, "248289761001", "ada@example.com", True, "Ada")


async def test_key_needs_no_id_if_the_token_has_none(client: Client, provider: StandIn) -> None:
    provider.keys = [
        "garbage",
        None,
        {},
        {"kty": "RSA"},
        {"kty": "RSA", "n": 5, "e": []},
        jwk("p256"),
        jwk("rsa", kid=None, use=None),
    ]
    provider.sign = lambda claims: jwt.encode(claims, key_named("rsa"), "RS256")  # type: ignore[arg-type]
    assert (await client.sign_in()).email == "ada@example.com"


async def test_client_secret_is_in_the_body_only_if_the_issuer_requires_it(client: Client, provider: StandIn) -> None:
    provider.secret_in_body = True
    assert (await client.sign_in()).email == "ada@example.com"


async def test_audience_may_be_a_list_with_this_client_as_party(client: Client, provider: StandIn) -> None:
    for claims in ({"aud": [CLIENT_ID]}, {"azp": CLIENT_ID}, {"aud": [CLIENT_ID, "api"], "azp": CLIENT_ID}):
        provider.claims = claims
        assert await client.sign_in()


async def test_clocks_may_differ_by_less_than_a_minute(client: Client, provider: StandIn, clocks: Clocks) -> None:
    now = int(clocks.now)
    for claims in ({"exp": now - 59}, {"iat": now + 60}, {"exp": now + 0.5, "iat": now - 0.5}, {"nbf": now + 60}):
        provider.claims = claims
        assert await client.sign_in()


async def test_issuer_is_compared_exactly(provider: StandIn, clocks: Clocks) -> None:
    client = Client(provider, clocks, issuer=f"{provider.url}/")
    assert "another issuer" in await client.refusal()
    provider.metadata = provider.claims = {}
    client = Client(provider, clocks, issuer=f"{provider.url}/")
    provider.metadata = provider.claims = {"issuer": f"{provider.url}/", "iss": f"{provider.url}/"}
    assert (await client.sign_in()).issuer == f"{provider.url}/"


async def test_an_endpoint_keeps_its_own_query(client: Client, provider: StandIn) -> None:
    provider.metadata = {"authorization_endpoint": f"{provider.url}/authorize?tenant=a%20b"}
    url = await client.openid.authorization_url(new_flow(SECRET, "https://svc.example/callback", "s"))
    assert url.startswith(f"{provider.url}/authorize?tenant=a%20b&response_type=code&client_id={CLIENT_ID}&")


async def test_email_comes_from_userinfo_if_the_token_has_none(client: Client, provider: StandIn) -> None:
    user = User("1", {}, {"email": "ada@example.com", "email_verified": True, "name": "Ada"})
    assert await client.sign_in(user) == Identity(provider.url, "1", "ada@example.com", True, "Ada")
    assert await client.sign_in(User("1", {"email": "token@example.com"}, user.userinfo)) == Identity(
        provider.url, "1", "token@example.com"
    )
    assert "another person" in await client.refusal(User("1", {}, {"sub": "2", "email": "ada@example.com"}))
    provider.metadata = {"userinfo_endpoint": None}
    client.clocks.advance(3600)
    assert await client.sign_in(user) == Identity(provider.url, "1")


# --- what is not


@each(
    "claims",
    [
        *({"iss": value} for value in (None, "", "https://evil.example", 5, ["x"])),
        *(
            {"aud": value}
            for value in (None, "", "another", [], ["another"], 5, {CLIENT_ID: 1}, CLIENT_ID.upper(), f"{CLIENT_ID} ")
        ),
        {"aud": [CLIENT_ID, "another"]},
        {"aud": [CLIENT_ID, "another"], "azp": "another"},
        *({"azp": value} for value in ("another", 5, "")),
        *({"exp": value} for value in (None, 0, NOW - 60, "2099", True, [], {}, -1)),
        *({"iat": value} for value in (None, NOW + 61, "x", False)),
        *({"nbf": value} for value in (NOW + 61, "x")),
        *({"nonce": value} for value in (None, "", "another", 5, "\u00e9", ["x"])),
        *({"sub": value} for value in (None, "", 5, "x" * 256, "a\0b", "a\nb")),
    ],
)
def test_claim_for_another_client_or_time_is_refused(claims: dict[str, Any]) -> None:
    right = {"iss": "https://i", "aud": CLIENT_ID, "exp": NOW + 1, "iat": NOW, "nonce": "n", "sub": "s"}
    check_claims(right, "https://i", CLIENT_ID, "n", NOW)
    wrong = {name: value for name, value in {**right, **claims}.items() if value is not None}
    with pytest.raises(ApiError) as caught:
        check_claims(wrong, "https://i", CLIENT_ID, "n", NOW)
    assert caught.value.code == "upstream_invalid_response"


async def test_wrong_claim_does_not_sign_in(client: Client, provider: StandIn, clocks: Clocks) -> None:
    wrong = {"iss": "https://evil.example", "aud": "another", "nonce": "another", "exp": int(clocks.now) - 60}
    for name, value in wrong.items():
        provider.claims = {name: value}
        assert (await client.refusal()).startswith("upstream_invalid_response: The identity provider sent an ID token")


FORGERIES: dict[str, Callable[[dict[str, Any]], str]] = {
    "no algorithm": lambda claims: by_hand({"alg": "none", "kid": "rsa"}, claims),
    "no algorithm in capitals": lambda claims: by_hand({"alg": "NONE"}, claims),
    "no header": lambda claims: by_hand({}, claims),
    "a list of algorithms": lambda claims: by_hand({"alg": ["RS256"]}, claims),
    "HMAC with the public key": lambda claims: hmac_signed(claims, pem("rsa"), kid="rsa"),
    "HMAC with the modulus": lambda claims: hmac_signed(claims, jwk("rsa")["n"].encode()),
    "HMAC with the client secret": lambda claims: hmac_signed(claims, CLIENT_SECRET.encode()),
    "HMAC with nothing": lambda claims: hmac_signed(claims, b""),
    "another key under the same name": signer("rsa-of-eve", "RS256", kid="rsa"),
    "another key without a name": lambda claims: jwt.encode(claims, key_named("rsa-of-eve"), "RS256"),  # type: ignore[arg-type]
    "a key that it brings along": signer("rsa-of-eve", "RS256", kid="rsa", jwk=jwk("rsa-of-eve")),
    "a key at an address": signer("rsa-of-eve", "RS256", kid="rsa", jku="http://127.0.0.1:9/jwks"),
    "an unknown key": signer("rsa-of-eve", "RS256"),
    "a critical extension": signer("rsa", "RS256", crit=["x"], x=1),
    "an elliptic key's name": signer("p256", "ES256", kid="rsa"),
    "a changed payload": lambda claims: ".".join(
        [
            signer("rsa", "RS256")(claims).split(".")[0],
            signer("rsa", "RS256")({**claims, "sub": "1"}).split(".")[1],
            "AAAA",
        ]
    ),
    "a changed last character": lambda claims: (
        (token := signer("rsa", "RS256")(claims))[:-1] + ("A" if token[-1] != "A" else "Q")
    ),
    "no signature": lambda claims: signer("rsa", "RS256")(claims).rpartition(".")[0] + ".",
    "five parts": lambda claims: signer("rsa", "RS256")(claims) + ".x.y",
    "not ASCII": lambda claims: signer("rsa", "RS256")(claims) + "\u00e9",
    "nothing": lambda claims: "",
    "a number": lambda claims: 5,  # type: ignore[return-value]
    "too long": lambda claims: signer("rsa", "RS256")({**claims, "more": "x" * 20_000}),
    "a list": lambda claims: jwt.PyJWS().encode(b"[]", key_named("rsa"), "RS256", {"kid": "rsa"}),  # type: ignore[arg-type]
    "no JSON": lambda claims: jwt.PyJWS().encode(b"\xff{", key_named("rsa"), "RS256", {"kid": "rsa"}),  # type: ignore[arg-type]
    "not a number": lambda claims: jwt.PyJWS().encode(
        json.dumps({**claims, "exp": float("nan")}).encode(),
        key_named("rsa"),  # type: ignore[arg-type]
        "RS256",
        {"kid": "rsa"},
    ),
}


async def test_forged_token_does_not_sign_in(client: Client, provider: StandIn) -> None:
    provider.keys = [jwk("rsa"), {"kty": "oct", "k": "aGVsbG8", "kid": "HS"}]
    for name, forge in FORGERIES.items():
        provider.sign = forge
        assert (await client.refusal()).startswith("upstream_invalid_response"), name
        client.clocks.advance(61)
    provider.sign = signer("rsa", "RS256")
    assert await client.sign_in()


async def test_key_for_another_use_is_ignored(client: Client, provider: StandIn) -> None:
    changes: list[dict[str, Any]] = [
        {"use": "enc"},
        {"alg": "PS256"},
        {"alg": "HS256"},
        {"kid": "other"},
        {"kty": "oct"},
    ]
    changes += [{"n": "AQAB"}, {"e": None}, {"n": "A" * 100_000}, {"kty": "oct", "k": "aGVsbG8", "n": None}]
    for change in changes:
        provider.keys = [jwk("rsa", **change)]
        assert "none of its keys" in await client.refusal(), change
        client.clocks.advance(3600)
    provider.keys, provider.sign = [jwk("small")], signer("small", "RS256")
    with pytest.warns(jwt.InsecureKeyLengthWarning):  # from signing
        assert "none of its keys" in await client.refusal()


@given(
    st.dictionaries(
        st.sampled_from(["kty", "n", "e", "d", "crv", "x", "y", "k", "alg", "use", "kid"]),
        st.sampled_from(
            ["RSA", "EC", "OKP", "oct", "P-256", "Ed25519", "AQAB", "", "ES256", "sig", None, 5, [], {}, "\u00e9"]
        )
        | st.text(max_size=8),
    )
)
def test_any_key_set_is_parsed_without_error(key: dict[str, Any]) -> None:
    token = by_hand({"alg": "ES256"}, {"sub": "1"}, b"x" * 64)
    assert signed_claims(token, [key]) is None


# --- keys that change, and floods


async def test_new_key_is_fetched_at_once(client: Client, provider: StandIn, clocks: Clocks) -> None:
    await client.sign_in()
    clocks.advance(60)
    provider.keys, provider.sign = [jwk("rsa"), jwk("p256-new")], signer("p256-new", "ES256")
    provider.gates["/jwks"] = asyncio.Event()
    arriving = asyncio.gather(*(client.sign_in(number=number) for number in range(20)))
    while provider.requests["/token"] < 21 or provider.requests["/jwks"] < 2:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)  # now all have seen a key that they do not know
    provider.gates["/jwks"].set()
    assert len(await arriving) == 20 and provider.requests["/jwks"] == 2


async def test_a_flood_of_unknown_keys_fetches_the_key_set_once_a_minute(
    client: Client, provider: StandIn, clocks: Clocks
) -> None:
    provider.sign = signer("rsa-of-eve", "RS256")
    for minute in range(1, 4):
        fetches = provider.requests["/jwks"]
        outcomes = await asyncio.gather(
            *(client.sign_in(number=number) for number in range(50)), return_exceptions=True
        )
        assert all(isinstance(outcome, ApiError) for outcome in outcomes)
        assert provider.requests["/jwks"] - fetches == 1, minute
        clocks.advance(59)
        await client.refusal()
        assert provider.requests["/jwks"] - fetches == 1
        clocks.advance(1)
    provider.faults["/jwks"] = 500
    for _ in range(10):
        await client.refusal()
    assert provider.requests["/jwks"] == 4
    provider.sign = signer("rsa", "RS256")
    assert await client.sign_in()  # the known key still works


async def test_revoked_key_is_refused_within_an_hour(client: Client, provider: StandIn, clocks: Clocks) -> None:
    await client.sign_in()
    provider.keys = [jwk("p256")]
    clocks.advance(3599)
    assert await client.sign_in()
    clocks.advance(1)
    assert "none of its keys" in await client.refusal()


async def test_discovery_and_keys_are_kept_for_an_hour(client: Client, provider: StandIn, clocks: Clocks) -> None:
    for _ in range(3):
        await client.sign_in()
    assert (provider.requests["/.well-known/openid-configuration"], provider.requests["/jwks"]) == (1, 1)
    clocks.advance(3600)
    await client.sign_in()
    assert (provider.requests["/.well-known/openid-configuration"], provider.requests["/jwks"]) == (2, 2)


# --- discovery


async def test_wrong_discovery_document_is_refused(client: Client, provider: StandIn) -> None:
    wrong: list[dict[str, Any]] = [
        {"issuer": value} for value in (None, f"{provider.url}/", provider.url.upper(), "https://x", 5)
    ]
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        wrong += [
            {name: value}
            for value in (None, "", 5, "javascript:alert(1)", "/token", "https://u:p@x", "https://x/#f", "x\r\ny")
        ]
    for metadata in [*wrong, {"userinfo_endpoint": "ftp://x"}]:
        provider.metadata = metadata
        assert (await client.refusal()).startswith("upstream_invalid_response"), metadata
    provider.metadata = {}
    assert await client.sign_in()


async def test_https_issuer_may_not_name_http_endpoints() -> None:
    document = {
        "issuer": "https://a.example",
        "authorization_endpoint": "https://a.example/a",
        "jwks_uri": "https://a.example/j",
    }

    def answer(url: str) -> dict[str, Any]:
        assert url == "https://a.example/.well-known/openid-configuration"
        return {**document, "token_endpoint": "http://a.example/t"}

    settings = IdentityProvider("a", "https://a.example", CLIENT_ID, CLIENT_SECRET)
    openid = OpenID(settings, Answers(answer), time.time, time.monotonic)
    with pytest.raises(ApiError, match="an insecure token_endpoint"):
        await openid.authorization_url(Flow("https://svc.example/callback", "s", "n", "v"))


# --- faults


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/jwks", "/userinfo"])
async def test_failing_provider_gives_one_clear_error_in_bounded_time(
    client: Client, provider: StandIn, path: str
) -> None:
    client.openid.answer_seconds = 0.3
    faults: dict[Any, str] = {
        500: "upstream_error",
        302: "upstream_error",
        400: "upstream_error",
        HANG: "upstream_timeout",
        DROP: "upstream_invalid_response",
        FLOOD: "upstream_invalid_response",
        b"<html>": "upstream_error",
        b"[1, 2]": "upstream_error",
        b"null": "upstream_error",
        b"[" * 100_000: "upstream_error",
        b'{"a": NaN}': "upstream_error",
    }
    user = User("1", {}, {"email": "ada@example.com"})
    for fault, code in faults.items():
        provider.faults = {path: fault}
        async with asyncio.timeout(20):
            assert (await client.refusal(user)).startswith(code), fault
    provider.faults = {}
    assert (await client.sign_in(user)).email == "ada@example.com"


async def test_50_sign_ins_share_one_request_to_a_silent_provider(client: Client, provider: StandIn) -> None:
    client.openid.answer_seconds = 0.3
    provider.faults = {"/.well-known/openid-configuration": HANG}
    async with asyncio.timeout(10):  # one after the other they would take 15 s
        outcomes = await asyncio.gather(
            *(client.sign_in(number=number) for number in range(50)), return_exceptions=True
        )
    assert {str(outcome) for outcome in outcomes} == {"The identity provider did not answer in time. Try again."}
    assert provider.requests["/.well-known/openid-configuration"] == 1


async def test_cancelled_sign_in_does_not_cancel_the_shared_request(client: Client, provider: StandIn) -> None:
    first, second = asyncio.create_task(client.sign_in(number=1)), asyncio.create_task(client.sign_in(number=2))
    await asyncio.sleep(0)
    first.cancel()
    assert await second
    assert provider.requests["/.well-known/openid-configuration"] == 1


async def test_closed_port_is_unreachable(clocks: Clocks, provider: StandIn) -> None:
    client = Client(provider, clocks, issuer="http://127.0.0.1:9")
    assert (await client.refusal()).startswith("upstream_unreachable")
    await client.http.aclose()


async def test_code_is_useless_without_the_verifier_of_its_flow(client: Client, provider: StandIn) -> None:
    flow, other = (new_flow(SECRET, "https://svc.example/callback", f"{state}-of-22-characters----") for state in "ab")
    code = dict(httpx.URL(provider.authorize(await client.openid.authorization_url(flow), person())).params)["code"]
    with pytest.raises(ApiError) as caught:
        await client.openid.identity(other, code)
    assert caught.value.code == "upstream_error"


def test_flow_depends_on_secret_state_and_redirect_address() -> None:
    flow = new_flow(SECRET, "https://svc.example/callback", "the-state")
    assert flow == new_flow(SECRET, "https://svc.example/callback", "the-state")
    others = [new_flow(b"x" * 32, flow.redirect_uri, flow.state), new_flow(SECRET, "https://x", flow.state)]
    others.append(new_flow(SECRET, flow.redirect_uri, "another"))
    values = [value for one in (flow, *others) for value in (one.nonce, one.verifier, one.challenge)]
    assert len(set(values)) == len(values) and all(len(value) == 43 for value in values)
    assert not any(secret in repr(flow) for secret in (flow.state, flow.nonce, flow.verifier))
