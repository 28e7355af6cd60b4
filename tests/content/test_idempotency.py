"""svc/content/idempotency.py: rows of kept answers, deleted in slices and at the start."""

import sqlite3

from svc.content import idempotency
from tests.conftest import Service


async def test_old_answers_are_deleted_in_slices_and_newer_ones_stay(service: Service) -> None:
    account_id = (await service.sign_up())["user"]["id"]

    def add(tx: sqlite3.Connection, key: str, claimed_at: float) -> None:
        place = idempotency.place_of(account_id, "/path", key)
        idempotency.claim(tx, place, key, bytes(32), claimed_at)
        chunks = [b"x" * idempotency.CHUNK_BYTES] * 3
        size = 3 * idempotency.CHUNK_BYTES
        idempotency.keep(tx, account_id, key, status=200, headers={}, size=size, rest=(0, chunks))

    db = service.state["db"]
    for key, claimed_at in (("old", 1.0), ("older", 0.0), ("new", 3.0)):
        await db.write(add, key, claimed_at)
    while await db.write_as("alone", idempotency.delete_old, 2.0):
        pass
    left = await db.read(lambda conn: conn.execute("SELECT id FROM idempotency_keys").fetchall())
    chunks = await db.read(lambda conn: conn.execute("SELECT DISTINCT key_id FROM idempotency_chunks").fetchall())
    assert [tuple(row) for row in left] == [tuple(row) for row in chunks] == [("new",)]
    while await db.write_as("alone", idempotency.delete_some, account_id):
        pass
    assert await db.read(lambda conn: conn.execute("SELECT id FROM idempotency_keys").fetchall()) == []


async def test_start_releases_claims_without_an_answer(service: Service) -> None:
    account_id, db = (await service.sign_up())["user"]["id"], service.state["db"]
    place = idempotency.place_of(account_id, "/path", "key")
    await db.write(idempotency.claim, place, "claim", bytes(32), 1.0)
    await db.write(idempotency.add_chunks, account_id, "claim", 0, [b"begun"])
    await db.write(idempotency.release_all)
    for table in ("idempotency_keys", "idempotency_chunks"):
        assert await db.read(lambda conn, table=table: conn.execute(f"SELECT * FROM {table}").fetchall()) == []


async def test_key_of_a_call_that_is_not_settled_yet_can_be_claimed_again(service: Service) -> None:
    account_id, db = (await service.sign_up())["user"]["id"], service.state["db"]
    place = idempotency.place_of(account_id, "/path", "key")
    for claim in ("first", "second"):
        await db.write(idempotency.claim, place, claim, bytes(32), 1.0)
    for claim, size in (("second", 5), ("first", None)):
        chunks = [] if size is None else [b"hello"]
        await db.write(idempotency.keep, account_id, claim, status=200, headers={}, size=size, rest=(0, chunks))
    kept = await db.read(idempotency.kept, place, 2.0)
    assert (kept.id, kept.size) == ("second", 5)
    assert await db.read(idempotency.chunk, account_id, "second", 0) == b"hello"
    assert await db.read(idempotency.kept, place, 1.0 + idempotency.KEPT_SECONDS) is None
