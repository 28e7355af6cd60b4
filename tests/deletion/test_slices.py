"""The deletion of an account: it is gone at once for its owner, its rows follow in slices, also after a restart."""

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest

from svc import tables
from svc.auth import accounts, identities, links, oauth_flows
from svc.billing import invariants, payments, wallet
from svc.billing.usage import add_call
from svc.config import Config
from svc.content import artifact_contents, conversations, support
from svc.db import Database
from svc.deletion import slices as deletion
from svc.errors import ApiError
from svc.schema import connect
from svc.server.http.head import Context
from svc.server.sse import Interrupt
from tests.bench_delete import GOING
from tests.bench_delete import fill as fill_database
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.support.answers import assert_error

NOW = 1_790_000_000.0
EMAIL = "ada@example.com"


def fill(tx: sqlite3.Connection, account_id: str, rows: int) -> str:
    """Insert `rows` rows into the account's ledger and usage, and some projects; return the token of a link."""
    wallet.book(tx, account_id, 10_000_000, description="ada's money", now_seconds=NOW)
    payments.add_checkout(tx, account_id, "chk_1", 5_000_000, NOW)
    wallet.hold(tx, account_id, "hold_open", 100, NOW)
    link = links.add_link(tx, accounts.existing_account(tx, account_id), "reset", NOW)
    assert link is not None
    identities.add_identity(tx, account_id, "https://issuer", "1", None, NOW)
    oauth_flows.begin(tx, "state", "browser", "issuer", account_id, NOW)
    oauth_flows.add_code(tx, "code", "browser", account_id, NOW)
    for number in range(rows):
        wallet.book(tx, account_id, -1, description=f"ada's call {number}", now_seconds=NOW)
        add_call(tx, (account_id, None, f"m{number}", "2026-09-21", ""), 1, 1, 0)
    tx.executemany(
        "INSERT INTO projects (id, account_id, name, instructions, created_at, updated_at) VALUES (?, ?, 'p', '', 1, "
        "1)",
        ((f"proj_{number}", account_id) for number in range(50)),
    )
    conversation = conversations.add_conversation(tx, account_id, NOW)
    conversations.add_message(tx, account_id, conversation.id, role="user", content="a secret plan", now_seconds=NOW)
    return link[1]


def left(conn: sqlite3.Connection, account_id: str) -> dict[str, int]:
    """Return how many rows of each table belong to the account."""
    owned = conn.execute(
        "SELECT t.name FROM pragma_table_list t, pragma_table_info(t.name) c WHERE t.type = 'table' AND c.name = 'account_id'"
    ).fetchall()
    found = {
        table: conn.execute(f"SELECT count(*) FROM {table} WHERE account_id = ?", (account_id,)).fetchone()[0]
        for (table,) in owned
    }
    return {table: count for table, count in found.items() if count}


def findings(conn: sqlite3.Connection) -> list[str]:
    return invariants.broken(conn) + invariants.broken_usage(conn)


async def test_account_is_deleted_for_its_owner_before_its_rows(service: Service) -> None:
    session = await service.sign_up(EMAIL)
    headers, account_id = bearer(session["access_token"]), session["user"]["id"]
    key = await service.make_key(headers)
    db: Database = service.state["db"]
    token = await db.write(fill, account_id, 300)
    await db.write(deletion.begin_deletion, account_id, NOW, None)

    for answer in (
        await service.client.get("/user/me", headers=headers),
        await service.client.get("/user/me", headers=bearer(key["key"])),
        await service.client.post("/v1/chat/completions", headers=bearer(key["key"]), json={}),
    ):
        assert_error(answer, 401, "invalid_api_key")
    login = await service.client.post("/auth/login", json={"email": EMAIL, "password": PASSWORD})
    assert_error(login, 401, "invalid_credentials")
    again = await service.sign_up(EMAIL)
    assert again["user"]["id"] != account_id, "its address is free"
    assert await db.read(accounts.ended_accounts, [account_id]) == [(account_id, "account_deleted")], (
        "its open streams end"
    )
    with pytest.raises(ApiError) as refused:
        await db.write(wallet.hold, account_id, "hold_late", 100, NOW)
    assert refused.value.code == "invalid_api_key"
    with pytest.raises(sqlite3.IntegrityError):  # a payment that comes late
        await db.write(wallet.book, account_id, 5_000_000, description="", now_seconds=NOW)
    assert {"ledger", "usage_days", "messages"} <= set(await db.read(left, account_id))
    at_once = {"wallets", "holds", "checkouts", "links", "identities", "oauth_flows", "oauth_codes"}
    assert not at_once & set(await db.read(left, account_id))
    link = await service.client.post("/auth/password-reset/confirm", json={"token": token, "password": PASSWORD})
    assert_error(link, 400, "invalid_token")


async def test_ledger_is_consistent_after_each_slice_and_has_no_person_at_the_end(service: Service) -> None:
    session = await service.sign_up(EMAIL)
    account_id = session["user"]["id"]
    db: Database = service.state["db"]
    await db.write(fill, account_id, 3_000)
    before = await db.read(lambda conn: conn.execute("SELECT count(*), sum(amount_micros) FROM ledger").fetchone()[:])
    await db.write(deletion.begin_deletion, account_id, NOW, None)
    slices = 1
    while await db.write(deletion.continue_deletion, account_id):
        slices += 1
        assert await db.read(findings) == []
    assert slices > 1
    assert await db.read(left, account_id) == {}
    assert await db.read(lambda conn: conn.execute("SELECT count(*) FROM accounts").fetchone()[0]) == 0
    after = await db.read(lambda conn: conn.execute("SELECT count(*), sum(amount_micros) FROM ledger").fetchone()[:])
    assert after == before, "the money stays"
    told = "SELECT count(*) FROM ledger WHERE account_id IS NOT NULL OR description <> ''"
    assert await db.read(lambda conn: conn.execute(told).fetchone()[0]) == 0


async def test_deletion_continues_after_a_restart(config: Config, clocks: Clocks) -> None:
    async with serving(config, clocks) as service:
        account_id = (await service.sign_up(EMAIL))["user"]["id"]
        await service.state["db"].write(fill, account_id, 100)
        await service.state["db"].write(deletion.begin_deletion, account_id, NOW, None)
    async with serving(config, clocks) as service:
        db: Database = service.state["db"]
        while await db.read(accounts.accounts_being_deleted):
            pass
        assert await db.read(left, account_id) == {} and await db.read(findings) == []


@pytest.mark.slow
def test_no_slice_scans_all_rows_of_an_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_database(tmp_path / "service.db", 20_000, big_artifacts=0)
    monkeypatch.setattr(tables, "SOME_SECONDS", 0.0002)
    with contextlib.closing(connect(tmp_path / "service.db")) as tx:
        account_id = accounts.account_by_email(tx, GOING).id
        deletion.begin_deletion(tx, account_id, NOW, None)
        steps, most = [0], 0

        def count() -> int:
            steps[0] += 100
            return 0

        tx.set_progress_handler(count, 100)
        for _ in range(40):  # of each kind of rows, before the next one's turn comes
            for delete_some in deletion.SLICES:
                if delete_some in (
                    conversations.TABLE.delete_some,
                    support.TABLE.delete_some,
                    artifact_contents.delete_some,
                ):
                    continue  # only when their messages or artifacts are gone
                steps[0] = 0
                delete_some(tx, account_id)
                most = max(most, steps[0])
        # 127 rows of the ledger, with its trigger, take 10,300 steps.
        assert most < 12_000, "a look through 2,000 runs takes 18,000 steps of SQLite's machine"
        while deletion.continue_deletion(tx, account_id):
            pass
        assert left(tx, account_id) == {}


async def test_deleting_an_account_interrupts_its_open_answers_at_once(service: Service) -> None:
    another, session = await service.sign_up("bob@example.com"), await service.sign_up(EMAIL)
    interrupt, other = Interrupt(), Interrupt()

    async def answer(owner: str, interrupt: Interrupt) -> None:
        with interrupt.over(Context({}, account_id=owner), service.state["drain"]):
            await asyncio.Future()

    tasks = [
        asyncio.create_task(answer(session["user"]["id"], interrupt)),
        asyncio.create_task(answer(another["user"]["id"], other)),
    ]
    await asyncio.sleep(0)
    deleted = await service.client.request(
        "DELETE", "/user/me", headers=bearer(session["access_token"]), json={"password": PASSWORD}
    )
    assert deleted.status_code == 204 and interrupt.reason == "account_deleted" and other.reason is None
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
