"""Where a model's view of a conversation began, and what is known of the answer before a question."""

import sqlite3
from functools import partial
from typing import Any

import pytest

from svc.content import answers, conversations, history, model_view
from svc.content.answers import AnswerDetails
from svc.content.model_view import View
from tests.conftest import Service, bearer

SAID = (("user", "one"), ("assistant", "uno"), ("user", " \n"), ("system", "Be brief."), ("user", "two"))


class Talk:
    """The messages of `SAID` and two answers: `due` after them, and `tre` after `three`, from `two` on."""

    def __init__(self, service: Service, account_id: str) -> None:
        self.db, self.account_id, self.conversation_id = service.state["db"], account_id, ""
        self.made: list[history.Message] = []

    async def add(self, role: str, content: str, **details: Any) -> history.Message:
        where = {"conversation_id": self.conversation_id, "now_seconds": 1.0}
        message: history.Message = await self.db.write(
            partial(history.add_message, role=role, content=content, **where), self.account_id
        )
        if role == "assistant":
            await self.db.write(answers.add, self.account_id, message.id, [])
            await self.db.write(answers.update, self.account_id, message.id, AnswerDetails(**details))
        self.made.append(message)
        return message

    async def view(self, *said: str) -> View:
        messages = [{"role": "assistant", "content": text} for text in said] + [{"role": "user", "content": "x"}]

        def read(conn: sqlite3.Connection) -> View:
            conversation = conversations.TABLE.by_id(conn, self.account_id, self.conversation_id)
            return model_view.view_before(conn, conversation, messages, [*said, "x"])

        found: View = await self.db.read(read)
        return found

    async def first(self, answer: history.Message, count: int) -> str | None:
        where = (self.account_id, self.conversation_id, answer.number)
        found: str | None = await self.db.read(model_view.first_message, *where, count)
        return found


@pytest.fixture
async def talk(service: Service) -> Talk:
    session = await service.sign_up()
    made = await service.client.post("/conversations", json={}, headers=bearer(session["access_token"]))
    talk = Talk(service, session["user"]["id"])
    talk.conversation_id = made.json()["id"]
    for role, content in SAID:
        await talk.add(role, content)
    await talk.add("assistant", "due", context_tokens=40)
    await talk.add("user", "three")
    await talk.add("assistant", "tre", context_tokens=50, first_sent_message_id=talk.made[4].id)
    return talk


async def test_first_message_is_counted_back_without_blank_and_system_messages(talk: Talk) -> None:
    answer = talk.made[7]
    firsts = [await talk.first(answer, count) for count in range(7)]
    ids = [message.id for message in talk.made]
    assert firsts == [None, ids[6], ids[5], ids[4], ids[1], ids[0], None]


async def test_view_is_that_of_the_last_answer_of_the_request(talk: Talk) -> None:
    assert await talk.view("uno", "due") == View(40, 0)
    assert await talk.view("due", "tre") == View(50, 4)  # two, due, three, tre
    assert await talk.view("tre", "another") == View()
    assert await talk.view() == View()
