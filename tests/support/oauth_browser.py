"""A browser that signs in with other providers: it keeps its cookies, follows no redirect, and reads the page's
fragment.
"""

import dataclasses
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx

from svc.config import Config, IdentityProvider
from tests.conftest import Service, bearer
from tests.support.identity_provider import CLIENT_ID, CLIENT_SECRET, StandIn, User, person

Fragment = dict[str, str]


def with_providers(config: Config, **issuers: str) -> Config:
    """`config` with identity providers by name."""
    providers = tuple(IdentityProvider(name, issuer, CLIENT_ID, CLIENT_SECRET) for name, issuer in issuers.items())
    return dataclasses.replace(config, identity_providers=providers)


@dataclasses.dataclass
class Browser:
    service: Service
    cookies: dict[str, str] = dataclasses.field(default_factory=dict)

    async def request(
        self, method: str, address: str, headers: dict[str, Any] | None = None, **options: Any
    ) -> httpx.Response:
        client = self.service.client
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items()).encode("latin-1")
        client.cookies.clear()
        answer = await client.request(
            method, address, headers={**({"cookie": cookie} if cookie else {}), **(headers or {})}, **options
        )
        client.cookies.clear()
        for header in answer.headers.get_list("set-cookie"):
            self.cookies |= {name: morsel.value for name, morsel in SimpleCookie(header).items()}
        return answer

    async def begin(self, provider: str = "stub") -> str:
        """The address at the provider to which the service sends the browser."""
        answer = await self.request("GET", f"/auth/oauth/{provider}")
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    async def begin_linking(self, session: dict[str, Any], provider: str = "stub") -> str:
        answer = await self.request("POST", f"/user/identities/{provider}", bearer(session["access_token"]))
        assert answer.status_code == 200, answer.text
        url: str = answer.json()["url"]
        return url

    async def come_back(self, address: str) -> Fragment:
        """What the page's fragment says after the provider sent the browser to `address`."""
        return self.fragment(await self.request("GET", address))

    def fragment(self, answer: httpx.Response) -> Fragment:
        assert answer.status_code == 302, answer.text
        location = answer.headers["location"]
        assert location.startswith(f"{self.service.config.base_url}/#")
        return dict(parse_qsl(urlsplit(location).fragment, strict_parsing=True))

    async def change(self, fragment: Fragment) -> httpx.Response:
        """What the page does with a code."""
        return await self.request("POST", "/auth/oauth/session", json={"code": fragment["code"]})

    async def arrive(self, stand_in: StandIn, user: User | None = None, provider: str = "stub") -> Fragment:
        """A sign-in as `user` up to the page's fragment."""
        return await self.come_back(stand_in.authorize(await self.begin(provider), user or person()))

    async def sign_in(self, stand_in: StandIn, user: User | None = None, provider: str = "stub") -> dict[str, Any]:
        answer = await self.change(await self.arrive(stand_in, user, provider))
        assert answer.status_code == 200, answer.text
        session: dict[str, Any] = answer.json()
        return session

    async def link(self, stand_in: StandIn, session: dict[str, Any], user: User, provider: str = "stub") -> Fragment:
        return await self.come_back(stand_in.authorize(await self.begin_linking(session, provider), user))


async def rows(service: Service, query: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = await service.state["db"].read(
        lambda conn: [tuple(row) for row in conn.execute(query)]
    )
    return found
