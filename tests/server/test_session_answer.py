"""Answers of session chats over HTTP: stored while they are generated, followed, stopped, and ended once."""

import asyncio
import contextlib
import dataclasses
import shutil
import socket
from collections.abc import AsyncIterator
from functools import partial

import orjson
import pytest

from svc.billing import wallet
from svc.config import Config
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.support.databases import read_only
from tests.support.loop_clock import advance_loop
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, rows
from tests.support.session_chats import CHAT, CONTINUE, GOES_ON, HEADER, LONG, Chat, payloads, text_of
from tests.support.waiting import until
from tests.support.wire import Sockets, listening_sockets

PRICES = "input_micros_per_million_tokens = 1_000_000\noutput_micros_per_million_tokens = 2_000_000\n"
TOOLS = [{"type": "function", "function": {"name": "look_up"}}]
REFUSING = "no-ids+refusal+silent-after-2-chunks"
MODELS = ("ok", "endless", "silent", "drip-100ms+reasoning", REFUSING)


@pytest.fixture
async def server(service: Service) -> AsyncIterator[Sockets]:
    async with listening_sockets(service.app) as wire:
        yield wire


@contextlib.asynccontextmanager
async def chatting(service: Service, server: Sockets) -> AsyncIterator[Chat]:
    async with server.client(headers=await service.bearer(), timeout=30) as client:
        yield Chat(client)


@pytest.fixture
async def chat(service: Service, server: Sockets) -> AsyncIterator[Chat]:
    async with chatting(service, server) as chat:
        yield chat


async def test_question_and_text_so_far_are_stored_during_the_answer(service: Service, chat: Chat) -> None:
    database, room = service.config.data_dir / "service.db", "SELECT bytes FROM reserved_room"
    async with chat.streamed(LONG):
        assert [bytes > 0 for (bytes,) in rows(database, room)] == [True], "the text has room until it is stored"
        said, question = (await chat.get(f"/conversations/{chat.id}/messages"))["data"]
        assert (question["content"], question["status"], question["finish_reason"]) == (LONG, "complete", None)
        assert (said["role"], said["status"], said["model"]) == ("assistant", "in_progress", "builtin/script")
        (listed,) = (await chat.get("/conversations"))["data"]
        assert listed["answering"] and await chat.answering() and listed["title"].startswith("say Hello")
        advance_loop(1.5)
        await until(lambda: "Hello zebra" in {content for *_, content in stored(service.config)})
        assert (await chat.answer())["content"] == "Hello zebra"
    said = await chat.ended()
    assert rows(database, room) == []
    assert (said["content"], said["status"], said["finish_reason"], said["error"]) == (
        "Hello zebra",
        "stopped",
        None,
        None,
    )


@pytest.mark.parametrize("stream", [False, True])
async def test_of_two_questions_at_once_one_is_refused(chat: Chat, stream: bool) -> None:
    conversation = (await chat.ask("say one")).headers[HEADER]
    answers = await asyncio.gather(*(chat.ask("wait 500\nsay two", conversation, stream=stream) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
    refused = next(answer for answer in answers if answer.status_code == 409)
    assert refused.json()["error"]["code"] == "already_active" and refused.headers["x-should-retry"] == "false"
    said = (await chat.get(f"/conversations/{conversation}/messages"))["data"]
    assert [one["content"] for one in said] == ["two", "wait 500\nsay two", "one", "say one"]
    assert (await chat.ask("say three", conversation, stream=stream)).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_complete_answer_has_its_status_and_finish_reason(chat: Chat, stream: bool) -> None:
    chat.id = (await chat.ask("say cut\nlength", stream=stream)).headers[HEADER]
    said = await chat.ended()
    assert (said["content"], said["status"], said["finish_reason"], said["error"]) == (
        "cut",
        "complete",
        "length",
        None,
    )
    export = (await chat.client.get(f"/conversations/{chat.id}/export")).text
    assert "Z\n\ncut\n" in export and "complete" not in export


async def test_service_refusal_stores_nothing(chat: Chat) -> None:
    wrong = [{"messages": []}, {"model": "no/such"}, {"model": "builtin/assistant-paid"}]
    assert [(await chat.ask("x", **fields)).status_code for fields in wrong] == [400, 404, 402]
    assert (await chat.get("/conversations"))["data"] == []


@pytest.mark.parametrize("continues", ["false", "true"])
async def test_stop_ends_the_answer_for_all_who_read_it(chat: Chat, continues: str) -> None:
    async with chat.streamed(LONG, **{CONTINUE: continues}) as own, chat.followed() as other:
        stopped = await chat.client.post(f"/conversations/{chat.id}/stop")
        assert (stopped.status_code, stopped.json()["id"], stopped.json()["answering"]) == (202, chat.id, True)
        for chunks in (own, other):
            last, done = [chunk async for chunk in chunks][-2:]
            assert (last["choices"][0]["finish_reason"], last["status"], done) == ("stop", "stopped", "[DONE]")
        said = await chat.answer()
        assert (said["content"], said["status"]) == ("Hello zebra", "stopped")
        again = await chat.client.post(f"/conversations/{chat.id}/stop")
        assert (again.status_code, again.json()["error"]["code"]) == (409, "already_ended")
        assert (await chat.client.get(f"/conversations/{chat.id}/stream")).status_code == 404


async def test_stop_while_the_client_does_not_read_ends_its_stream_as_well(server: Sockets, chat: Chat) -> None:
    messages = [{"role": "user", "content": "say Hello\nrepeat 400 say " + "x" * 2_000}]
    body = orjson.dumps({"model": "builtin/script", "stream": True, "messages": messages})
    head = f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: {chat.client.headers['authorization']}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    reader = slow_reader(server)
    reader.sendall(head.encode() + body)
    async with asyncio.timeout(5):
        while not (found := await chat.get("/conversations"))["data"]:
            await asyncio.sleep(0.01)
    chat.id = found["data"][0]["id"]
    await until(lambda: any(connection.outgoing()[0] for connection in server.connections))
    assert (await chat.client.post(f"/conversations/{chat.id}/stop")).status_code == 202
    assert (await chat.ended())["status"] == "stopped"
    received = await asyncio.to_thread(lambda: b"".join(iter(partial(reader.recv, 1 << 16), b"")))
    assert received.count(b'"status":"stopped"') == received.count(b"data: [DONE]") == 1 and b'"error"' not in received
    reader.close()


async def test_stopped_json_answer_has_its_text_so_far(chat: Chat) -> None:
    chat.id = (await chat.ask("say one")).headers[HEADER]
    asked = asyncio.create_task(chat.ask(LONG, chat.id))
    await chat.until_answering()
    assert (await chat.client.post(f"/conversations/{chat.id}/stop")).status_code == 202
    answer = (await asked).json()
    choice, said = answer["choices"][0], await chat.answer()
    assert (choice["message"]["content"], choice["finish_reason"], answer["status"]) == (
        said["content"],
        "stop",
        "stopped",
    )
    assert said["status"] == "stopped" and answer["usage"]["prompt_tokens"] > 0


async def test_stopped_json_answer_names_its_cost(paid: tuple[Chat, ModelServer]) -> None:
    chat, _ = paid
    chat.id = (await chat.ask("hello?", model="lab/ok")).headers[HEADER]
    asked = asyncio.create_task(chat.ask("hello?", chat.id, model="lab/silent"))
    await chat.until_answering()
    assert (await chat.client.post(f"/conversations/{chat.id}/stop")).status_code == 202
    cost_micros = int((await asked).headers["x-service-cost-micros"])
    assert cost_micros == (await chat.answer())["answer"]["cost_micros"] > 0


async def test_continued_answer_goes_on_without_its_client(chat: Chat) -> None:
    async with chat.streamed("say Hello\nwait 500\nsay  again\nwait 100\nsay  and again", **GOES_ON):
        pass
    assert await chat.answering()
    async with chat.followed() as chunks:
        texts = [chunk async for chunk in chunks]
    first, last, done = texts[0], texts[-2], texts[-1]
    assert (
        first["choices"][0]["delta"] == {"role": "assistant", "content": "Hello"} and first["model"] == "builtin/script"
    )
    assert len({chunk["id"] for chunk in texts[:-1]}) == 1 and text_of(texts[:-1]) == "Hello again and again"
    assert (last["choices"][0]["finish_reason"], done) == ("stop", "[DONE]") and "status" not in last
    said = await chat.answer()
    assert (said["content"], said["status"], said["finish_reason"]) == ("Hello again and again", "complete", "stop")


async def test_client_of_a_continued_answer_gets_it_as_a_stream(chat: Chat) -> None:
    headers = {"x-service-continue": "true"}
    body = {"model": "builtin/script", "stream": True, "stream_options": {"include_usage": True}}
    call = 'say Look:\ntool look_up {"city": "Paris"}'
    body["messages"] = [{"role": "user", "content": call}]
    body["tools"] = TOOLS
    async with chat.client.stream("POST", CHAT, json=body, headers=headers) as answer:
        *chunks, last, usage, done = [chunk async for chunk in payloads(answer)]
    assert text_of(chunks) == "Look:" and done == "[DONE]" and last["choices"][0]["finish_reason"] == "tool_calls"
    (called,) = [one for chunk in chunks for one in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert (called["index"], called["function"]["name"], called["type"]) == (0, "look_up", "function")
    assert usage["choices"] == [] and usage["usage"]["completion_tokens"] > 0


async def test_fault_of_a_continued_answer_is_a_status_or_the_last_event(chat: Chat) -> None:
    refused = await chat.ask("fail 503 busy", stream=True, headers=GOES_ON)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "upstream_error")
    chat.id = refused.headers[HEADER]
    assert (await chat.ended())["status"] == "failed"
    export = (await chat.client.get(f"/conversations/{chat.id}/export")).text
    assert "failed\n\n" + refused.json()["error"]["message"] in export
    wrong = await chat.ask("say x", stream=True, headers={CONTINUE: "yes"})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, CONTINUE)
    async with chat.streamed("say Hello\nwait 300\nfail 500 oops", **GOES_ON) as chunks:
        error, _done = [chunk async for chunk in chunks]
    said = await chat.ended()
    assert (said["content"], said["status"], said["error"]["code"]) == ("Hello", "failed", error["error"]["code"])


async def test_json_answer_can_be_followed(chat: Chat) -> None:
    chat.id = (await chat.ask("say one")).headers[HEADER]
    asked = asyncio.create_task(chat.ask("wait 500\nsay Hello\ntool look_up {}", chat.id, tools=TOOLS))
    await chat.until_answering()
    async with chat.followed() as chunks:
        opening, text, calls, last, done = [chunk async for chunk in chunks]
    assert opening["choices"][0]["delta"] == {"role": "assistant", "content": ""} and text_of([text]) == "Hello"
    assert calls["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] == "look_up"
    assert (last["choices"][0]["finish_reason"], done) == ("tool_calls", "[DONE]")
    assert (await asked).json()["id"] == last["id"]


async def test_account_has_at_most_four_continued_answers(chat: Chat) -> None:
    ids = []
    for _ in range(4):
        async with chat.streamed(LONG, **GOES_ON):
            ids.append(chat.id)
    refused = await chat.ask(LONG, stream=True, headers=GOES_ON)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    assert len((await chat.get("/conversations"))["data"]) == 4
    for conversation in ids:
        assert (await chat.client.post(f"/conversations/{conversation}/stop")).status_code == 202
    chat.id = ids[-1]
    await chat.ended()
    assert (await chat.ask("say ok", stream=True, headers=GOES_ON)).status_code == 200


@pytest.mark.parametrize("continues", ["false", "true"])
async def test_deletion_of_the_conversation_ends_the_answer(service: Service, chat: Chat, continues: str) -> None:
    async with chat.streamed(LONG, **{CONTINUE: continues}) as own, chat.followed() as other:
        assert (await chat.client.delete(f"/conversations/{chat.id}")).status_code == 204
        for chunks in (own, other):
            last, done = [chunk async for chunk in chunks][-2:]
            assert (last["status"], done) == ("stopped", "[DONE]")
    assert (await chat.get("/conversations"))["data"] == []
    assert (
        rows(service.config.data_dir / "service.db", "SELECT 1 FROM messages WHERE conversation_id = ?", chat.id) == []
    )


@pytest.mark.parametrize("continues", ["false", "true"])
async def test_deletion_of_the_account_ends_its_answers(service: Service, chat: Chat, continues: str) -> None:
    whole = asyncio.create_task(chat.ask("wait 60000"))
    async with chat.streamed(LONG, **{CONTINUE: continues}) as own, chat.followed() as other:
        gone = await chat.client.request("DELETE", "/user/me", json={"password": PASSWORD})
        assert gone.status_code == 204
        for chunks in (own, other):
            error, done = [chunk async for chunk in chunks][-2:]
            assert (error["error"]["code"], done) == ("invalid_api_key", "[DONE]")
    refused = await whole
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
    assert HEADER not in refused.headers, "there is no such conversation any more"
    assert_exact(service.config.data_dir / "service.db")


async def test_answer_that_is_stopped_before_its_first_text_is_an_empty_stream(chat: Chat) -> None:
    chat.id = (await chat.ask("say one")).headers[HEADER]
    asked = asyncio.create_task(chat.ask("wait 60000", chat.id, stream=True, headers=GOES_ON))
    await chat.until_answering()
    assert (await chat.client.post(f"/conversations/{chat.id}/stop")).status_code == 202
    answer = await asked
    assert answer.status_code == 200 and answer.text.count('"status":"stopped"') == 1
    assert answer.text.endswith("data: [DONE]\n\n") and '"error"' not in answer.text
    said = await chat.ended()
    assert (said["content"], said["status"]) == ("", "stopped")


async def test_any_number_of_readers_get_the_whole_text_whenever_they_come(chat: Chat) -> None:
    async with chat.streamed("say Begin\nrepeat 50 say  word\nwait 500\nrepeat 50 say  more", **GOES_ON):
        pass

    async def read(late_seconds: float) -> str:
        await asyncio.sleep(late_seconds)
        async with chat.followed() as chunks:
            found = [chunk async for chunk in chunks]
        assert found[-1] == "[DONE]"
        return text_of(found[:-1])

    texts = await asyncio.gather(*(read(number / 50) for number in range(20)))
    assert set(texts) == {"Begin" + " word" * 50 + " more" * 50}


async def test_reader_that_stops_reading_does_not_hold_the_answer(server: Sockets, chat: Chat) -> None:
    line = "say " + "x" * 2_000
    async with chat.streamed(f"say Hello\nwait 500\nrepeat 600 {line}", **GOES_ON):
        pass
    stalled_reader = slow_reader(server)
    request = f"GET /conversations/{chat.id}/stream HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    stalled_reader.sendall(f"{request}authorization: {chat.client.headers['authorization']}\r\n\r\n".encode())
    while await chat.answering():  # not `ended`, which reads all of the text
        await asyncio.sleep(0.02)
    said = await chat.answer()
    assert said["status"] in ("complete", "failed") and len(said["content"]) == 1_000_000
    stalled_reader.close()


async def test_head_of_an_answer_in_progress_does_not_wait_for_its_end(chat: Chat) -> None:
    async with chat.streamed(LONG, **GOES_ON):
        pass
    async with asyncio.timeout(5):
        head = await chat.client.head(f"/conversations/{chat.id}/stream")
        assert (head.status_code, head.headers["content-type"]) == (200, "text/event-stream")
        assert await chat.answering()


async def test_continued_answer_has_one_choice(chat: Chat) -> None:
    refused = await chat.ask("say x", stream=True, n=2, headers=GOES_ON)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "n")
    assert (await chat.get("/conversations"))["data"] == []
    assert (await chat.ask("say x", n=2, headers=GOES_ON)).status_code == 200


async def test_api_keys_may_follow_and_stop_but_not_others(service: Service, chat: Chat) -> None:
    stranger = await service.bearer()
    of_stranger = bearer((await service.make_key(stranger))["key"])
    session = {"authorization": chat.client.headers["authorization"]}
    own = bearer((await service.make_key(session))["key"])
    async with chat.streamed(LONG, **GOES_ON):
        path = f"/conversations/{chat.id}"
        assert (await chat.client.get(f"{path}/stream", headers=of_stranger)).status_code == 404
        assert (await chat.client.post(f"{path}/stop", headers=stranger)).status_code == 404
        async with chat.client.stream("GET", f"{path}/stream", headers=own) as answer:
            assert (await chat.client.post(f"{path}/stop", headers=own)).status_code == 202
            assert [chunk async for chunk in payloads(answer)][-1] == "[DONE]"


async def test_stop_at_the_moment_of_the_end_agrees_with_what_is_stored(chat: Chat) -> None:
    chat.id = (await chat.ask("say one")).headers[HEADER]
    for wait in range(0, 40, 4):
        asked = asyncio.create_task(chat.ask(f"say a\nwait {wait}\nsay b", chat.id, stream=True))
        await asyncio.sleep(wait / 1000)
        stop = (await chat.client.post(f"/conversations/{chat.id}/stop")).status_code
        answer, said = await asked, await chat.ended()
        sent = ["stopped"] if '"status":"stopped"' in answer.text else ["complete"]
        assert [said["status"]] == sent and stop in ((202,) if sent == ["stopped"] else (202, 409))
        assert answer.text.count('"finish_reason":"stop"') == 1 and answer.text.endswith("data: [DONE]\n\n")


async def test_suspension_ends_answers_with_an_error(service: Service, server: Sockets) -> None:
    admin = await service.bearer()
    async with chatting(service, server) as chat, chat.streamed(LONG, **GOES_ON) as own:
        path = f"/admin/users/{(await chat.get('/user/me'))['id']}"
        changed = await service.client.patch(path, json={"status": "suspended"}, headers=admin)
        assert changed.status_code == 200, changed.text
        error, done = [chunk async for chunk in own][-2:]
        assert (error["error"]["code"], done) == ("account_suspended", "[DONE]")
        assert (await chat.client.get("/user/me")).status_code == 403
        assert (await service.client.patch(path, json={"status": "active"}, headers=admin)).status_code == 200
        assert (await chat.ended())["status"] == "stopped"


@pytest.fixture
async def upstream() -> AsyncIterator[ModelServer]:
    async with ModelServer() as upstream:
        yield upstream


@pytest.fixture
async def priced(config: Config, clocks: Clocks, upstream: ModelServer) -> AsyncIterator[Service]:
    """The service in front of a model server with prices."""
    models = "".join(f'[[providers.models]]\nid = "{name}"\n{PRICES}' for name in MODELS)
    free = '[[providers.models]]\nid = "silent+free"\n'
    catalog = f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\n{models}{free}'
    async with serving(config, clocks, catalog) as service:
        yield service
        assert_exact(config.data_dir / "service.db")


@pytest.fixture
async def paid(priced: Service, upstream: ModelServer) -> AsyncIterator[tuple[Chat, ModelServer]]:
    """A person with 10,000 micros."""
    async with listening_sockets(priced.app) as server, chatting(priced, server) as chat:
        account_id = (await chat.get("/user/me"))["id"]
        await priced.state["db"].write(wallet.book, account_id, 10_000, description="", now_seconds=priced.clocks.now)
        yield chat, upstream


async def test_continued_answer_is_paid_in_full_and_has_its_reasoning(paid: tuple[Chat, ModelServer]) -> None:
    chat, upstream = paid
    async with chat.streamed("hello?", model="lab/drip-100ms+reasoning", **GOES_ON):
        pass
    async with chat.followed() as chunks:
        found = [chunk async for chunk in chunks]
    deltas = [chunk["choices"][0]["delta"] for chunk in found[:-1]]
    said = await chat.answer()
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == said["answer"]["reasoning"] != ""
    assert text_of(found[:-1]) == said["content"] == "Hello, world!" and said["status"] == "complete"
    assert said["answer"]["cost_micros"] == 7 * 1 + 5 * 2 and not upstream.requests[-1].gone.is_set()
    assert (await chat.get("/billing/account"))["wallet_balance_micros"] == 10_000 - 17


async def test_later_reader_gets_a_refusal_from_its_beginning(paid: tuple[Chat, ModelServer]) -> None:
    chat, _ = paid
    async with chat.streamed("May I?", model=f"lab/{REFUSING}", **GOES_ON), chat.followed() as later:
        found = ""
        async with asyncio.timeout(5):
            while found != "Hello, ":
                found += text_of([await anext(later)])
        assert (await chat.client.post(f"/conversations/{chat.id}/stop")).status_code == 202
        assert text_of([chunk async for chunk in later if chunk != "[DONE]"]) == ""
    message = await chat.ended()
    assert (message["content"], message["status"]) == ("Hello, ", "stopped")


async def test_stopped_answer_is_paid_as_far_as_it_was_produced(paid: tuple[Chat, ModelServer]) -> None:
    chat, upstream = paid
    async with chat.streamed("hello?", model="lab/endless", **GOES_ON) as chunks:
        assert (await chat.client.post(f"/conversations/{chat.id}/stop")).status_code == 202
        assert [chunk async for chunk in chunks][-1] == "[DONE]"
    said, account = await chat.answer(), await chat.get("/billing/account")
    assert said["answer"]["cost_micros"] == 10_000 - account["wallet_balance_micros"] > 0 == account["held_micros"]
    await asyncio.wait_for(upstream.requests[-1].gone.wait(), 20)


async def test_empty_wallet_stores_no_question(paid: tuple[Chat, ModelServer]) -> None:
    chat, upstream = paid
    for headers in ({}, GOES_ON):
        refused = await chat.ask("x" * 20_000, model="lab/ok", stream=True, headers=headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (402, "insufficient_funds")
    assert (await chat.get("/conversations"))["data"] == [] and upstream.requests == []


async def test_storage_fault_at_the_end_is_an_error_and_the_answer_is_stored_later(
    service: Service, chat: Chat
) -> None:
    for headers in ({}, GOES_ON):
        text = "say Hello\nwait 300\nsay " + "x" * 50_000
        async with chat.streamed(text, **headers) as chunks, read_only(service.state["db"]):
            error, done = [chunk async for chunk in chunks][-2:]
            assert (error["error"]["code"], done) == ("storage_unavailable", "[DONE]")
            assert (await chat.answer())["status"] == "in_progress"
            assert (await chat.client.post(f"/conversations/{chat.id}/stop")).status_code == 409
        advance_loop(2)  # then it is stored
        said = await chat.ended()
        assert (said["status"], said["error"]["code"]) == ("failed", "storage_unavailable")
        assert said["finish_reason"] is None, "it is not complete"
        assert said["content"] == "Hello" + "x" * 50_000


def stored(config: Config) -> list[tuple[str, str, str]]:
    """The conversation, status and content of each answer."""
    query = "SELECT conversation_id, status, content FROM messages WHERE role = 'assistant'"
    return rows(config.data_dir / "service.db", query)


async def test_shutdown_interrupts_answers_and_tells_their_readers(
    service: Service, server: Sockets, chat: Chat, config: Config
) -> None:
    async with chat.streamed(LONG, **GOES_ON):
        pass
    async with chat.followed() as other, Chat(chat.client).streamed(LONG) as own:
        service.state["drain"].begin()
        for chunks in (own, other):
            *before, last, done = [chunk async for chunk in chunks]
            assert (last["error"]["code"], done) == ("shutting_down", "[DONE]")
            assert not any(choice["finish_reason"] for chunk in before for choice in chunk["choices"])
    await until(lambda: not len(service.state["drain"]))
    assert [(status, content) for _, status, content in stored(config)] == [("interrupted", "Hello zebra")] * 2

    def logged() -> list[tuple[str, str]]:
        lines = map(orjson.loads, (config.data_dir.parent / "log").read_text().splitlines())
        return [(line["level"], line["model"]) for line in lines if line["event"] == "answer"]

    await until(lambda: logged() == [("info", "builtin/script")])
    assert_exact(config.data_dir / "service.db")


async def test_shutdown_before_any_text_is_503_with_the_conversation(
    priced: Service, paid: tuple[Chat, ModelServer]
) -> None:
    chat, models = paid
    asked = [
        asyncio.create_task(chat.ask("hello?", model="lab/silent+free", stream=True, headers=headers))
        for headers in ({}, GOES_ON)
    ]
    await until(lambda: len(models.requests) == 2)
    priced.state["drain"].begin()
    answers = await asyncio.gather(*asked)
    for answer in answers:
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "shutting_down")
    assert sorted(stored(priced.config)) == sorted((answer.headers[HEADER], "interrupted", "") for answer in answers)


async def test_after_a_crash_answers_are_interrupted_with_their_text_and_found_by_their_words(
    chat: Chat, config: Config, clocks: Clocks
) -> None:
    """The next start reads the files as a kill leaves them during an answer."""
    left = dataclasses.replace(config, data_dir=config.data_dir.parent / "left")
    async with chat.streamed(LONG):
        advance_loop(1.5)
        await until(lambda: any(content for *_, content in stored(config)))
        shutil.copytree(config.data_dir, left.data_dir, ignore=shutil.ignore_patterns("status"))
    async with (
        serving(left, clocks) as service,
        listening_sockets(service.app) as server,
        server.client(headers=chat.client.headers) as client,
    ):
        again = Chat(client, chat.id)
        said = await again.ended()
        assert (said["content"], said["status"], said["answer"]["cost_micros"]) == ("Hello zebra", "interrupted", 0)
        assert "interrupted" in (await client.get(f"/conversations/{chat.id}/export")).text
        (found,) = (await again.get("/conversations?q=zebra"))["data"]
        assert said["id"] in [match["message_id"] for match in found["matches"]]
        assert (await again.ask("say more", chat.id)).status_code == 200
    assert_exact(left.data_dir / "service.db")


def slow_reader(server: Sockets) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
    connection.connect(server.address)
    return connection
