"""Summaries of what a model no longer gets: asked for, paid, stored, sent, changed, removed."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from svc.content.model_view import LeftOut
from svc.routes.summaries import ASKED, request_text
from tests.conftest import Service
from tests.routes.test_export import archive_of, lines
from tests.routes.test_long_chats import HEADER, Chat, chat, questions, service, upstream
from tests.support.cases import each
from tests.support.databases import read_only
from tests.support.loop_clock import advance_loop
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, rows
from tests.support.waiting import until

assert chat and service and upstream  # fixtures
SAID = "Hello, world!"  # what the model server says, also as a summary


async def long(chat: Chat, count: int = 14) -> Any:
    """Ask so many questions; return the last prompt."""
    for _ in range(count):
        sent = await chat.ask()
    assert questions(sent)[0] > 1
    return sent


async def summarize(chat: Chat, key: str | None = None) -> Any:
    path = f"/conversations/{chat.headers[HEADER]}/summarize"
    headers = {"authorization": chat.headers["authorization"], **({"idempotency-key": key} if key else {})}
    return await chat.service.client.post(path, headers=headers)


async def show(chat: Chat) -> Any:
    return (await chat.service.client.get(f"/conversations/{chat.headers[HEADER]}", headers=chat.headers)).json()


async def change(chat: Chat, summary: Any) -> Any:
    path = f"/conversations/{chat.headers[HEADER]}"
    return await chat.service.client.patch(path, json={"summary": summary}, headers=chat.headers)


async def test_summary_of_what_is_left_out_is_stored_and_sent_in_its_place(chat: Chat) -> None:
    sent = await long(chat)
    answer = await summarize(chat)
    assert answer.status_code == 200, answer.text
    first = questions(sent)[0]
    asked = chat.upstream.requests[-1].body["messages"]
    assert len(asked) == 1 and chat.upstream.requests[-1].body["max_tokens"] == 300
    assert [f"question {number} " in asked[0]["content"] for number in (1, first - 1, first)] == [True, True, False]
    stored = await chat.stored()
    place = [message["id"] for message in stored].index(stored[-1]["first_sent_message_id"])
    summary = answer.json()["summary"]
    assert summary == {"text": SAID, "up_to_message_id": stored[place - 1]["id"]}
    assert (await show(chat))["summary"] == summary
    sent = await chat.ask()
    assert f":\n{SAID}\n</system-reminder>\n\nquestion " in sent[0]["content"] and sent[0]["role"] == "user"
    assert sum(SAID in message["content"] for message in sent if message["role"] == "user") == 1
    assert sum(len(message["content"]) for message in sent) / 3 <= 1200 - 100


async def test_nothing_to_summarize_without_what_is_left_out(chat: Chat) -> None:
    await chat.ask()
    answer = await summarize(chat)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "nothing_to_summarize")
    assert (await show(chat))["summary"] is None
    made = await chat.service.client.post("/conversations", json={}, headers=chat.headers)
    chat.headers[HEADER] = made.json()["id"]
    assert (await summarize(chat)).json()["error"]["code"] == "nothing_to_summarize"
    chat.headers[HEADER] = "conv_01m3250v3vfsgzezy8ak224fj9"
    assert (await summarize(chat)).status_code == 404


async def test_next_summary_includes_the_earlier_one(chat: Chat) -> None:
    await long(chat)
    await summarize(chat)
    assert (await change(chat, {"text": "They spoke of zebras."})).status_code == 200
    sent = await long(chat, 6)
    assert "They spoke of zebras." in sent[0]["content"]
    assert (await summarize(chat)).status_code == 200
    asked = chat.upstream.requests[-1].body["messages"][0]["content"]
    assert "Summary of what came before: They spoke of zebras." in asked and "question 1 " not in asked
    assert f"question {int(sent[0]['content'].split('question ')[1].split()[0]) - 1} " in asked
    again = await summarize(chat)
    asked = chat.upstream.requests[-1].body["messages"][0]["content"]
    assert again.status_code == 200 and "zebras" not in asked and "question 1 " in asked


async def test_summary_can_be_edited_and_removed(chat: Chat) -> None:
    await long(chat)
    up_to = (await summarize(chat)).json()["summary"]["up_to_message_id"]
    for text in ("Edited.", "é" * 20_000):
        edited = await change(chat, {"text": text})
        assert edited.json()["summary"] == {"text": text, "up_to_message_id": up_to}
    for wrong in ({"text": ""}, {"text": "  \n"}, {"text": "x" * 20_001}, {"text": None}, {}, "text", 1, []):
        answer = await change(chat, wrong)
        assert answer.status_code == 400 and answer.json()["error"]["param"].startswith("summary"), wrong
    assert (await show(chat))["summary"]["text"] == "é" * 20_000
    assert (await change(chat, None)).json()["summary"] is None
    assert (await change(chat, None)).json()["summary"] is None
    answer = await change(chat, {"text": "New."})
    assert (answer.status_code, answer.json()["error"]["param"]) == (404, "summary")
    assert "<system-reminder>" not in (await chat.ask())[0]["content"]


async def test_new_conversation_has_no_summary(chat: Chat) -> None:
    body = {"title": "x", "summary": {"text": "Before."}}
    made = await chat.service.client.post("/conversations", json=body, headers=chat.headers)
    assert made.status_code == 201 and made.json()["summary"] is None


async def test_summary_is_not_sent_while_all_messages_are_or_on_another_branch(chat: Chat) -> None:
    await long(chat)
    await summarize(chat)
    chat.model = "lab/longer+no-usage"
    assert "<system-reminder>" not in str(await chat.ask())
    chat.model, chat.messages = "lab/no-usage", chat.messages[:2]
    replaced = (await chat.stored())[2]["id"]
    chat.headers["x-service-replaces"] = replaced
    await chat.ask(text="question 2 of another branch")
    del chat.headers["x-service-replaces"]
    sent = await long(chat)
    assert "<system-reminder>" not in str(sent)


async def test_stored_bytes_count_the_summary_and_full_accounts_get_none(chat: Chat) -> None:
    async def bytes_of() -> int:
        account = (await chat.service.client.get("/billing/account", headers=chat.headers)).json()
        return int(account["stored_bytes"])

    await long(chat)
    before = await bytes_of()
    await summarize(chat)
    assert await bytes_of() == before + len(SAID)
    await change(chat, None)
    assert await bytes_of() == before


async def test_export_has_the_summary_and_deletion_takes_it_along(chat: Chat) -> None:
    await long(chat)
    await summarize(chat)
    await change(chat, {"text": "xylophonist wandering"})
    (conversation,) = lines(await archive_of(chat.service, chat.headers), "conversations")
    assert "xylophonist wandering" in str(conversation["summary"])
    path = f"/conversations/{chat.headers[HEADER]}"
    assert (await chat.service.client.delete(path, headers=chat.headers)).status_code in (200, 204)
    assert (await chat.service.client.get(path, headers=chat.headers)).status_code == 404


# --- money


async def paid(service: Service, upstream: ModelServer) -> Chat:
    chat = await Chat(service, upstream, "lab/paid").begin(micros=1_000_000)
    await long(chat, 20)
    return chat


async def test_summary_costs_what_the_model_costs(service: Service, upstream: ModelServer) -> None:
    chat = await paid(service, upstream)
    answer = await summarize(chat)
    assert answer.status_code == 200, answer.text
    tokens = len(upstream.requests[-1].body["messages"][0]["content"]) // 4
    assert int(answer.headers["x-service-cost-micros"]) == tokens * 1 + 4 * 2
    assert_exact(service.config.data_dir / "service.db")
    entries = (await service.client.get("/billing/ledger", headers=chat.headers)).json()["data"]
    assert entries[0]["amount_micros"] == -(tokens + 8)


async def test_repeat_with_the_same_key_gets_the_same_summary_and_costs_nothing(
    service: Service, upstream: ModelServer
) -> None:
    chat = await paid(service, upstream)
    database = service.config.data_dir / "service.db"
    upstream.always = frozenset({"waits"})
    first = [asyncio.create_task(summarize(chat, "key")) for _ in range(2)]
    await until(lambda: upstream.waiting > 0)
    upstream.always = frozenset()
    upstream.release.set()
    answers = [*await asyncio.gather(*first), await summarize(chat, "key")]
    assert {answer.status_code for answer in answers} == {200} and len({answer.content for answer in answers}) == 1
    assert [answer.headers.get("x-service-replayed") for answer in answers].count("true") == 2
    assert {answer.headers[HEADER] for answer in answers} == {chat.headers[HEADER]}
    debits = "SELECT count(*) FROM ledger WHERE kind = 'debit' AND amount_micros < 0"
    before = rows(database, debits)[0][0]
    assert (await summarize(chat, "another")).headers.get("x-service-replayed") is None
    assert rows(database, debits)[0][0] == before + 1
    path = f"/conversations/{chat.headers[HEADER]}/summarize"
    headers = {"authorization": chat.headers["authorization"], "idempotency-key": "key"}
    other = await service.client.post(path, json={"x": 1}, headers=headers)
    assert (other.status_code, other.json()["error"]["code"]) == (409, "idempotency_mismatch")
    await service.client.delete(f"/conversations/{chat.headers[HEADER]}", headers=chat.headers)
    assert (await summarize(chat, "key")).json()["error"]["code"] == "answer_not_kept"


@each("key", [None, "key"])
async def test_summary_that_cannot_be_stored_costs_nothing(
    service: Service, upstream: ModelServer, key: str | None
) -> None:
    chat = await paid(service, upstream)
    before = (await service.client.get("/billing/account", headers=chat.headers)).json()
    upstream.always = frozenset({"waits"})
    asking = asyncio.create_task(summarize(chat, key))
    await until(lambda: upstream.waiting > 0)
    async with read_only(service.state["db"]):
        upstream.always = frozenset()
        upstream.release.set()
        answer = await asking
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "storage_unavailable")
    advance_loop(2)  # then it is settled
    await until(lambda: _is_exact(service.config.data_dir / "service.db"))
    assert (await service.client.get("/billing/account", headers=chat.headers)).json() == before
    assert (await show(chat))["summary"] is None
    assert (await summarize(chat, key)).status_code == 200


async def test_summary_of_a_conversation_that_was_deleted_meanwhile_is_sent_and_paid(
    service: Service, upstream: ModelServer
) -> None:
    chat = await paid(service, upstream)
    upstream.always = frozenset({"waits"})
    asking = asyncio.create_task(summarize(chat))
    await until(lambda: upstream.waiting > 0)
    await service.client.delete(f"/conversations/{chat.headers[HEADER]}", headers=chat.headers)
    upstream.release.set()
    assert (await asking).json()["summary"]["text"] == SAID
    assert_exact(service.config.data_dir / "service.db")


@each("command", ["status-500", "error-200", "cut-head", "status-400"])
async def test_failed_summary_costs_nothing_and_changes_nothing(
    service: Service, upstream: ModelServer, command: str
) -> None:
    chat = await paid(service, upstream)
    before = (await service.client.get("/billing/account", headers=chat.headers)).json()
    upstream.always = frozenset({command})
    answer = await summarize(chat)
    upstream.always = frozenset()
    assert answer.status_code >= 400
    assert (await service.client.get("/billing/account", headers=chat.headers)).json() == before
    assert_exact(service.config.data_dir / "service.db")
    assert (await show(chat))["summary"] is None


async def test_summary_without_funds_is_refused_before_the_model_is_asked(
    service: Service, upstream: ModelServer
) -> None:
    chat = await Chat(service, upstream, "lab/paid").begin(micros=16_000)
    await long(chat, 16)
    wallet = (await service.client.get("/billing/account", headers=chat.headers)).json()
    asked_before = len(upstream.requests)
    spent = 0
    while (answer := await summarize(chat)).status_code == 200 and spent < 40:
        chat.service.clocks.advance(60)
        spent, asked_before = spent + 1, len(upstream.requests)
    assert answer.status_code == 402, (answer.text, wallet)
    assert len(upstream.requests) == asked_before
    assert_exact(service.config.data_dir / "service.db")


async def test_client_that_disconnects_pays_once(service: Service, upstream: ModelServer) -> None:
    chat = await paid(service, upstream)
    upstream.always = frozenset({"waits"})
    running = asyncio.create_task(summarize(chat))
    await until(lambda: upstream.waiting > 0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    upstream.always = frozenset()
    upstream.release.set()
    database = service.config.data_dir / "service.db"
    await until(lambda: _is_exact(database))
    assert (await show(chat))["summary"] is None


def _is_exact(database: Any) -> bool:
    try:
        assert_exact(database)
    except AssertionError:
        return False
    return True


# --- what the model reads


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(max_size=300)), min_size=1, max_size=12),
    st.one_of(st.none(), st.text(min_size=1, max_size=300)),
    st.integers(0, 2000),
)
def test_request_for_a_summary_fits_and_long_messages_are_cut_first(
    messages: list[tuple[str, str]], summary: str | None, room_bytes: int
) -> None:
    asked = request_text(LeftOut("m", "msg", summary, messages), room_bytes)
    assert asked.startswith(ASKED)
    assert len(asked.encode()) - len(ASKED) <= max(room_bytes, 2 * (len(messages) + 1))
    whole = sum(len(f"{role}: {text}".encode("utf-8", "replace")) + 2 for role, text in messages)
    if summary is None and whole <= room_bytes:
        assert all(text in asked for _, text in messages)


def test_short_messages_stay_beside_a_long_one() -> None:
    messages = [("user", "short"), ("assistant", "x" * 10_000), ("user", "last")]
    asked = request_text(LeftOut("m", "msg", None, messages), 1000)
    assert "User: short" in asked and asked.endswith("User: last") and 900 < asked.count("x") < 1000
