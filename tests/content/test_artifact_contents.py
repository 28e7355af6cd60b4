"""svc/content/artifact_contents.py: contents are written between others' writes, seen when they are whole, and
never left half.
"""

import asyncio
import contextlib
import hashlib
import sqlite3
import threading

import pytest

from svc import quota
from svc.config import Config
from svc.content import artifacts
from svc.content.artifact_contents import CHUNK_BYTES
from svc.db import Database, acting_for
from svc.errors import ApiError
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.artifacts import get_content, make_artifact, put_content
from tests.support.cases import each

MIB = 1024 * 1024
BIG = bytes(range(256)) * (8 * MIB // 256) + b"end"
USUAL = {"name": "x", "content_type": "a/b", "now_seconds": 1.0}


async def kept(db: Database) -> tuple[int, int, int]:
    """How many artifacts, contents and chunks there are."""
    tables = ("artifacts", "artifact_contents", "artifact_chunks")
    query = f"SELECT {', '.join(f'(SELECT count(*) FROM {table})' for table in tables)}"
    return await db.read(lambda conn: tuple(conn.execute(query).fetchone()))


async def a_chunk_is_there(db: Database) -> None:
    async with asyncio.timeout(30):
        while (await kept(db))[2] == 0:
            await asyncio.sleep(0)


@pytest.mark.slow
async def test_contents_are_written_a_mebibyte_per_transaction(service: Service) -> None:
    ada, bob = (await service.sign_up())["user"]["id"], (await service.sign_up())["user"]["id"]
    db, transactions = service.state["db"], [0]

    def note(sql: str) -> None:
        if sql == "COMMIT":
            transactions.append(0)
        elif sql.lstrip().startswith("INSERT INTO artifact_chunks"):
            transactions[-1] += 1

    await db.write(lambda tx: tx.set_trace_callback(note))
    acting_for.set(ada)
    flood = [
        asyncio.ensure_future(artifacts.add_artifact(db, artifacts.Home(ada), bytes(8 * MIB), **USUAL))
        for _ in range(3)
    ]
    await a_chunk_is_there(db)
    acting_for.set(bob)
    before = len(transactions)
    for _ in range(3):
        await db.write(lambda tx: tx.execute("UPDATE accounts SET name = 'Bob' WHERE id = ?", (bob,)).rowcount)
    assert len(transactions) - before <= 9, (
        "each waits for the transaction that is open, and is in the next one or behind its first job"
    )
    assert not any(job.done() for job in flood)
    await asyncio.gather(*flood)
    assert sum(transactions) == 3 * 8 * MIB // CHUNK_BYTES and max(transactions) == MIB // CHUNK_BYTES


async def test_content_is_visible_only_when_whole(service: Service) -> None:
    headers, db = await service.bearer(), service.state["db"]
    made = await make_artifact(service, headers, content="old")
    replacing = asyncio.create_task(put_content(service, headers, made["id"], BIG))
    adding = asyncio.create_task(make_artifact(service, headers, name="new", content="x" * (3 * MIB)))
    async with asyncio.timeout(30):
        while (await kept(db))[2] < 2:
            await asyncio.sleep(0)
    looked_at = threading.Event()
    holding = asyncio.ensure_future(db.write(lambda tx: looked_at.wait(30)))  # the writer, between two chunks
    assert (await get_content(service, headers, made["id"])).content == b"old"
    assert (await service.client.get("/artifacts", headers=headers)).json()["data"] == [made]
    assert not replacing.done()
    looked_at.set()
    assert await holding and (await replacing).status_code == 200 and (await adding)["size"] == 3 * MIB
    whole = await get_content(service, headers, made["id"])
    assert whole.content == BIG and whole.headers["etag"] == f'"{hashlib.sha256(BIG).hexdigest()}"'
    assert await kept(db) == (2, 2, 33 + 12)


@each("sizes", [[], [0], [1, 0, 2], [CHUNK_BYTES - 1, 2], [CHUNK_BYTES] * 2, [3 * CHUNK_BYTES + 5, 7, CHUNK_BYTES]])
async def test_chunks_of_any_size_become_one_content(service: Service, sizes: list[int]) -> None:
    session, db = await service.sign_up(), service.state["db"]
    account_id, headers = session["user"]["id"], bearer(session["access_token"])
    made = await make_artifact(service, headers, content="old")
    chunks = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    changed = await artifacts.replace_content(
        db, account_id, made["id"], list(chunks), content_type=None, now_seconds=1.0
    )
    assert (changed.size, changed.sha256) == (sum(sizes), hashlib.sha256(b"".join(chunks)).digest())
    assert (await get_content(service, headers, made["id"])).content == b"".join(chunks)


@pytest.mark.parametrize("what", ["cancelled", "deleted", "full", "gone"])
async def test_unfinished_content_is_deleted(service: Service, what: str) -> None:
    session, db = await service.sign_up(), service.state["db"]
    account_id, headers = session["user"]["id"], bearer(session["access_token"])
    made = await make_artifact(service, headers, content="")
    writing = asyncio.create_task(
        artifacts.replace_content(db, account_id, made["id"], [BIG], content_type=None, now_seconds=1.0)
    )
    await a_chunk_is_there(db)
    left = (1, 1, 0)
    if what == "cancelled":
        writing.cancel()
    elif what == "deleted":
        left = (0, 0, 0)
        await db.write(artifacts.TABLE.delete, account_id, made["id"])
    elif what == "full":
        await db.write(quota.set_limit, 1)
    else:
        left = (0, 0, 0)
        await db.write(lambda tx: tx.execute("DELETE FROM accounts WHERE id = ?", (account_id,)).rowcount)
    codes = {"deleted": "not_found", "full": "quota_exceeded", "gone": "invalid_api_key"}
    with pytest.raises(asyncio.CancelledError if what == "cancelled" else ApiError) as refused:
        await writing
    assert getattr(refused.value, "code", None) == codes.get(what)
    async with asyncio.timeout(30):
        while await kept(db) != left:
            await asyncio.sleep(0)


async def test_next_start_deletes_only_unfinished_contents(config: Config, clocks: Clocks) -> None:
    async with serving(config, clocks) as service:
        session = await service.sign_up()
        headers = bearer(session["access_token"])
        whole = await make_artifact(service, headers, content="x" * CHUNK_BYTES)
        await make_artifact(service, headers, content="")
        before = await kept(service.state["db"])
    with contextlib.closing(sqlite3.connect(config.data_dir / "service.db", isolation_level=None)) as conn:
        account_id = session["user"]["id"]
        conn.execute("INSERT INTO artifact_contents (account_id, id) VALUES (?, 'content_half')", (account_id,))
        conn.execute("INSERT INTO artifact_chunks VALUES (?, 'content_half', 0, zeroblob(9))", (account_id,))
    async with serving(config, clocks) as service:
        async with asyncio.timeout(30):
            while await kept(service.state["db"]) != before:
                await asyncio.sleep(0)
        assert before == (2, 2, 1)
        assert (await get_content(service, headers, whole["id"])).content == b"x" * CHUNK_BYTES
