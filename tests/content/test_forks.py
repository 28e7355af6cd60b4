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


async def test_long_conversation_is_copied_in_several_transactions(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    account_id, conversation_id, last = await filled(service, 40)
    monkeypatch.setattr(forks, "_SOME_SECONDS", 0.0)
    slices = []
    copy = forks._copy_some

    def noted(*args: Any) -> list[int]:
        slices.append(copy(*args))
        return slices[-1]

    monkeypatch.setattr(forks, "_copy_some", noted)
    db: Database = service.state["db"]
    made = await forks.fork(db, account_id, conversation_id, last, NOW)
    assert [len(left) for left in slices] == list(range(39, -1, -1))
    assert await db.read(count, account_id) == (2, 80)
    texts = "SELECT content FROM messages WHERE conversation_id = ? ORDER BY number"
    copied, original = [
        await db.read(lambda conn, one=one: [row[0] for row in conn.execute(texts, (one,))])
        for one in (made.id, conversation_id)
    ]
    assert copied == original


async def test_answer_in_progress_cannot_be_forked(service: Service) -> None:
    account_id, conversation_id, last = await filled(service, 2, status="in_progress")
    with pytest.raises(ApiError) as refused:
        await forks.fork(service.state["db"], account_id, conversation_id, last, NOW)
    assert refused.value.code == "already_active"
    await service.state["db"].write(history.end_interrupted_answers)


@pytest.mark.parametrize("error", [ApiError("storage_unavailable"), asyncio.CancelledError()])
async def test_copy_that_fails_is_removed(
    service: Service, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    account_id, conversation_id, last = await filled(service, 3)
    copy, calls = forks._copy_some, []

    def failing(tx: sqlite3.Connection, account_id: str, fork_id: str, numbers: list[int]) -> list[int]:
        if calls:
            raise error
        calls.append(copy(tx, account_id, fork_id, numbers[:1]))
        return numbers[1:]

    monkeypatch.setattr(forks, "_copy_some", failing)
    db: Database = service.state["db"]
    with pytest.raises(type(error)):
        await forks.fork(db, account_id, conversation_id, last, NOW)
    assert await db.read(count, account_id) == (1, 3)
    assert await db.read(lambda conn: conn.execute("SELECT count(*) FROM reserved_room").fetchone()[0]) == 0
