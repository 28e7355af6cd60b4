"""Where a model's view of a conversation began, and what is known of the answer before a question."""

from functools import partial
from typing import Any

import pytest

from svc.content import answers, history, model_view
from svc.content.answers import AnswerDetails
from svc.content.model_view import Counted
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

    async def counted(self, *said: str, conversation_id: str | None = None) -> Counted:
        messages = [{"role": "assistant", "content": text} for text in said] + [{"role": "user", "content": "x"}]
        where = (self.account_id, conversation_id or self.conversation_id)
        found: Counted = await self.db.read(model_view.counted, *where, messages, [*said, "x"])
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


async def test_count_is_that_of_the_last_answer_of_the_request(talk: Talk) -> None:
    assert await talk.counted("uno", "due") == Counted(40, 0)
    assert await talk.counted("due", "tre") == Counted(50, 4)  # two, due, three, tre
    assert await talk.counted("tre", "another") == Counted()
    assert await talk.counted() == Counted()
    assert await talk.counted("tre", conversation_id="conv_none") == Counted()


async def test_answer_long_ago_is_not_sought(talk: Talk) -> None:
    for number in range(20):
        await talk.add("user", f"more {number}")
    assert await talk.counted("tre") == Counted()
