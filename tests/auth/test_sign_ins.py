"""Sign-ins: each one is stored with its way and result, for 90 days, and without what a stranger typed."""

import csv
from typing import Any

from svc.auth import accounts, sign_ins
from svc.deletion.slices import delete_old
from tests.billing.test_wallet import empty_database
from tests.conftest import PASSWORD, Service, bearer
from tests.support.admins import ask

DAY = 86_400.0
NOW = 1_790_000_000.0


async def stored(service: Service) -> list[tuple[Any, ...]]:
    query = "SELECT account_id, way, code FROM sign_ins ORDER BY seq"
    return await service.state["db"].read(lambda conn: [tuple(row) for row in conn.execute(query)])


async def test_sign_up_sign_in_and_refusal_are_stored_without_the_typed_address(service: Service) -> None:
    ada = (await service.sign_up("ada@example.com"))["user"]["id"]
    for email, password in (("ada@example.com", PASSWORD), ("ada@example.com", "wrong"), ("eve@example.com", "wrong")):
        await service.client.post("/auth/login", json={"email": email, "password": password})
    change = {"suspended_at": service.clocks.now}
    await service.state["db"].write(accounts.update_account, ada, change)
    assert (
        await service.client.post("/auth/login", json={"email": "ada@example.com", "password": PASSWORD})
    ).status_code == 403
    assert await stored(service) == [
        (ada, "password", "ok"),
        (ada, "password", "ok"),
        (ada, "password", "invalid_credentials"),
        (None, "password", "invalid_credentials"),
        (ada, "password", "account_suspended"),
    ]
    dump = await service.state["db"].read(lambda conn: [*map(tuple, conn.execute("SELECT * FROM sign_ins"))])
    assert "example.com" not in str(dump)


async def test_last_seen_counts_a_sign_in(service: Service) -> None:
    ada = (await service.sign_up("ada@example.com"))["user"]["id"]
    service.clocks.advance(3 * DAY)
    for password, seen in (("wrong", service.clocks.now - 3 * DAY), (PASSWORD, service.clocks.now)):
        await service.client.post("/auth/login", json={"email": "ada@example.com", "password": password})
        assert (await service.state["db"].read(accounts.existing_account, ada)).last_seen_at == seen


async def test_administrators_list_filter_and_download_sign_ins(service: Service) -> None:
    admin = await service.bearer()
    ada = (await service.sign_up("ada@example.com"))["user"]
    for way, code, account, days in (
        ("google", "email_not_verified", None, 1),
        ("google", "ok", ada["id"], 2),
        ("password", "invalid_credentials", ada["id"], 3),
    ):
        await service.state["db"].write(sign_ins.add, account, way, code, service.clocks.now + days * DAY)
    all_rows = (await ask(service, "GET", "/admin/sign-ins", admin)).json()["data"]
    assert (all_rows[0]["email"], all_rows[0]["account_id"], all_rows[2]["email"]) == (
        "ada@example.com",
        ada["id"],
        None,
    )
    for query, codes in (
        ("way=google", ["ok", "email_not_verified"]),
        ("code=ok", ["ok", "ok", "ok"]),
        (f"account_id={ada['id']}", ["invalid_credentials", "ok", "ok"]),
        ("from=2026-09-23&to=2026-09-23", ["ok"]),
        ("way=link", []),
    ):
        found = (await ask(service, "GET", f"/admin/sign-ins?{query}", admin)).json()
        assert [row["code"] for row in found["data"]] == codes, query
        text = (await ask(service, "GET", f"/admin/sign-ins?{query}&limit=1", {**admin, "accept": "text/csv"})).text
        assert [row["code"] for row in csv.DictReader(text.splitlines())] == codes
    assert (await ask(service, "GET", "/admin/sign-ins?to=yesterday", admin)).status_code == 400
    user = bearer(ada["id"])
    assert (await ask(service, "GET", "/admin/sign-ins", user)).status_code == 401


async def test_sign_ins_are_deleted_after_90_days_and_with_their_account(service: Service) -> None:
    ada = (await service.sign_up("ada@example.com"))["user"]["id"]
    await service.client.post("/auth/login", json={"email": "eve@example.com", "password": "wrong"})
    service.clocks.advance(89 * DAY)
    session = (await service.client.post("/auth/login", json={"email": "ada@example.com", "password": PASSWORD})).json()
    await delete_old(service.state["db"], service.config)
    assert len(await stored(service)) == 3
    service.clocks.advance(1 * DAY + 1)
    await delete_old(service.state["db"], service.config)
    assert await stored(service) == [(ada, "password", "ok")]
    service.clocks.advance(-1 * DAY)
    gone = await service.client.request(
        "DELETE", "/user/me", json={"password": PASSWORD}, headers=bearer(session["access_token"])
    )
    assert gone.status_code == 204 and await stored(service) == []


def test_a_million_sign_ins_are_kept() -> None:
    conn = empty_database()
    for number in range(24):
        sign_ins.add(conn, None, "password", "invalid_credentials", NOW + number)
    conn.execute("UPDATE sign_ins SET seq = 1000014 WHERE at = ?", (NOW + 23,))
    sign_ins.add(conn, None, "password", "invalid_credentials", NOW + 24)  # the number 1,000,015
    assert [row["at"] for row in conn.execute("SELECT at FROM sign_ins ORDER BY seq")] == [
        NOW + n for n in range(15, 25)
    ]
