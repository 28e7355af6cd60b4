"""Sign-in with an identity provider: the secrets of a sign-in, what providers share, and GitHub."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote_plus, urlencode

from svc.config import GITHUB, IdentityProvider
from svc.errors import ApiError
from svc.ids import base64url, signature
from svc.outbound.client import Outbound
from svc.outbound.errors import ConnectTimeout, OutboundError, ProtocolError, ReadTimeout

_API_OF_GITHUB = "https://api.github.com"


class Identity(NamedTuple):
    """A person at a provider. `email_verified` is whether the provider says so, or is trusted without saying it.

    `claims` are the groups that the provider names, None if it is not asked for them.
    """

    issuer: str
    subject: str
    email: str | None = None
    email_verified: bool = False
    name: str | None = None
    claims: Sequence[str] | None = None

    @property
    def domain(self) -> str:
        """The domain of the address, in lower case; "" without an address."""
        return (self.email or "").rpartition("@")[2].lower()


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


def new_flow(secret: bytes, redirect_uri: str, state: str) -> Flow:
    """Return the flow of a random `state`; the callback derives the same one again."""
    derived = (signature(secret, f"{purpose} {redirect_uri} {state}") for purpose in ("nonce", "verifier"))
    return Flow(redirect_uri, state, *derived)


class SignInProvider:
    """An identity provider: OpenID or GitHub. Its methods raise ApiError `upstream_*`."""

    scope: str
    answer_seconds = 10.0  # the time for the answer to one request

    def __init__(self, settings: IdentityProvider, client: Outbound) -> None:
        self.name = settings.name
        self.issuer = settings.issuer
        self._issuers = [settings.issuer]  # accepted as the `iss` of a callback
        self.domains = settings.domains  # whose people get an account, if the provider has verified the address
        self._client_id = settings.client_id
        self._secret = settings.client_secret
        self._client = client

    async def metadata(self) -> Mapping[str, Any]:
        """Return the endpoints, as OpenID Connect Discovery names them."""
        raise NotImplementedError

    async def check(self, redirect_uri: str) -> None:
        """Request what can be requested before a sign-in, with client id and secret."""
        raise NotImplementedError

    async def answers_as(self, issuer: str | None) -> bool:
        """Return whether `iss` of a callback (RFC 9207; None if absent) is this provider's."""
        if issuer is None:
            return (await self.metadata()).get("authorization_response_iss_parameter_supported") is not True
        return issuer in self._issuers

    async def identity(self, flow: Flow, code: str) -> Identity:
        """Exchange the code of a callback."""
        raise NotImplementedError

    async def authorization_url(self, flow: Flow) -> str:
        """Return where to send the browser (RFC 6749 4.1.1, RFC 7636)."""
        endpoint = (await self.metadata())["authorization_endpoint"]
        query = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": flow.redirect_uri,
            "scope": self.scope,
            "state": flow.state,
            "code_challenge": flow.challenge,
            "code_challenge_method": "S256",
        }
        if "openid" in self.scope:
            query["nonce"] = flow.nonce
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    async def _exchanged(self, code: str, redirect_uri: str, verifier: str) -> dict[str, Any]:
        return _object(*await self._answer_to(code, redirect_uri, verifier))

    async def _answer_to(self, code: str, redirect_uri: str, verifier: str) -> tuple[int, Any]:
        """Return status and JSON of the token endpoint's answer to a code."""
        metadata = await self.metadata()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        headers = {}
        methods = metadata.get("token_endpoint_auth_methods_supported")
        if isinstance(methods, list) and "client_secret_basic" not in methods and "client_secret_post" in methods:
            form |= {"client_id": self._client_id, "client_secret": self._secret}
        else:
            pair = f"{quote_plus(self._client_id)}:{quote_plus(self._secret)}"  # RFC 6749 2.3.1
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return await self._ask(metadata["token_endpoint"], headers, form)

    async def _object(self, url: str, *more: Mapping[str, str]) -> dict[str, Any]:
        """Send a request, and return the JSON object of its answer. `more` are headers and a form.

        Raises ApiError `upstream_error` for anything else than an object with status 200.
        """
        return _object(*await self._ask(url, *more))

    async def _ask(
        self, url: str, headers: Mapping[str, str] = {}, form: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Return what `ask_json` returns.

        Raises ApiError `upstream_unreachable`, `upstream_timeout`, `upstream_invalid_response`.
        """
        from svc.outbound.json_requests import ask_json  # late: a service without such providers never needs httpx

        try:
            headers = {"accept": "application/json", **headers}
            return await ask_json(self._client, url, headers, form, self.answer_seconds)
        except (ConnectTimeout, ReadTimeout):
            raise ApiError("upstream_timeout", "The identity provider did not answer in time. Try again.") from None
        except ProtocolError:
            raise invalid("an answer that is too large, incomplete or not valid HTTP") from None
        except OutboundError as error:
            text = "The identity provider cannot be reached. Try again later."
            raise ApiError("upstream_unreachable", text) from error


class GitHub(SignInProvider):
    """OAuth 2.0 of github.com or an Enterprise server.

    Subjects are user numbers: a user name can be given up and taken by another person.
    """

    scope = "read:user user:email"

    def __init__(self, settings: IdentityProvider, client: Outbound) -> None:
        super().__init__(settings, client)
        self.issuer = settings.issuer.rstrip("/")
        self._issuers = [self.issuer, f"{self.issuer}/login/oauth"]
        self._api = _API_OF_GITHUB if self.issuer == GITHUB else f"{self.issuer}/api/v3"

    async def metadata(self) -> dict[str, Any]:
        return {
            "authorization_endpoint": f"{self.issuer}/login/oauth/authorize",
            "token_endpoint": f"{self.issuer}/login/oauth/access_token",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }

    async def check(self, redirect_uri: str) -> None:
        # GitHub answers with status 200, and names the code as the error only if it knows the client.
        if (await self._exchanged("none", redirect_uri, "none")).get("error") != "bad_verification_code":
            raise wrong_client()

    async def identity(self, flow: Flow, code: str) -> Identity:
        token = (await self._exchanged(code, flow.redirect_uri, flow.verifier)).get("access_token")
        if not isinstance(token, str):  # GitHub reports a wrong code with status 200
            raise refused(200)
        user = await self._get("/user", token)
        if not isinstance(user, dict) or type(user.get("id")) is not int or user["id"] < 1:
            raise invalid("a user without an id")
        email, verified = _primary(await self._get("/user/emails", token))
        name = user.get("name") or user.get("login")
        return Identity(self.issuer, str(user["id"]), email, verified, name if isinstance(name, str) else None)

    async def _get(self, path: str, token: str) -> Any:
        headers = {
            "authorization": f"Bearer {token}",
            "accept": "application/vnd.github+json",
            "x-github-api-version": "2022-11-28",
        }
        status, answer = await self._ask(self._api + path, headers)
        if status in (403, 404) and path == "/user/emails":  # the person gave no access to them
            return []
        if status != 200:
            raise refused(status)
        return answer


def invalid(what: str) -> ApiError:
    """Return the error for an answer that is not valid; `what` must not quote it."""
    return ApiError("upstream_invalid_response", f"The identity provider sent {what}.")


def wrong_client() -> ApiError:
    return ApiError("upstream_error", "The identity provider does not accept the client id with the client secret.")


def refused(status: int) -> ApiError:
    return ApiError("upstream_error", f"The identity provider refused with status {status}.")


def _object(status: int, answer: Any) -> dict[str, Any]:
    """Return the provider's answer. Raises ApiError `upstream_error` unless it is a JSON object with status 200."""
    if status != 200 or not isinstance(answer, dict):
        raise refused(status)
    return answer


def _primary(emails: Any) -> tuple[str | None, bool]:
    for entry in emails if isinstance(emails, list) else []:
        if isinstance(entry, dict) and entry.get("primary") is True and isinstance(entry.get("email"), str):
            return entry["email"], entry.get("verified") is True
    return None, False
