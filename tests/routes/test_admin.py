"""The administration: for administrators only, and every change is in the audit log."""

import asyncio
import dataclasses
import sqlite3
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from app import ROUTES
from svc.auth import accounts
from svc.billing import wallet
from svc.config import Config
from svc.deletion.slices import begin_deletion
from svc.server.http.head import METHODS, Context
from svc.server.sse import Interrupt
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.routes.test_links import make_link
from tests.support.admins import ask, log_of
from tests.support.cases import each

PATHS = sorted({path for _, path, _ in ROUTES if path.startswith("/admin/")})

CATALOG = """
[access]
models = ["builtin/*"]

[[groups]]
name = "research"
emails = ["*@research.example"]
"""


@pytest.fixture
async def service(config: Config, clocks: Clocks) -> AsyncIterator[Service]:
    async with serving(config, clocks, CATALOG) as service:
        yield service


@pytest.fixture
async def admin(service: Service) -> dict[str, str]:
    """The session of the first account, which is an administrator."""
    return await service.bearer()


@each("path", [*PATHS, "/admin/", "/admin/nothing", "/admin/users/x/y/z"])
async def test_paths_do_not_exist_for_anybody_else(service: Service, admin: dict[str, str], path: str) -> None:
    other = await service.bearer()
    keys = [bearer((await service.make_key(headers))["key"]) for headers in (admin, other)]
    path = path.replace("{", "").replace("}", "")
    for method in METHODS.split(", "):
        assert (await ask(service, method, path, {})).status_code == 401
        for key in keys:
            refused = await ask(service, method, path, key)
            assert refused.status_code == 403 and (
                method == "HEAD" or refused.json()["error"]["code"] == "session_required"
            )
        assert (await ask(service, method, path, other)).status_code == 404


async def test_administrator_learns_which_methods_a_path_has(service: Service, admin: dict[str, str]) -> None:
    refused = await ask(service, "DELETE", "/admin/audit", admin)
    assert refused.status_code == 405 and refused.headers["allow"] == "GET, HEAD"
    assert (await ask(service, "DELETE", "/admin/nothing", admin)).status_code == 404


async def test_first_account_is_administrator_in_local_posture_only(
    service: Service, admin: dict[str, str], config: Config, clocks: Clocks
) -> None:
    me = (await ask(service, "GET", "/user/me", admin)).json()
    assert (me["admin"], me["group"], me["status"]) == (True, None, "active")
    assert (await service.sign_up())["user"]["admin"] is False
    fresh = dataclasses.replace(config, data_dir=config.data_dir / "fresh")
    async with serving(fresh, clocks) as other:
        made = await asyncio.gather(*(other.sign_up() for _ in range(8)))
        assert sum(session["user"]["admin"] for session in made) == 1
    async with serving(dataclasses.replace(config, data_dir=config.data_dir / "left"), clocks) as other:
        await other.state["db"].write(begin_deletion, (await other.sign_up())["user"]["id"], clocks.now, "operator")
        assert (await other.sign_up())["user"]["admin"] is True, "rows of a deleted account are left"
    public = dataclasses.replace(config, data_dir=config.data_dir / "public", base_url="https://svc.example")
    async with serving(public, clocks) as other:
        assert (await other.sign_up())["user"]["admin"] is False


async def suspended(service: Service, account_id: str, at_seconds: float | None) -> None:
    await service.state["db"].write(accounts.update_account, account_id, {"suspended_at": at_seconds})


async def test_suspended_account_is_refused_on_every_way_in_until_it_is_active_again(
    service: Service, admin: dict[str, str]
) -> None:
    session = await service.sign_up("bob@example.com")
    headers, bob, now = bearer(session["access_token"]), session["user"]["id"], service.clocks.now
    key = bearer((await service.make_key(headers))["key"])
    artifact = (await ask(service, "POST", "/artifacts", headers, name="a", content="text")).json()
    link = artifact["content_url"].removeprefix(service.config.base_url)
    tokens = {purpose: await make_link(service, "bob@example.com", purpose) for purpose in ("reset", "verify")}

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


# --- accounts


async def test_list_is_sorted_by_what_accounts_store_spend_and_do(
    service: Service, admin: dict[str, str], clocks: Clocks
) -> None:
    ids = [(await service.sign_up(f"sorted{number}@example.com"))["user"]["id"] for number in range(4)]

    def fill(tx: sqlite3.Connection) -> None:
        for account_id, stored, spent, month, seen in zip(
            ids, (5, 9, 9, 0), (0, 50, 7, 99), ("2026-09", "2026-09", "2026-09", "2026-08"), (4, 3, 2, 1), strict=True
        ):
            tx.execute("UPDATE stored SET bytes = ? WHERE account_id = ?", (10**6 * stored, account_id))
            tx.execute("UPDATE accounts SET last_seen_at = ? WHERE id = ?", (clocks.now + seen, account_id))
            values = (month, spent, account_id)
            tx.execute("UPDATE wallets SET month = ?, month_spent_micros = ? WHERE account_id = ?", values)

    await service.state["db"].write(fill)
    for sort, order in (
        ("stored_bytes", [2, 1, 0]),
        ("spent", [1, 2]),
        ("last_seen", [0, 1, 2, 3]),
        ("created", [3, 2, 1, 0]),
    ):
        first = (await ask(service, "GET", f"/admin/users?q=sorted&sort={sort}&limit=2", admin)).json()
        after = f"{first['data'][-1]['id']}"
        more = (await ask(service, "GET", f"/admin/users?q=sorted&sort={sort}&after={after}", admin)).json()
        found = [ids.index(user["id"]) for user in (*first["data"], *more["data"])]
        assert found[: len(order)] == order and sorted(found) == [0, 1, 2, 3], sort
    spent = {user["id"]: user["spent_month_micros"] for user in more["data"]}
    assert spent[ids[1]] == 50 and 99 not in spent.values()
    assert (await ask(service, "GET", "/admin/users?sort=name", admin)).status_code == 400
    await ask(service, "DELETE", f"/admin/users/{ids[0]}", admin)
    path = f"/admin/users?q=sorted&after={ids[0]}"
    assert (await ask(service, "GET", f"{path}&sort=spent", admin)).status_code == 400
    assert (await ask(service, "GET", path, admin)).json()["data"] == []


async def test_list_is_filtered_and_paged(service: Service, admin: dict[str, str]) -> None:
    made = [(await service.sign_up(f"{name}@{name}.example"))["user"]["id"] for name in ("ada", "bob", "cyd")]
    ada, bob, cyd = made
    for account_id, changes in ((ada, {"name": "Äda Smith", "group": "research"}), (bob, {"status": "suspended"})):
        assert (await ask(service, "PATCH", f"/admin/users/{account_id}", admin, **changes)).status_code == 200
    for query, expected in {
        "q=ADA": [ada],
        "q=smith": [ada],
        f"q={cyd}": [cyd],
        "q=nobody": [],
        "status=suspended": [bob],
        "status=active&q=.example": [cyd, ada],
        "group=research": [ada],
        "group=&q=.example": [cyd, bob],
        f"q=.example&after={cyd}&limit=1": [bob],
    }.items():
        listed = (await ask(service, "GET", f"/admin/users?{query}", admin)).json()
        assert [row["id"] for row in listed["data"]] == expected, query
        assert listed["has_more"] is ("limit" in query)
    for account_id, rest in ((bob, [ada]), (cyd, [ada])):
        assert (await ask(service, "DELETE", f"/admin/users/{account_id}", admin)).status_code == 204
        listed = (await ask(service, "GET", f"/admin/users?q=.example&after={account_id}", admin)).json()
        assert [row["id"] for row in listed["data"]] == rest, "the account is deleted"
    for query in ("status=x", "after=user_x", f"q={'x' * 501}", "limit=0"):
        assert (await ask(service, "GET", f"/admin/users?{query}", admin)).status_code == 400


async def test_row_shows_money_storage_and_keys(service: Service, admin: dict[str, str]) -> None:
    session = await service.sign_up("bob@example.com")
    bob, headers = session["user"]["id"], bearer(session["access_token"])
    await service.make_key(headers)
    await service.state["db"].write(
        partial(wallet.book, description="x", now_seconds=service.clocks.now), bob, 3_000_000
    )
    chat = {"model": "builtin/assistant-paid", "messages": [{"role": "user", "content": "hi"}]}
    cost = int((await ask(service, "POST", "/v1/chat/completions", headers, **chat)).headers["x-service-cost-micros"])
    await service.state["key_uses"].flush()
    row = (await ask(service, "GET", f"/admin/users/{bob}", admin)).json()
    assert cost > 0 and (row["balance_micros"], row["spent_month_micros"]) == (3_000_000 - cost, cost)
    assert (row["keys"], row["email"], row["tier"], row["admin"], row["status"]) == (
        1,
        "bob@example.com",
        "free",
        False,
        "active",
    )
    assert row["stored_bytes"] > 256 and row["last_seen_at"] == "2026-09-21T14:13:20.000Z"
    service.clocks.now += 32 * 86_400
    again = (await ask(service, "POST", "/auth/login", {}, email="person1@example.com", password=PASSWORD)).json()
    listed = (await ask(service, "GET", "/admin/users?q=bob", bearer(again["access_token"]))).json()["data"]
    assert listed == [{**row, "spent_month_micros": 0}], "in this month"


async def test_invited_user_sets_a_password_with_the_link(service: Service, admin: dict[str, str]) -> None:
    made = await ask(service, "POST", "/admin/users", admin, email="Ada@research.example", name="Ada")
    ada = made.json()
    assert made.status_code == 201 and ada["email_verified"] is True and ada["group"] == "research"
    assert (await ask(service, "POST", "/admin/users", admin, email="ada@Research.example")).status_code == 409
    unknown = await ask(service, "POST", "/admin/users", admin, email="bob@example.com", group="nobody")
    assert unknown.status_code == 400 and unknown.json()["error"]["param"] == "group"
    again = (await ask(service, "POST", f"/admin/users/{ada['id']}/reset-link", admin)).json()
    assert await log_of(service, admin) == [
        ("user.reset_link", {"email": "Ada@research.example"}),
        ("user.invite", {"email": "Ada@research.example", "name": "Ada", "group": "auto"}),
    ]
    service.clocks.now += 72 * 3600 - 1
    for url, status in ((ada["invite_url"], 400), (again["invite_url"], 204), (again["invite_url"], 400)):
        address, token = url.split("#")
        used = await ask(service, "POST", "/auth/password-reset/confirm", {}, token=token, password="a new password")
        assert (address, used.status_code) == (f"{service.config.base_url}/password-reset", status)
    sign_in = {"email": "ada@research.example", "password": "a new password"}
    assert (await ask(service, "POST", "/auth/login", {}, **sign_in)).status_code == 200


async def test_links_of_others_cannot_prevent_an_administrators_link(service: Service, admin: dict[str, str]) -> None:
    bob = (await service.sign_up("bob@example.com"))["user"]["id"]
    for _ in range(20):
        await make_link(service, "bob@example.com")
    assert (await ask(service, "POST", f"/admin/users/{bob}/reset-link", admin)).status_code == 201


async def test_change_is_logged_once_and_only_if_it_changes_something(service: Service, admin: dict[str, str]) -> None:
    bob = (await service.sign_up("bob@example.com"))["user"]["id"]
    changes: list[dict[str, Any]] = [
        {"name": "Bob", "admin": True},
        {"group": "research"},
        {"group": None, "status": "suspended"},
        {"group": "auto", "status": "active", "admin": False},
    ]
    for change in changes * 2:
        for _ in range(2):
            changed = (await ask(service, "PATCH", f"/admin/users/{bob}", admin, **change)).json()
            shown = {"name": "Bob", **change, **({"group": None} if change.get("group") == "auto" else {})}
            if "group" in change:
                shown["group_chosen"] = change["group"] != "auto"
            assert {**changed, **shown} == changed == (await ask(service, "GET", f"/admin/users/{bob}", admin)).json()
    expected = [*changes, {"admin": True}, *changes[1:]]
    log = [
        (action, {name: value for name, value in row.items() if name != "email"})
        for action, row in await log_of(service, admin)
    ]
    assert log == [("user.change", change) for change in reversed(expected)]
    for wrong in ({"group": "nobody"}, {"status": "deleted"}, {"admin": None}, {"name": 1}):
        assert (await ask(service, "PATCH", f"/admin/users/{bob}", admin, **wrong)).status_code == 400


async def test_suspension_and_deletion_end_open_answers_at_once(service: Service, admin: dict[str, str]) -> None:
    async def answer(owner: str, interrupt: Interrupt) -> None:
        with interrupt.over(Context({}, account_id=owner), service.state["drain"]):
            await asyncio.Future()

    bob = (await service.sign_up())["user"]["id"]
    for method, body, reason in (
        ("PATCH", {"status": "suspended"}, "account_suspended"),
        ("DELETE", {}, "account_deleted"),
    ):
        interrupt = Interrupt()
        task = asyncio.create_task(answer(bob, interrupt))
        await asyncio.sleep(0)
        assert (
            await ask(service, method, f"/admin/users/{bob}", admin, **body)
        ).is_success and interrupt.reason == reason
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("change", [{"admin": False}, {"status": "suspended"}, None])
async def test_last_active_administrator_stays(
    service: Service, admin: dict[str, str], change: dict[str, Any] | None
) -> None:
    session = await service.sign_up()
    me = (await ask(service, "GET", "/user/me", admin)).json()["id"]
    bob, other = session["user"]["id"], bearer(session["access_token"])

    async def end(account_id: str, headers: dict[str, str]) -> int:
        path = f"/admin/users/{account_id}"
        answer = await (
            ask(service, "DELETE", path, headers) if change is None else ask(service, "PATCH", path, headers, **change)
        )
        assert answer.status_code in (200, 204, 404) or answer.json()["error"]["code"] in (
            "last_admin",
            "account_suspended",
            "invalid_api_key",
        )
        return answer.status_code

    assert await end(me, admin) == 409
    assert (await ask(service, "DELETE", "/user/me", admin, password=PASSWORD)).status_code == 409
    await ask(service, "PATCH", f"/admin/users/{bob}", admin, admin=True, status="suspended")
    assert await end(me, admin) == 409, "a suspended administrator does not count"
    await ask(service, "PATCH", f"/admin/users/{bob}", admin, status="active")
    assert set(await asyncio.gather(end(me, other), end(bob, admin), end(bob, other), end(me, admin))) <= {
        200,
        204,
        401,
        403,
        404,
        409,
    }
    left = await service.state["db"].read(accounts.all_accounts)
    assert sum(account.admin and account.suspended_at is None for account in left) == 1


async def test_administrator_deletes_keys_and_accounts_of_others(service: Service, admin: dict[str, str]) -> None:
    session = await service.sign_up("bob@example.com")
    bob, headers = session["user"]["id"], bearer(session["access_token"])
    keys = [await service.make_key(headers, f"key {number}") for number in range(4)]
    path = f"/admin/users/{bob}/api-keys"
    first = (await ask(service, "GET", f"{path}?limit=3", admin)).json()
    rest = (await ask(service, "GET", f"{path}?after={first['data'][-1]['id']}", admin)).json()
    fields = ("id", "key_prefix", "name", "created_at")
    shown = [{name: row[name] for name in fields} for row in first["data"] + rest["data"]]
    assert shown == [{name: key[name] for name in fields} for key in reversed(keys)] and first["has_more"] is True
    assert not any(key["key"] in str(first) + str(rest) for key in keys)
    for status in (204, 404):
        assert (await ask(service, "DELETE", f"{path}/{keys[0]['id']}", admin)).status_code == status
    assert (await ask(service, "GET", "/user/me", bearer(keys[0]["key"]))).status_code == 401
    assert (await ask(service, "GET", "/user/me", bearer(keys[1]["key"]))).status_code == 200
    rest = (await ask(service, "GET", f"{path}?after={keys[2]['id']}", admin)).json()["data"]
    assert [row["id"] for row in rest] == [keys[1]["id"]]
    assert (await ask(service, "DELETE", path, admin)).status_code == 204
    assert (await ask(service, "GET", f"{path}?after={keys[2]['id']}", admin)).json()["data"] == []
    assert (await ask(service, "GET", path, admin)).json()["data"] == []
    assert (await ask(service, "DELETE", f"/admin/users/{bob}", admin)).status_code == 204
    assert (await ask(service, "GET", "/user/me", headers)).status_code == 401
    assert await log_of(service, admin) == [
        ("user.delete", {}),
        ("user.delete_keys", {}),
        ("user.delete_key", {"key": keys[0]["id"]}),
    ]
    for method, target in (
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("GET", "/api-keys"),
        ("DELETE", "/api-keys"),
        ("POST", "/reset-link"),
    ):
        body = {"name": "x"} if method == "PATCH" else {}
        for account_id in (bob, "x" * 300):
            assert (await ask(service, method, f"/admin/users/{account_id}{target}", admin, **body)).status_code == 404


async def test_administrator_reads_nothing_that_others_store(service: Service, admin: dict[str, str]) -> None:
    session = await service.sign_up("bob@example.com")
    bob, headers = session["user"]["id"], bearer(session["access_token"])
    key = await service.make_key(headers)
    for path, body in (
        ("/artifacts", {"name": "canary", "content": "canary"}),
        ("/projects", {"name": "canary", "instructions": "canary"}),
        ("/conversations", {"title": "canary"}),
        (
            "/user/providers",
            {"name": "canary", "base_url": "http://127.0.0.1:9/canary", "api_key": "canary", "models": ["canary"]},
        ),
        ("/v1/chat/completions", {"model": "builtin/echo", "messages": [{"role": "user", "content": "canary"}]}),
        ("/v1/agents/run", {"model": "builtin/script", "goal": "say canary"}),
    ):
        assert (await ask(service, "POST", path, headers, **body)).is_success
    assert (await ask(service, "PATCH", "/user/settings", headers, instructions="canary")).status_code == 200
    for path in PATHS:
        shown = await ask(service, "GET", path.replace("{account_id}", bob), admin)
        assert shown.status_code in (200, 404, 405) and "canary" not in shown.text and key["key"] not in shown.text
