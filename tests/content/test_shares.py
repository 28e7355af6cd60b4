"""The deletion of shares: of an account in slices, and of expired ones by the hourly deletion."""

import sqlite3
from typing import Any

from svc.content import shares
from svc.db import Database
from svc.deletion.slices import delete_old
from tests.conftest import Service, bearer
from tests.support.conversations import make, say


def rows(conn: sqlite3.Connection) -> tuple[int, ...]:
    return tuple(conn.execute("SELECT (SELECT count(*) FROM shares), (SELECT sum(bytes) FROM stored)").fetchone())


async def shared(service: Service, account: dict[str, Any], text: str, **fields: Any) -> str:
    headers = bearer(account["access_token"])
    conversation = await make(service, headers)
    await say(service, headers, conversation["id"], text)
    path = f"/conversations/{conversation['id']}/shares"
    answer = await service.client.post(path, json=fields, headers=headers)
    assert answer.status_code == 201, answer.text
    token: str = answer.json()["token"]
    return token


async def test_long_share_is_deleted_in_slices_and_its_bytes_are_given_back(service: Service) -> None:
    account = await service.sign_up()
    db: Database = service.state["db"]
    for _ in range(10):  # a slice takes 5 ms, in which a fast machine deletes 4 MB
        await shared(service, account, "x" * 1_000_000)
    _, before = await db.read(rows)
    slices = 0
    while await db.write_as("alone", shares.delete_some, account["user"]["id"]):
        slices += 1
    assert slices >= 1
    count, after = await db.read(rows)
    assert count == 0 and before - after > 10_000_000


async def test_expired_shares_are_deleted_and_others_stay(service: Service) -> None:
    account = await service.sign_up()
    for days in (1, 7, None):
        await shared(service, account, "hello", expires_days=days)
    service.clocks.advance(24 * 3600)
    await delete_old(service.state["db"], service.config)
    assert (await service.state["db"].read(rows))[0] == 2
