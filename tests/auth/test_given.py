"""The allowance of a month is given to a person once: not again to a new account with the same address or identity."""

import asyncio
import dataclasses
import sqlite3
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from svc import cli, groups
from svc.admin import users
from svc.auth import accounts, given
from svc.billing import invariants, spending
from svc.config import Config
from svc.deletion.slices import delete_old
from tests.billing.test_allowances import ASK, CHAT, MONTH_SECONDS
from tests.billing.test_wallet import findings
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.support.admins import ask
from tests.support.cases import each
from tests.support.identity_provider import StandIn, person, stand_in
from tests.support.oauth_browser import Browser, with_providers

ADA = "ada@example.com"
ALLOWANCE = 100_000
CATALOG = f"[access]\nallowance_micros = {ALLOWANCE}\nchats_per_minute = 100_000\n"


@pytest.fixture
async def provider(clocks: Clocks) -> AsyncIterator[StandIn]:
    async with stand_in(lambda: clocks.now) as provider:
        yield provider


@pytest.fixture
async def service(config: Config, clocks: Clocks, provider: StandIn) -> AsyncIterator[Service]:
    config = dataclasses.replace(with_providers(config, stub=provider.url), payments="none")
    async with serving(config, clocks, CATALOG) as service:
        await service.sign_up("boss@example.com")  # the administrator
        yield service
        assert await service.state["db"].read(findings) == []
        await service.state["engines"].usage.flush()
        assert await service.state["db"].read(invariants.broken_usage) == []


async def chat(service: Service, session: dict[str, Any]) -> int:
    answer = await service.client.post(CHAT, json=ASK, headers=bearer(session["access_token"]))
    return answer.status_code


async def delete(service: Service, session: dict[str, Any], **body: str) -> httpx.Response:
    headers = bearer(session["access_token"])
    return await service.client.request("DELETE", "/user/me", json=body or {"password": PASSWORD}, headers=headers)


async def used_up(service: Service, session: dict[str, Any], **body: str) -> dict[str, Any]:
    """Delete an account that has had its allowance. Return the session."""
    assert await chat(service, session) == 200
    assert (await delete(service, session, **body)).status_code == 204
    return session


async def given_in_all(service: Service) -> int:
    query = "SELECT ifnull(sum(amount_micros), 0) FROM ledger WHERE reference GLOB 'allowance:*'"
    micros: int = (await service.state["db"].read(lambda conn: conn.execute(query).fetchone()))[0]
    return micros


async def due(service: Service, session: dict[str, Any]) -> int:
    answer = await service.client.get("/billing/account", headers=bearer(session["access_token"]))
    micros: int = answer.json()["allowance_due_micros"]
    return micros


def set_allowance(service: Service, micros: int) -> None:
    service.state["models"].catalog.groups = groups.parse({"access": {"allowance_micros": micros}})


async def test_account_that_is_deleted_and_made_again_gets_no_second_allowance(service: Service) -> None:
    for _ in range(5):
        session = await service.sign_up("Ada@Example.com")
        status = await chat(service, session)
        assert (await delete(service, session)).status_code == 204
    assert status == 402 and await given_in_all(service) == ALLOWANCE


async def test_it_shows_that_nothing_is_due(service: Service) -> None:
    await used_up(service, await service.sign_up(ADA))
    assert await due(service, await service.sign_up(ADA)) == 0
    assert await due(service, await service.sign_up()) == ALLOWANCE, "another person"


async def test_next_month_gives_an_allowance_again(service: Service) -> None:
    await used_up(service, await service.sign_up(ADA))
    service.clocks.advance(MONTH_SECONDS)
    await used_up(service, await service.sign_up())  # another person, whose hash belongs to this month
    assert await chat(service, await service.sign_up(ADA)) == 200
    assert await given_in_all(service) == 3 * ALLOWANCE


async def test_raise_gives_a_new_account_the_difference_only(service: Service) -> None:
    await used_up(service, await service.sign_up(ADA))
    set_allowance(service, ALLOWANCE + 50_000)
    await used_up(service, await service.sign_up(ADA))
    assert await given_in_all(service) == ALLOWANCE + 50_000
    set_allowance(service, ALLOWANCE)
    session = await service.sign_up(ADA)
    assert await chat(service, session) == 402
    set_allowance(service, ALLOWANCE + 60_000)
    assert await chat(service, session) == 200
    assert await given_in_all(service) == ALLOWANCE + 60_000


async def test_account_that_had_nothing_leaves_the_allowance_to_the_next_one(service: Service) -> None:
    assert (await delete(service, await service.sign_up(ADA))).status_code == 204
    assert await chat(service, await service.sign_up(ADA)) == 200


async def test_invited_account_with_the_address_gets_no_second_allowance(service: Service) -> None:
    await used_up(service, await service.sign_up(ADA))
    invite = users.Invitation(ADA)
    account_id, _ = await service.state["db"].write(
        lambda tx: users.invite(tx, "operator", invite, None, by_mail=False, now_seconds=service.clocks.now)
    )
    assert await service.state["db"].read(given.given_before, account_id, "2026-09") == ALLOWANCE


async def test_deletion_by_an_administrator_counts_as_well(service: Service) -> None:
    boss = bearer(
        (await service.client.post("/auth/login", json={"email": "boss@example.com", "password": PASSWORD})).json()[
            "access_token"
        ]
    )
    session = await service.sign_up(ADA)
    assert await chat(service, session) == 200
    assert (await ask(service, "DELETE", f"/admin/users/{session['user']['id']}", boss)).status_code == 204
    assert await chat(service, await service.sign_up(ADA)) == 402


async def test_identity_of_a_deleted_account_counts_with_another_address(service: Service, provider: StandIn) -> None:
    session = await Browser(service).sign_in(provider, person(ADA))
    await used_up(service, session, confirm=ADA)
    again = await Browser(service).sign_in(provider, person("new@example.com"))
    assert again["user"]["email"] == "new@example.com" and await chat(service, again) == 402
    assert await chat(service, await Browser(service).sign_in(provider, person("bob@example.com", subject="2"))) == 200


async def test_identity_that_is_linked_later_counts(service: Service, provider: StandIn) -> None:
    await used_up(service, await Browser(service).sign_in(provider, person(ADA)), confirm=ADA)
    session = await service.sign_up("new@example.com")
    assert await Browser(service).link(provider, session, person(ADA)) == {"linked": "stub"}
    assert await chat(service, session) == 402 and await given_in_all(service) == ALLOWANCE


async def test_unlinked_identity_takes_its_allowance_along(service: Service, provider: StandIn) -> None:
    session = await service.sign_up(ADA)
    headers = bearer(session["access_token"])
    await Browser(service).link(provider, session, person("x@example.com"))
    assert await chat(service, session) == 200
    (identity,) = (await service.client.get("/user/identities", headers=headers)).json()["data"]
    assert (await service.client.delete(f"/user/identities/{identity['id']}", headers=headers)).status_code == 204
    assert await chat(service, await Browser(service).sign_in(provider, person("x@example.com"))) == 402
    assert await chat(service, session) == 200, "the first account keeps what it has"


async def test_address_that_was_changed_in_the_month_counts_like_the_new_one(service: Service) -> None:
    session, db, now = await service.sign_up(ADA), service.state["db"], service.clocks.now
    assert await chat(service, session) == 200
    await db.write(accounts.set_email, session["user"]["id"], "new@example.com", now, now)
    assert await chat(service, await service.sign_up(ADA)) == 402
    assert (await delete(service, session)).status_code == 204
    assert await chat(service, await service.sign_up("new@example.com")) == 402
    assert await given_in_all(service) == ALLOWANCE


async def test_change_to_a_used_address_counts(service: Service) -> None:
    await used_up(service, await service.sign_up(ADA))
    session, db, now = await service.sign_up("new@example.com"), service.state["db"], service.clocks.now
    await db.write(accounts.set_email, session["user"]["id"], ADA, now, now)
    assert await chat(service, session) == 402


async def test_change_of_the_address_before_the_first_call_does_not_help(service: Service) -> None:
    await used_up(service, await service.sign_up(ADA))
    session, db, now = await service.sign_up(ADA), service.state["db"], service.clocks.now
    await db.write(accounts.set_email, session["user"]["id"], "new@example.com", now, now)
    assert await chat(service, session) == 402 and await given_in_all(service) == ALLOWANCE


async def test_used_identity_that_is_linked_and_unlinked_counts(service: Service, provider: StandIn) -> None:
    await used_up(service, await Browser(service).sign_in(provider, person(ADA)), confirm=ADA)
    session = await service.sign_up("new@example.com")
    headers = bearer(session["access_token"])
    await Browser(service).link(provider, session, person(ADA))
    (identity,) = (await service.client.get("/user/identities", headers=headers)).json()["data"]
    assert (await service.client.delete(f"/user/identities/{identity['id']}", headers=headers)).status_code == 204
    assert await chat(service, session) == 402 and await given_in_all(service) == ALLOWANCE


async def test_rotation_of_the_secrets_gives_no_second_allowance(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await used_up(service, await service.sign_up(ADA))
    monkeypatch.setenv("SVC_DATA_DIR", str(service.config.data_dir))
    assert await asyncio.to_thread(cli.main, ["rotate-secrets"]) == 0
    assert await chat(service, await service.sign_up(ADA)) == 402


async def test_rows_have_no_address_and_end_with_the_month(service: Service) -> None:
    await used_up(service, await service.sign_up(ADA))
    db = service.state["db"]

    def stored(conn: sqlite3.Connection) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in conn.execute("SELECT * FROM given_allowances")]

    ((month, identity_hash, micros),) = await db.read(stored)
    assert (month, micros) == ("2026-09", ALLOWANCE) and ADA.encode() not in identity_hash
    await delete_old(db, service.config)
    assert len(await db.read(stored)) == 1, "the month is not over"
    service.clocks.advance(MONTH_SECONDS)
    await delete_old(db, service.config)
    assert await db.read(stored) == []


async def test_many_rows_are_deleted_in_slices(service: Service) -> None:
    def fill(tx: sqlite3.Connection) -> None:
        rows = [("2026-08", number.to_bytes(32, "big"), 1) for number in range(2_500)]
        tx.executemany("INSERT INTO given_allowances VALUES (?, ?, ?)", rows)

    def delete(tx: sqlite3.Connection) -> tuple[bool, int]:
        count = "SELECT count(*) FROM given_allowances"
        before = tx.execute(count).fetchone()[0]
        more = given.delete_old(tx, service.clocks.now)
        return more, before - tx.execute(count).fetchone()[0]

    await service.state["db"].write(fill)
    more, deleted = True, 0
    while more:  # the start of the service deletes some as well
        more, deleted = await service.state["db"].write(delete)
        assert deleted <= 1_000
    assert await service.state["db"].write(delete) == (False, 0)


# --- who has spent and who has deleted


async def test_spending_of_a_deleted_account_stays_one_line_by_its_id(service: Service) -> None:
    session, bob = await service.sign_up(ADA), await service.sign_up()
    for one in (session, bob):
        await used_up(service, one)
    rows, total, _ = await service.state["db"].read(spending.dearest, spending.month_period("2026-09"), ["user"])
    assert {row["key"]: row["requests"] for row in rows} == {
        f"(deleted {one['user']['id']})": 1 for one in (session, bob)
    }
    assert sum(row["cost_micros"] for row in rows) == total["cost_micros"] > 0


async def test_own_deletion_is_in_the_audit_log_without_a_name(service: Service) -> None:
    session = await service.sign_up(ADA)
    assert (await delete(service, session)).status_code == 204
    query = "SELECT actor, action, subject, details, person FROM audit"
    rows = await service.state["db"].read(lambda conn: [tuple(row) for row in conn.execute(query)])
    account_id = session["user"]["id"]
    assert rows == [(account_id, "user.delete", account_id, "{}", None)]


@each(
    ("more", "message"),
    [
        ("", "Users cannot delete their accounts here. Ask the operator of the service."),
        ("contact = 'it@example.com'\n", "Users cannot delete their accounts here. Ask it@example.com."),
    ],
)
async def test_operator_can_keep_users_from_deleting_themselves(
    more: str, message: str, config: Config, clocks: Clocks
) -> None:
    catalog = f"{CATALOG}users_may_delete_themselves = false\n{more}"
    config = dataclasses.replace(config, data_dir=config.data_dir.with_name(f"data{len(more)}"))
    async with serving(config, clocks, catalog) as service:
        boss, session = await service.sign_up(), await service.sign_up(ADA)
        refused = await delete(service, session)
        error = refused.json()["error"]
        assert (refused.status_code, error["code"], error["message"]) == (403, "deletion_disabled", message)
        settings = await service.client.get("/user/settings", headers=bearer(session["access_token"]))
        assert settings.json()["deletion_enabled"] is False
        gone = f"/admin/users/{session['user']['id']}"
        assert (await ask(service, "DELETE", gone, bearer(boss["access_token"]))).status_code == 204


async def test_users_may_delete_themselves_by_default(service: Service) -> None:
    headers = await service.bearer()
    assert (await service.client.get("/user/settings", headers=headers)).json()["deletion_enabled"] is True


@each("wrong", ["contact = ''", "contact = 1", f"contact = '{'x' * 201}'", "users_may_delete_themselves = 'no'"])
def test_wrong_entries_are_refused(wrong: str) -> None:
    import tomllib

    with pytest.raises(Exception, match=r"access\.(contact|users_may_delete_themselves) must be"):
        groups.parse({"access": tomllib.loads(wrong)})
