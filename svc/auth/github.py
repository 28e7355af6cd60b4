"""Sign-in with GitHub's OAuth 2.0, on github.com or an Enterprise server."""

from typing import TYPE_CHECKING, Any

from svc.auth.oauth import Flow, Identity, SignInProvider, invalid, refused
from svc.config import GITHUB, IdentityProvider

if TYPE_CHECKING:
    import httpx

_API_OF_GITHUB = "https://api.github.com"


class GitHub(SignInProvider):
    """GitHub. Subjects are user numbers: a user name can be given up and taken by another person."""

    scope = "read:user user:email"

    def __init__(self, settings: IdentityProvider, client: "httpx.AsyncClient") -> None:
        super().__init__(settings, client)
        self.issuer = settings.issuer.rstrip("/")
        self._api = _API_OF_GITHUB if self.issuer == GITHUB else f"{self.issuer}/api/v3"

    async def metadata(self) -> dict[str, Any]:
        return {
            "authorization_endpoint": f"{self.issuer}/login/oauth/authorize",
            "token_endpoint": f"{self.issuer}/login/oauth/access_token",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }

    async def check(self) -> None:
        # GitHub answers with status 200, and names the code as the error only if it knows the client.
        if (await self._exchanged("none", "", "none")).get("error") != "bad_verification_code":
            raise refused(200)

    async def answers_as(self, issuer: str | None) -> bool:
        return issuer in (None, self.issuer, f"{self.issuer}/login/oauth")

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
            "user-agent": "svc",  # without one GitHub answers 403
        }
        status, answer = await self._ask(self._api + path, headers)
        if status in (403, 404) and path == "/user/emails":  # the person gave no access to them
            return []
        if status != 200:
            raise refused(status)
        return answer


def _primary(emails: Any) -> tuple[str | None, bool]:
    for entry in emails if isinstance(emails, list) else []:
        if isinstance(entry, dict) and entry.get("primary") is True and isinstance(entry.get("email"), str):
            return entry["email"], entry.get("verified") is True
    return None, False
