"""One whole sign-in with real processes: our server, and an OpenID Connect provider that others wrote
(oidc-provider-mock).
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.mail_server import PASSWORD, USER, mail_server
from tests.support.oidc_provider import come_back, oidc_provider, visit
from tests.support.server import RunningServer, running_server

SECRET = "hunter2-hunter2"


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with oidc_provider(tmp_path_factory.mktemp("provider")) as issuer:
        yield issuer


@contextlib.asynccontextmanager
async def serving(folder: Path, issuer: str, **env: str) -> AsyncIterator[RunningServer]:
    settings = {
        "SVC_OAUTH_MOCK_ISSUER": issuer,
        "SVC_OAUTH_MOCK_CLIENT_ID": "svc",
        "SVC_OAUTH_MOCK_CLIENT_SECRET": SECRET,
    }
    async with running_server(folder, {**settings, **env}) as server:
        yield server


async def test_sign_in_works_with_a_real_process_and_after_a_restart(tmp_path: Path, issuer: str) -> None:
    httpx.put(
        f"{issuer}/users/ada", json={"email": "ada@example.com", "email_verified": True, "name": "Ada"}
    ).raise_for_status()
    people = []
    for _ in range(2):
        async with serving(tmp_path, issuer) as server, server.client() as browser:
            [provider] = (await browser.get("/auth/oauth")).json()["data"]
            address, fragment = await visit(browser, provider["url"], {"sub": "ada"})
            session = (await browser.post("/auth/oauth/session", json=fragment)).json()
            me = await browser.get("/user/me", headers={"authorization": f"Bearer {session['access_token']}"})
            people.append(me.json())
            assert (await browser.get("/checkout")).status_code == 200
            assert (await browser.post("/auth/oauth/session", json=fragment)).status_code == 400
            assert await come_back(browser, address) == {"error": "invalid_token", "provider": "mock"}
            async with server.client() as stranger:
                address, _ = await visit(stranger, provider["url"], {"sub": "ada"})
                assert (await come_back(browser, address))["error"] == "invalid_token"
            log = server.stderr()
            assert '"route":"/auth/oauth/{provider}/callback"' in log
            assert not any(text in log for text in (SECRET, "ada@", fragment["code"], session["access_token"], address))
    assert people[0] == people[1] and people[0]["email"] == "ada@example.com" and people[0]["name"] == "Ada"


async def test_identity_joins_an_account_verified_by_mail(
    tmp_path: Path, issuer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    httpx.put(f"{issuer}/users/bob", json={"email": "bob@example.com", "email_verified": True}).raise_for_status()
    async with mail_server(tmp_path / "mail") as box:
        smtp = f"smtp://{USER.replace('@', '%40')}:hunter2%3Ahunter2%2F%25+@127.0.0.1:{box.port}"
        env = {"SVC_SMTP_URL": smtp, "SSL_CERT_FILE": str(box.ca)}
        async with serving(tmp_path, issuer, **env) as server, server.client() as browser:
            bob = {"email": "bob@example.com", "password": "a first password"}
            assert (await browser.post("/auth/signup", json=bob)).status_code == 201
            assert (await visit(browser, "/auth/oauth/mock", {"sub": "bob"}))[1] == {
                "error": "email_taken",
                "provider": "mock",
            }
            assert (await browser.post("/auth/password-reset", json={"email": "bob@example.com"})).status_code == 202
            await box.wait_for(2)  # the first one verifies the address
            sender, recipients, message = box.messages[1]
            assert (sender, recipients, box.secure, box.logins) == (USER, ["bob@example.com"], [True] * 2, [USER] * 2)
            link = re.search(r"https://\S+", message.get_content().partition("once:")[2])
            assert link is not None and link[0].startswith(f"{server.base_url}/password-reset#")
            body = {"token": link[0].partition("#")[2], "password": "a second password"}
            assert (await browser.post("/auth/password-reset/confirm", json=body)).status_code == 204
            assert "code" in (await visit(browser, "/auth/oauth/mock", {"sub": "bob"}))[1]
            while '"message":"sent"' not in (log := server.stderr()):
                await asyncio.sleep(0.02)
            assert not any(text in log for text in (PASSWORD, "bob@", USER, body["token"], "password-reset#"))
