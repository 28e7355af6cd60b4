"""The administration: for administrators only, and every change is in the audit log."""

from functools import partial
from typing import Any

import httpx
import pytest

from app import ROUTES
from svc import cli
from svc.auth import accounts, links
from svc.server.head import METHODS
from tests.conftest import PASSWORD, Service, bearer

PATHS = sorted({path for _, path, _ in ROUTES if path.startswith("/admin/")})


@pytest.fixture
async def admin(service: Service) -> dict[str, str]:
    """The session of the first account, which is an administrator."""
    return await service.bearer()


async def ask(service: Service, method: str, path: str, headers: dict[str, str], **body: Any) -> httpx.Response:
    return await service.client.request(method, path, headers=headers, json=body or None)


@pytest.mark.parametrize("path", [*PATHS, "/admin/", "/admin/nothing", "/admin/users/x/y/z"])
async def test_paths_do_not_exist_for_anybody_else(service: Service, admin: dict[str, str], path: str) -> None:
    other = await service.bearer()
    keys = [bearer((await service.make_key(headers))["key"]) for headers in (admin, other)]
    path = path.replace("{", "").replace("}", "")
    for method in METHODS.split(", "):
        assert (await ask(service, method, path, {})).status_code == 401
        for key in keys:
            refused = await ask(service, method, path, key)
            assert refused.status_code == 403 and (method == "HEAD" or refused.json()["error"]["code"] == "session_required")
        assert (await ask(service, method, path, other)).status_code == 404


async def test_administrator_learns_which_methods_a_path_has(service: Service, admin: dict[str, str]) -> None:
    refused = await ask(service, "DELETE", "/admin/audit", admin)
    assert refused.status_code == 405 and refused.headers["allow"] == "GET, HEAD"
    assert (await ask(service, "DELETE", "/admin/nothing", admin)).status_code == 404


async def test_first_account_is_administrator_in_local_posture_only(service: Service, admin: dict[str, str]) -> None:
    me = (await ask(service, "GET", "/user/me", admin)).json()
    assert (me["admin"], me["group"], me["status"]) == (True, None, "active")
    assert (await service.sign_up())["user"]["admin"] is False


async def test_log_lists_what_commands_did(
    service: Service, admin: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SVC_DATA_DIR", str(service.config.data_dir))
    bob = (await service.sign_up("bob@example.com"))["user"]["id"]
    for line in ("user admin bob@example.com on", "credit bob@example.com 2.50", "debit bob@example.com 1"):
        assert cli.main(line.split()) == 0
    listed = (await ask(service, "GET", "/admin/audit?limit=2", admin)).json()
    assert [(row["actor"], row["action"], row["subject"]) for row in listed["data"]] == [
        ("operator", "debit", bob),
        ("operator", "credit", bob),
    ]
    assert listed["data"][1]["details"] == {"email": "bob@example.com", "amount_micros": 2_500_000}
    after = (await ask(service, "GET", f"/admin/audit?after={listed['data'][1]['id']}", admin)).json()
    assert after["data"][0]["details"] == {"email": "bob@example.com", "admin": True} and not after["has_more"]


async def suspended(service: Service, account_id: str, at_seconds: float | None) -> None:
    await service.state["db"].write(accounts.suspend, account_id, at_seconds)


async def test_suspended_account_is_refused_on_every_way_in_until_it_is_active_again(
    service: Service, admin: dict[str, str]
) -> None:
    session = await service.sign_up("bob@example.com")
    headers, bob, now = bearer(session["access_token"]), session["user"]["id"], service.clocks.now
    key = bearer((await service.make_key(headers))["key"])
    artifact = (await ask(service, "POST", "/artifacts", headers, name="a", content="text")).json()
    link = artifact["content_url"].removeprefix(service.config.base_url)
    tokens = {purpose: links.new_link_token(verified=False) for purpose in ("reset", "verify")}
    for purpose, token in tokens.items():
        await service.state["db"].write(partial(links.add_link, by_mail=True, now_seconds=now), bob, purpose, token)

    chat = {"model": "builtin/echo", "messages": [{"role": "user", "content": "hi"}]}

    async def answers() -> list[tuple[int, str | None]]:
        sign_in = {"email": "bob@example.com", "password": PASSWORD}
        found = [
            await ask(service, "GET", "/user/me", headers),
            await ask(service, "POST", "/v1/chat/completions", key, **chat),
            await ask(service, "GET", link, {}),
            await ask(service, "POST", "/auth/login", {}, **sign_in),
            await ask(service, "POST", "/auth/password-reset/confirm", {}, token=tokens["reset"], password=PASSWORD),
            await ask(service, "POST", "/auth/verify-email", {}, token=tokens["verify"]),
        ]
        return [(answer.status_code, answer.json()["error"]["code"] if answer.is_error else None) for answer in found]

    await suspended(service, bob, now)
    assert set(await answers()) == {(403, "account_suspended")}
    wrong = await ask(service, "POST", "/auth/login", {}, email="bob@example.com", password="a wrong one")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (401, "invalid_credentials")
    await suspended(service, bob, None)
    assert await answers() == [(200, None)] * 4 + [(204, None)] * 2
