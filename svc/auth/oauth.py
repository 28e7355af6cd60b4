"""What both kinds of identity provider share: identities, the secrets of a sign-in, and bounded JSON."""

import asyncio
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlencode

import orjson

from svc.errors import ApiError
from svc.ids import base64url
from svc.outbound.errors import TooLarge

if TYPE_CHECKING:
    import httpx

_ANSWER_SECONDS = 10.0


class Identity(NamedTuple):
    """A person at a provider; `email_verified` is what the provider says."""

    issuer: str
    subject: str
    email: str | None = None
    email_verified: bool = False
    name: str | None = None


@dataclass(frozen=True)
class Flow:
    """The secrets of one sign-in. Nonce and verifier are derived from the state, so none of them is stored."""

    redirect_uri: str
    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)

    @property
    def challenge(self) -> str:
        """The PKCE challenge, S256 (RFC 7636)."""
        return base64url(hashlib.sha256(self.verifier.encode()).digest())


class SignInProvider(Protocol):
    """An identity provider. Its methods raise ApiError `upstream_*`."""

    name: str
    issuer: str

    async def check(self) -> None:
        """Request what can be requested before a sign-in."""

    async def authorization_url(self, flow: Flow) -> str: ...

    async def answers_as(self, issuer: str | None) -> bool:
        """Return whether `iss` of a callback (RFC 9207; None if absent) is this provider's."""

    async def identity(self, flow: Flow, code: str) -> Identity:
        """Exchange the code of a callback."""


def new_flow(secret: bytes, redirect_uri: str, state: str) -> Flow:
    """Return the flow of a random `state`; the callback derives the same one again."""

    def derived(purpose: str) -> str:
        return base64url(hmac.digest(secret, f"{purpose} {redirect_uri} {state}".encode(), "sha256"))

    return Flow(redirect_uri, state, derived("nonce"), derived("verifier"))


def authorization_url(endpoint: str, client_id: str, flow: Flow, scope: str, **more: str) -> str:
    """Return where to send the browser (RFC 6749 4.1.1, RFC 7636)."""
    query = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": flow.redirect_uri,
        "scope": scope,
        "state": flow.state,
        "code_challenge": flow.challenge,
        "code_challenge_method": "S256",
        **more,
    }
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"


async def ask(
    client: "httpx.AsyncClient",
    method: str,
    url: str,
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
) -> tuple[int, Any]:
    """Return status and JSON of a provider's answer (None if it is no JSON); redirects are not followed.

    Raises ApiError `upstream_unreachable`, `upstream_timeout`, `upstream_invalid_response`.
    """
    import httpx  # late: a service without such providers never needs it

    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            response = await client.request(
                method, url, data=form, headers={"accept": "application/json", **(headers or {})}
            )
    except (TimeoutError, httpx.TimeoutException):
        raise ApiError("upstream_timeout", "The identity provider did not answer in time. Try again.") from None
    except (httpx.RemoteProtocolError, TooLarge):
        raise invalid("an answer that is too large, incomplete or not valid HTTP") from None
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise ApiError("upstream_unreachable", "The identity provider cannot be reached. Try again later.") from error
    try:
        return response.status_code, orjson.loads(response.content)
    except orjson.JSONDecodeError:
        return response.status_code, None


def invalid(what: str) -> ApiError:
    """Return the error for an answer that is not valid; `what` must not quote it."""
    return ApiError("upstream_invalid_response", f"The identity provider sent {what}.")


def refused(status: int) -> ApiError:
    return ApiError("upstream_error", f"The identity provider refused with status {status}.")
