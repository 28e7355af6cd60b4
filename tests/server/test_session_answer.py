"""Answers of session chats on the real server process: stored while they are generated, and ended once."""

import asyncio
import contextlib
import resource
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.support.connections import connected
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, rows
from tests.support.people import PASSWORD, Person, another_person, command
from tests.support.server import RunningServer, running_server, running_server_sync
from tests.support.waiting import until

CHAT, HEADER = "/v1/chat/completions", "x-service-conversation"
CONTINUE = "x-service-continue"
GOES_ON = {CONTINUE: "true"}
PRICES = "input_micros_per_million_tokens = 1_000_000\noutput_micros_per_million_tokens = 2_000_000\n"
TOOLS = [{"type": "function", "function": {"name": "look_up"}}]
REFUSING = "no-ids+refusal+silent-after-2-chunks"
MODELS = ("ok", "endless", "silent", "drip-100ms+reasoning", REFUSING)
LONG = "say Hello zebra\nwait 60000\nsay never"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server_sync(tmp_path_factory.mktemp("answers")) as server:
        yield server


@dataclass
class Chat:
    """A person who chats. `id` is the conversation of the last answer."""

    client: httpx.AsyncClient
    person: Person
    id: str = ""
    chunks: list[Any] = field(default_factory=list)  # of the stream that is being read

    async def ask(
        self, text: str, conversation: str | None = None, headers: dict[str, str] | None = None, **fields: Any
    ) -> httpx.Response:
        headers = {**(headers or {}), **({HEADER: conversation} if conversation else {})}
        body = {"model": "builtin/script", "messages": [{"role": "user", "content": text}], **fields}
        return await self.client.post(CHAT, json=body, headers=headers)

    @contextlib.asynccontextmanager
    async def streamed(
        self, text: str, conversation: str | None = None, model: str = "builtin/script", **headers: str
    ) -> AsyncIterator[AsyncIterator[Any]]:
        """The chunks of a stream, after the first one with a text. The end of the block hangs up."""
        named = {HEADER: conversation} if conversation else {}
        body = {"model": model, "stream": True, "messages": [{"role": "user", "content": text}]}
        async with self.client.stream("POST", CHAT, json=body, headers={**headers, **named}) as answer:
            assert answer.status_code == 200, await answer.aread()
            self.id = answer.headers[HEADER]
            chunks = payloads(answer)
            async for chunk in chunks:
                if text_of([chunk]):
                    break
            yield chunks

    @contextlib.asynccontextmanager
    async def followed(self) -> AsyncIterator[AsyncIterator[Any]]:
        async with self.client.stream("GET", f"/conversations/{self.id}/stream") as answer:
            assert answer.status_code == 200, await answer.aread()
            yield payloads(answer)

    async def until_answering(self) -> None:
        async with asyncio.timeout(5):
            while not await self.answering():
                await asyncio.sleep(0.01)

    async def get(self, path: str) -> Any:
        answer = await self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def answering(self) -> bool:
        return bool((await self.get(f"/conversations/{self.id}"))["answering"])

    async def answer(self) -> dict[str, Any]:
        """The newest message."""
        message: dict[str, Any] = (await self.get(f"/conversations/{self.id}/messages"))["data"][0]
        return message

    async def ended(self) -> dict[str, Any]:
        """The newest message once it is not in progress."""
        async with asyncio.timeout(10):
            while (message := await self.answer())["status"] == "in_progress":
                await asyncio.sleep(0.02)
        assert not await self.answering()
        return message


async def payloads(answer: httpx.Response) -> AsyncIterator[Any]:
    """The payloads of a stream, `[DONE]` as itself."""
    async for line in answer.aiter_lines():
        if line.startswith("data: "):
            yield line[6:] if line == "data: [DONE]" else orjson.loads(line[6:])


def text_of(chunks: list[Any]) -> str:
    deltas = [choice["delta"] for chunk in chunks for choice in chunk.get("choices", ())]
    return "".join(delta.get(name) or "" for delta in deltas for name in ("content", "refusal"))


@contextlib.asynccontextmanager
async def chatting(server: RunningServer, person: Person | None = None) -> AsyncIterator[Chat]:
    person = person or await another_person(server)
    async with server.client(headers=person.session_headers, timeout=30) as client:
        yield Chat(client, person)


@pytest.fixture
async def chat(server: RunningServer) -> AsyncIterator[Chat]:
    async with chatting(server) as chat:
        yield chat


async def test_question_and_text_so_far_are_stored_during_the_answer(chat: Chat) -> None:
    async with chat.streamed(LONG):
        said, question = (await chat.get(f"/conversations/{chat.id}/messages"))["data"]
        assert (question["content"], question["status"], question["finish_reason"]) == (LONG, "complete", None)
        assert (said["role"], said["status"], said["model"]) == ("assistant", "in_progress", "builtin/script")
        (listed,) = (await chat.get("/conversations"))["data"]
        assert listed["answering"] and await chat.answering() and listed["title"].startswith("say Hello")
        async with asyncio.timeout(20):
            while (await chat.answer())["content"] != "Hello zebra":
                await asyncio.sleep(0.05)
    said = await chat.ended()
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


async def test_stop_while_the_client_does_not_read_ends_its_stream_as_well(server: RunningServer, chat: Chat) -> None:
    messages = [{"role": "user", "content": "say Hello\nrepeat 400 say " + "x" * 2_000}]
    body = orjson.dumps({"model": "builtin/script", "stream": True, "messages": messages})
    head = f"POST {CHAT} HTTP/1.1\r\nhost: {server.host}\r\nauthorization: Bearer {chat.person.session}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    reader = await connected(server, receive_buffer_bytes=16_384)
    reader.sendall(head.encode() + body)
    async with asyncio.timeout(5):
        while not (found := await chat.get("/conversations"))["data"]:
            await asyncio.sleep(0.01)
    chat.id = found["data"][0]["id"]
    await asyncio.sleep(0.2)  # the buffers fill up, so that a block waits
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
    async with chat.streamed("say Hello\nwait 1000\nsay  again\nwait 500\nsay  and again", **GOES_ON):
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
async def test_deletion_of_the_conversation_ends_the_answer(server: RunningServer, chat: Chat, continues: str) -> None:
    async with chat.streamed(LONG, **{CONTINUE: continues}) as own, chat.followed() as other:
        assert (await chat.client.delete(f"/conversations/{chat.id}")).status_code == 204
        for chunks in (own, other):
            last, done = [chunk async for chunk in chunks][-2:]
            assert (last["status"], done) == ("stopped", "[DONE]")
    assert (await chat.get("/conversations"))["data"] == []
    assert rows(server.data_dir / "service.db", "SELECT 1 FROM messages WHERE conversation_id = ?", chat.id) == []


async def test_deletion_of_the_account_ends_its_answers(server: RunningServer) -> None:
    async with chatting(server) as chat, chat.streamed(LONG, **GOES_ON) as own, chat.followed() as other:
        gone = await chat.client.request("DELETE", "/user/me", json={"password": PASSWORD})
        assert gone.status_code == 204
        for chunks in (own, other):
            error, done = [chunk async for chunk in chunks][-2:]
            assert (error["error"]["code"], done) == ("invalid_api_key", "[DONE]")
    assert_exact(server.data_dir / "service.db")


async def test_any_number_of_readers_get_the_whole_text_whenever_they_come(chat: Chat) -> None:
    async with chat.streamed("say Begin\nrepeat 200 say  word\nwait 800\nrepeat 200 say  more", **GOES_ON):
        pass

    async def read(late_seconds: float) -> str:
        await asyncio.sleep(late_seconds)
        async with chat.followed() as chunks:
            found = [chunk async for chunk in chunks]
        assert found[-1] == "[DONE]"
        return text_of(found[:-1])

    texts = await asyncio.gather(*(read(number / 50) for number in range(20)))
    assert set(texts) == {"Begin" + " word" * 200 + " more" * 200}


async def test_reader_that_stops_reading_does_not_hold_the_answer(server: RunningServer, chat: Chat) -> None:
    line = "say " + "x" * 2_000
    async with chat.streamed(f"say Hello\nwait 500\nrepeat 4000 {line}", **GOES_ON):
        pass
    stalled_reader = await connected(server, receive_buffer_bytes=16_384)
    request = f"GET /conversations/{chat.id}/stream HTTP/1.1\r\nhost: {server.host}\r\n"
    stalled_reader.sendall(f"{request}authorization: Bearer {chat.person.session}\r\n\r\n".encode())
    said = await chat.ended()
    assert said["status"] in ("complete", "failed") and len(said["content"]) == 1_000_000
    stalled_reader.close()


async def test_readers_that_do_not_read_hold_little_of_a_long_answer(tmp_path: Path) -> None:
    model = "script+silent-after-32-chunks"
    async with ModelServer(models=(model,)) as upstream:
        (tmp_path / "catalog.toml").write_text(f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\n')
        async with (
            running_server(tmp_path, {"SVC_CATALOG": str(tmp_path / "catalog.toml")}) as server,
            chatting(server) as chat,
        ):
            text = "\n".join(["say " + "\U0001f600" * 30_000] * 32)
            async with chat.streamed(text, model=f"lab/{model}", **GOES_ON) as chunks:
                async with asyncio.timeout(10):
                    while len(text_of(chat.chunks)) < 30 * 30_000:
                        chat.chunks.append(await anext(chunks))
            async with chat.followed() as followed:
                lengths = [len(text_of([await anext(followed)])) for _ in range(9)]
            assert max(lengths) <= 30_000
            before, readers = server.counts().rss_bytes, []
            for _ in range(40):
                readers.append(await connected(server, receive_buffer_bytes=16_384))
                request = f"GET /conversations/{chat.id}/stream HTTP/1.1\r\nhost: {server.host}\r\n"
                readers[-1].sendall(f"{request}authorization: Bearer {chat.person.session}\r\n\r\n".encode())
            for reader in readers:
                assert await asyncio.to_thread(reader.recv, 9) == b"HTTP/1.1 "
            assert server.counts().rss_bytes - before < 120_000_000
            for reader in readers:
                reader.close()


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


async def test_api_keys_may_follow_and_stop_but_not_others(server: RunningServer, chat: Chat) -> None:
    other = await another_person(server)
    async with chat.streamed(LONG, **GOES_ON):
        path = f"/conversations/{chat.id}"
        assert (await chat.client.get(f"{path}/stream", headers=other.headers)).status_code == 404
        assert (await chat.client.post(f"{path}/stop", headers=other.session_headers)).status_code == 404
        async with chat.client.stream("GET", f"{path}/stream", headers=chat.person.headers) as answer:
            assert (await chat.client.post(f"{path}/stop", headers=chat.person.headers)).status_code == 202
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


async def test_suspension_ends_answers_with_an_error(server: RunningServer) -> None:
    async with chatting(server) as chat, chat.streamed(LONG, **GOES_ON) as own:
        command(server, "user", "suspend", chat.person.email, "on")
        error, done = [chunk async for chunk in own][-2:]
        assert (error["error"]["code"], done) == ("account_suspended", "[DONE]")
        command(server, "user", "suspend", chat.person.email, "off")
        assert (await chat.ended())["status"] == "stopped"


@pytest.fixture
async def paid(tmp_path: Path) -> AsyncIterator[tuple[Chat, ModelServer]]:
    """A person with 10,000 micros in front of a priced model server."""
    async with ModelServer() as upstream:
        models = "".join(f'[[providers.models]]\nid = "{name}"\n{PRICES}' for name in MODELS)
        (tmp_path / "catalog.toml").write_text(
            f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\n{models}'
        )
        async with running_server(tmp_path, {"SVC_CATALOG": str(tmp_path / "catalog.toml")}) as server:
            async with chatting(server) as chat:
                command(server, "credit", chat.person.email, "0.01")
                yield chat, upstream
            assert_exact(server.data_dir / "service.db")


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


async def test_storage_fault_at_the_end_is_an_error_and_the_answer_is_stored_later(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, chatting(server) as chat:
        for headers in ({}, GOES_ON):
            async with chat.streamed("say Hello\nwait 300\nsay " + "x" * 50_000, **headers) as chunks:
                before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
                resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, before[1]))  # every write to a file fails now
                error, done = [chunk async for chunk in chunks][-2:]
                assert (error["error"]["code"], done) == ("storage_unavailable", "[DONE]")
                assert (await chat.answer())["status"] == "in_progress"
                assert (await chat.client.post(f"/conversations/{chat.id}/stop")).status_code == 409
                resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)
            said = await chat.ended()
            assert (said["status"], said["error"]["code"]) == ("failed", "storage_unavailable")
            assert said["content"] == "Hello" + "x" * 50_000


async def test_sigterm_interrupts_answers_and_tells_their_readers(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, chatting(server) as chat:
        whole = asyncio.create_task(chat.ask(LONG))
        async with chat.streamed(LONG, **GOES_ON):
            pass
        async with chat.followed() as other, chatting(server, chat.person) as second, second.streamed(LONG) as own:
            server.send_signal()
            for chunks in (own, other):
                *before, last, done = [chunk async for chunk in chunks]
                assert (last["error"]["code"], done) == ("shutting_down", "[DONE]")
                assert not any(choice["finish_reason"] for chunk in before for choice in chunk["choices"])
        assert (await whole).json()["error"]["code"] == "shutting_down"
        assert await server.wait() == 0
        found = rows(server.data_dir / "service.db", "SELECT status, content FROM messages WHERE role = 'assistant'")
        assert found == [("interrupted", "Hello zebra")] * 3
        lines = [line for line in server.log_lines() if line["event"] == "answer"]
        assert [(line["level"], line["model"]) for line in lines] == [("info", "builtin/script")]
    assert_exact(tmp_path / "data" / "service.db")


async def test_sigterm_before_any_text_is_503_with_the_conversation(tmp_path: Path) -> None:
    async with ModelServer() as models:
        catalog = f'[[providers]]\nname = "lab"\nbase_url = "{models.base_url}"\n[[providers.models]]\nid = "silent"\n'
        (tmp_path / "catalog.toml").write_text(catalog)
        settings = {"SVC_CATALOG": str(tmp_path / "catalog.toml")}
        async with running_server(tmp_path, settings) as server, chatting(server) as chat:
            plays: list[tuple[bool, dict[str, str]]] = [(False, {}), (True, {}), (True, GOES_ON)]
            asked = [
                asyncio.create_task(chat.ask("hello?", model="lab/silent", stream=stream, headers=headers))
                for stream, headers in plays
            ]
            async with asyncio.timeout(10):
                while len(models.requests) < len(plays):
                    await asyncio.sleep(0.01)
            assert await server.stop() == 0
            answers = await asyncio.gather(*asked)
        assert [(answer.status_code, answer.json()["error"]["code"]) for answer in answers] == [
            (503, "shutting_down")
        ] * len(plays)
        query = "SELECT conversation_id, status FROM messages WHERE role = 'assistant'"
        stored = rows(tmp_path / "data" / "service.db", query)
        assert sorted(stored) == sorted((answer.headers[HEADER], "interrupted") for answer in answers)


async def test_after_kill_9_answers_are_interrupted_with_their_text_and_found_by_their_words(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        async with chatting(server) as chat:
            person = chat.person
            with contextlib.suppress(httpx.TransportError):
                async with chat.streamed(LONG):
                    stored = "SELECT 1 FROM messages WHERE role = 'assistant' AND content <> ''"
                    await until(lambda: rows(server.data_dir / "service.db", stored))
                    server.kill()
        conversation = chat.id
    async with running_server(tmp_path) as server, chatting(server, person) as chat:
        chat.id = conversation
        said = await chat.ended()
        assert (said["content"], said["status"], said["answer"]["cost_micros"]) == ("Hello zebra", "interrupted", 0)
        assert "interrupted" in (await chat.client.get(f"/conversations/{chat.id}/export")).text
        (found,) = (await chat.get("/conversations?q=zebra"))["data"]
        assert said["id"] in [match["message_id"] for match in found["matches"]]
        assert (await chat.ask("say more", chat.id)).status_code == 200
    assert_exact(tmp_path / "data" / "service.db")


@pytest.mark.parametrize("seconds", [0.1, *(pytest.param(other, marks=pytest.mark.soak) for other in (0.02, 0.3))])
async def test_after_kill_9_at_any_moment_every_answer_has_ended_and_no_hold_is_left(
    tmp_path: Path, seconds: float
) -> None:
    text = "say Hello\n" + "wait 20\nsay  again\n" * 5
    async with running_server(tmp_path) as server, chatting(server) as chat:
        person = chat.person
        command(server, "credit", person.email, "5")
        asked = [
            asyncio.create_task(chat.ask(text, model=model, stream=number % 3 > 0, headers=headers))
            for number, model in enumerate(["builtin/script", "builtin/assistant-paid"] * 4)
            for headers in ({}, GOES_ON)
        ]
        await asyncio.sleep(seconds)
        server.kill()
        answers = await asyncio.gather(*asked, return_exceptions=True)
    async with running_server(tmp_path) as server, chatting(server, person) as chat:
        listed = (await chat.get("/conversations"))["data"]
        assert not any(conversation["answering"] for conversation in listed)
        whole = {
            answer.headers[HEADER]
            for answer in answers
            if isinstance(answer, httpx.Response) and answer.status_code == 200
        }
        assert whole <= {conversation["id"] for conversation in listed}
        for conversation in listed:
            said, question = (await chat.get(f"/conversations/{conversation['id']}/messages"))["data"]
            assert (question["role"], said["role"]) == ("user", "assistant") and said["status"] in (
                "complete",
                "interrupted",
            )
            assert said["status"] == "complete" or conversation["id"] not in whole
            assert (await chat.ask("say more", conversation["id"])).status_code in (200, 429)
    assert_exact(tmp_path / "data" / "service.db")
