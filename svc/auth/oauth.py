"""What the two kinds of identity provider share: who somebody is there, a sign-in's secrets, and bounded JSON."""

import asyncio
import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import orjson

from svc.bounded import read_bounded
from svc.errors import ApiError

if TYPE_CHECKING:
    import httpx

_ANSWER_SECONDS = 10.0
_ANSWER_BYTES = 256 * 1024


class Identity(NamedTuple):
    """Who somebody is at a provider; `email_verified` is the provider's word."""

    issuer: str
    subject: str
    email: str | None = None
    email_verified: bool = False
    name: str | None = None


@dataclass(frozen=True)
class Flow:
    """The secrets of one sign-in. Nonce and verifier are derived from the state, so that none of them is stored."""

    redirect_uri: str
    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)

    @property
    def challenge(self) -> str:
        """The PKCE challenge, S256 (RFC 7636)."""
        return base64url(hashlib.sha256(self.verifier.encode()).digest())


class SignInProvider(Protocol):
    """An identity provider. Its methods raise ApiError `upstream_*` when it cannot be reached or makes no sense."""

    name: str
    issuer: str

    async def check(self) -> None:
        """Asks for what can be asked for before anybody signs in."""

    async def authorization_url(self, flow: Flow) -> str:
        """Where to send the browser."""

    async def answers_as(self, issuer: str | None) -> bool:
        """Whether `iss` of a callback (RFC 9207), None for none, is this provider's: else it is another's answer (mix-up)."""

    async def identity(self, flow: Flow, code: str) -> Identity:
        """Who the code of a callback stands for."""


def new_flow(secret: bytes, redirect_uri: str, state: str) -> Flow:
    """The flow of a random `state`; the same one again when its callback comes."""

    def derived(purpose: str) -> str:
        return base64url(hmac.new(secret, f"{purpose} {redirect_uri} {state}".encode(), hashlib.sha256).digest())

    return Flow(redirect_uri, state, derived("nonce"), derived("verifier"))


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


async def ask(
    client: "httpx.AsyncClient",
    method: str,
    url: str,
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
) -> tuple[int, Any]:
    """Status and JSON of a provider's answer (None for what is no JSON), within 10 seconds and 256 KiB, no redirect followed.

    Raises ApiError `upstream_unreachable`, `upstream_timeout`, `upstream_invalid_response`.
    """
    import httpx  # late: a service without such providers never needs it

    try:
        async with (
            asyncio.timeout(_ANSWER_SECONDS),
            client.stream(method, url, data=form, headers={"accept": "application/json", **(headers or {})}) as response,
        ):
            body = await read_bounded(response.aiter_raw(), _ANSWER_BYTES, nonsense("an answer that is too large"))
    except (TimeoutError, httpx.TimeoutException):
        raise ApiError("upstream_timeout", "The identity provider did not answer in time. Try again.") from None
    except httpx.RemoteProtocolError:
        raise nonsense("an answer that is no HTTP, or was cut") from None
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise ApiError("upstream_unreachable", "The identity provider cannot be reached. Try again later.") from error
    try:
        return response.status_code, orjson.loads(body)
    except orjson.JSONDecodeError:
        return response.status_code, None


def nonsense(what: str) -> ApiError:
    """What to raise for an answer that a provider should not give; `what` goes to the operator and quotes nothing of it."""
    return ApiError("upstream_invalid_response", f"The identity provider gave {what}.")


def refused(status: int) -> ApiError:
    """What to raise when a provider answers with an error."""
    return ApiError("upstream_error", f"The identity provider refused with status {status}.")
