"""Copies of conversations: in slices, whole or not at all, and not of an answer in progress."""

import asyncio
import sqlite3
from typing import Any

import pytest

from svc.content import conversations, forks, history
from svc.db import Database
from svc.errors import ApiError
from tests.conftest import Service

NOW = 1_790_000_000.0


async def filled(service: Service, messages: int, **last: Any) -> tuple[str, str, str]:
    """A conversation with `messages` messages: the account, the conversation and the last message."""
    account_id = (await service.sign_up())["user"]["id"]

    def add(tx: sqlite3.Connection) -> tuple[str, str]:
        made = conversations.add_conversation(tx, account_id, NOW)
        for number in range(messages):
            of = last if number == messages - 1 else {}
            fields = {"role": "assistant", "content": f"word{number} " * 400, "conversation_id": made.id, **of}
            message = history.add_message(tx, account_id, now_seconds=NOW, **fields)
        return made.id, message.id

    return account_id, *(await service.state["db"].write(add))


def count(conn: sqlite3.Connection, account_id: str) -> tuple[int, int]:
    query = """
        SELECT (SELECT count(*) FROM conversations WHERE account_id = ?1),
            (SELECT count(*) FROM messages WHERE account_id = ?1)
    """
    return tuple(conn.execute(query, (account_id,)).fetchone())  # type: ignore[return-value]


async def left(db: Database, account_id: str) -> tuple[int, int, int]:
    """The conversations and messages of an account, and all reserved room."""
    room = "SELECT count(*) FROM reserved_room"
    return *(await db.read(count, account_id)), await db.read(lambda conn: conn.execute(room).fetchone()[0])


async def copied(db: Database, account_id: str, most: int) -> int:
    """Wait until a transaction has copied a part of the `most` messages, and return how many there are."""
    async with asyncio.timeout(20):
        while (found := (await db.read(count, account_id))[1]) <= most:
            await asyncio.sleep(0)
    return found


async def test_long_conversation_is_copied_in_several_transactions(service: Service) -> None:
    account_id, conversation_id, last = await filled(service, 200)
    db: Database = service.state["db"]
    copying = asyncio.create_task(forks.fork(db, account_id, conversation_id, last, NOW))
    assert 200 < await copied(db, account_id, 200) < 400
    made = await copying
    assert await db.read(count, account_id) == (2, 400)
    texts = "SELECT content FROM messages WHERE conversation_id = ? ORDER BY number"
    of_copy, original = [
        await db.read(lambda conn, one=one: [row[0] for row in conn.execute(texts, (one,))])
        for one in (made.id, conversation_id)
    ]
    assert of_copy == original


async def test_answer_in_progress_cannot_be_forked(service: Service) -> None:
    account_id, conversation_id, last = await filled(service, 2, status="in_progress")
    with pytest.raises(ApiError) as refused:
        await forks.fork(service.state["db"], account_id, conversation_id, last, NOW)
    assert refused.value.code == "already_active"
    await service.state["db"].write(history.end_interrupted_answers)


async def test_copy_that_fails_is_removed(service: Service) -> None:
    account_id, conversation_id, last = await filled(service, 200)
    db: Database = service.state["db"]
    full = """
        CREATE TRIGGER fails BEFORE INSERT ON messages WHEN (SELECT count(*) FROM messages) = 390
        BEGIN SELECT RAISE(FAIL, 'no more'); END
    """
    await db.write(lambda tx: tx.execute(full) and None)
    with pytest.raises(sqlite3.IntegrityError, match="no more"):
        await forks.fork(db, account_id, conversation_id, last, NOW)
    await db.write(lambda tx: tx.execute("DROP TRIGGER fails") and None)
    assert await left(db, account_id) == (1, 200, 0)


async def test_cancelled_copy_is_removed(service: Service) -> None:
    account_id, conversation_id, last = await filled(service, 200)
    db: Database = service.state["db"]
    copying = asyncio.create_task(forks.fork(db, account_id, conversation_id, last, NOW))
    await copied(db, account_id, 200)
    copying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await copying
    assert await left(db, account_id) == (1, 200, 0)
