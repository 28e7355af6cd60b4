"""What a session's chat does and a key's does not: it is kept in a conversation, and remembers."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from svc.billing import wallet
from svc.config import Config
from svc.content.memory import End
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.support.cases import each
from tests.support.local_server import local_server
from tests.support.model_server import ModelServer
from tests.support.money import rows
from tests.support.waiting import until
from tests.support.wire import listening

COMPLETIONS = "/v1/chat/completions"
HEADER, MEMORY = "x-service-conversation", "x-service-memory"
MODELS = (
    *("ok", "echo", "tools", "unicode", "halves", "status-500", "status-400", "error-mid-stream", "cut-after-1-chunks"),
    *("cut-after-3-chunks", "silent", "slow-300ms", "drip-100ms", "endless"),
)


@pytest.fixture
async def upstream() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


def catalog(upstream: ModelServer, timeout_seconds: float = 30.0) -> str:
    entries = "".join(f'[[providers.models]]\nid = "{name}"\n' for name in MODELS)
    entries += '[[providers.models]]\nid = "ok+paid"\ninput_micros_per_million_tokens = 1_000_000\n'
    head = f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\n'
    return f"{head}timeout_seconds = {timeout_seconds}\n{entries}"


@pytest.fixture
async def service(config: Config, clocks: Clocks, upstream: ModelServer) -> AsyncIterator[Service]:
    async with serving(config, clocks, catalog(upstream)) as service:
        yield service


@dataclass
class Lab:
    """A session in front of a model server that records what it is asked."""

    service: Service
    upstream: ModelServer
    headers: dict[str, str]
    account_id: str

    async def ask(self, text: Any, model: str = "ok", conversation: str | None = None, **fields: Any) -> httpx.Response:
        headers = self.headers if conversation is None else {**self.headers, HEADER: conversation}
        return await ask(self.service, headers, text, model, **fields)

    async def get(self, path: str) -> Any:
        answer = await self.service.client.get(path, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def said(self, conversation: str) -> list[tuple[str, str]]:
        """What a conversation holds, the oldest first."""
        messages = (await self.get(f"/conversations/{conversation}/messages"))["data"]
        return [(message["role"], message["content"]) for message in reversed(messages)]

    async def conversations(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = (await self.get("/conversations"))["data"]
        return listed

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The messages of the newest request that the model server got."""
        messages: list[dict[str, Any]] = self.upstream.requests[-1].body["messages"]
        return messages


async def ask(service: Service, headers: dict[str, str], text: Any, model: str = "ok", **fields: Any) -> httpx.Response:
    body = {"model": f"lab/{model}", "messages": [{"role": "user", "content": text}], **fields}
    return await service.client.post(COMPLETIONS, json=body, headers=headers)


def streamed(answer: httpx.Response) -> str:
    chunks = [orjson.loads(block[6:]) for block in answer.text.split("\n\n")[:-2]]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk.get("choices", ()))


async def lab_of(service: Service, upstream: ModelServer) -> Lab:
    session = await service.sign_up()
    return Lab(service, upstream, bearer(session["access_token"]), session["user"]["id"])


@pytest.fixture
async def lab(service: Service, upstream: ModelServer) -> Lab:
    return await lab_of(service, upstream)


# --- kept


@pytest.mark.parametrize("stream", [False, True])
async def test_chat_is_stored_in_a_new_titled_conversation(lab: Lab, stream: bool) -> None:
    answer = await lab.ask("What is\nthe plan?", stream=stream)
    assert answer.status_code == 200 and answer.headers[MEMORY] == "0"
    (conversation,) = await lab.conversations()
    assert conversation["id"] == answer.headers[HEADER] and conversation["title"] == "What is the plan?"
    user, assistant = (await lab.get(f"/conversations/{conversation['id']}/messages"))["data"][::-1]
    assert (user["role"], user["content"], user["model"]) == ("user", "What is\nthe plan?", None)
    assert (assistant["role"], assistant["content"], assistant["model"]) == ("assistant", "Hello, world!", "lab/ok")
    assert lab.sent == [{"role": "user", "content": "What is\nthe plan?"}]


@pytest.mark.parametrize("stream", [False, True])
async def test_chat_continues_in_the_conversation_of_the_header(lab: Lab, stream: bool) -> None:
    conversation = (await lab.ask("one")).headers[HEADER]
    lab.service.clocks.advance(5)
    answer = await lab.ask("two", conversation=conversation, stream=stream)
    assert answer.headers[HEADER] == conversation
    hello = ("assistant", "Hello, world!")
    assert await lab.said(conversation) == [("user", "one"), hello, ("user", "two"), hello]
    (shown,) = await lab.conversations()
    assert shown["title"] == "one" and shown["updated_at"] > shown["created_at"]


async def test_only_the_last_user_message_and_the_answer_are_stored(lab: Lab) -> None:
    parts = [
        {"type": "text", "text": "look:"},
        {"type": "image_url", "image_url": {"url": "data:,"}},
        {"type": "text", "text": "this"},
    ]
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "earlier"},
        {"role": "assistant", "content": "so it was"},
        {"role": "user", "content": parts},
    ]
    answer = await lab.ask("", messages=messages)
    assert await lab.said(answer.headers[HEADER]) == [("user", "look:\nthis"), ("assistant", "Hello, world!")]
    assert lab.sent == messages


@each("model", ["unicode", "halves"])
@each("stream", [False, True])
async def test_text_of_every_kind_is_stored_unchanged(lab: Lab, model: str, stream: bool) -> None:
    answer = await lab.ask("data: \u2028\0 🙂", model, stream=stream)
    text = streamed(answer) if stream else answer.json()["choices"][0]["message"]["content"]
    assert await lab.said(answer.headers[HEADER]) == [("user", "data: \u2028\0 🙂"), ("assistant", text)]


async def test_question_with_tool_calls_is_stored_once(lab: Lab) -> None:
    tools = [{"type": "function", "function": {"name": "look_up"}}]
    first = await lab.ask("look it up", "tools", tools=tools)
    conversation, message = first.headers[HEADER], first.json()["choices"][0]["message"]
    assert await lab.said(conversation) == [("user", "look it up"), ("assistant", "")]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "42"} for call in message["tool_calls"]]
    messages = [{"role": "user", "content": "look it up"}]
    for model in ("tools", "ok", "ok"):
        messages += [message, *results]
        await lab.ask("", model, messages=messages, conversation=conversation)
    texts = ["", "", "Hello, world!", "Hello, world!"]
    assert await lab.said(conversation) == [("user", "look it up"), *(("assistant", text) for text in texts)]
    newest = (await lab.get(f"/conversations/{conversation}/messages"))["data"][0]["id"]
    headers = {**lab.headers, HEADER: conversation, "x-service-replaces": newest}
    for further in (0, 1):  # the second request continues what the first one has begun in the place of the answer
        await ask(lab.service, headers, "", messages=messages)
        assert len(await lab.said(conversation)) == 5 + further
    await lab.ask("look it up", conversation=conversation)
    assert len(await lab.said(conversation)) == 8


@each("model", ["status-500", "status-400"])
@each("stream", [False, True])
async def test_fault_of_the_model_server_leaves_the_question_and_a_failed_answer(
    lab: Lab, model: str, stream: bool
) -> None:
    await check_failed_answer(lab, model, stream)


async def test_silent_model_server_leaves_the_question_and_a_failed_answer(
    config: Config, clocks: Clocks, upstream: ModelServer
) -> None:
    async with serving(config, clocks, catalog(upstream, timeout_seconds=0.1)) as service:
        for stream in (False, True):
            await check_failed_answer(await lab_of(service, upstream), "silent", stream)


async def check_failed_answer(lab: Lab, model: str, stream: bool) -> None:
    answer = await lab.ask("hello?", model, stream=stream)
    assert answer.status_code >= 400
    said, question = (await lab.get(f"/conversations/{answer.headers[HEADER]}/messages"))["data"]
    assert (question["content"], question["status"], question["error"]) == ("hello?", "complete", None)
    assert (said["content"], said["status"], said["finish_reason"]) == ("", "failed", None)
    assert said["error"] == {**answer.json()["error"], **said["error"]} and said["answer"]["cost_micros"] == 0
    assert said["error"]["request_id"] == answer.headers["x-request-id"]
    shown, *_ = await lab.conversations()
    assert (shown["title"], shown["answering"]) == ("hello?", False)


@each(("model", "kept"), [("cut-after-3-chunks", "Hello, "), ("error-mid-stream", "Hello"), ("cut-after-1-chunks", "")])
async def test_broken_stream_is_stored_as_far_as_sent(lab: Lab, model: str, kept: str) -> None:
    answer = await lab.ask("hello?", model, stream=True)
    assert answer.status_code == 200 and streamed(answer) == kept
    error = orjson.loads(answer.text.split("\n\n")[-3][6:])["error"]
    said, _ = (await lab.get(f"/conversations/{answer.headers[HEADER]}/messages"))["data"]
    assert (said["content"], said["status"]) == (kept, "failed") and said["error"] == {**error, **said["error"]}


async def test_paid_call_without_funds_stores_nothing(lab: Lab) -> None:
    answer = await lab.ask("hello?", "ok+paid")
    assert answer.status_code == 402 and HEADER not in answer.headers
    assert await lab.conversations() == [] and lab.upstream.requests == []


@pytest.mark.parametrize("stream", [False, True])
async def test_foreign_or_unknown_conversation_is_404_before_the_model_is_called(lab: Lab, stream: bool) -> None:
    db, now = lab.service.state["db"], lab.service.clocks.now
    await db.write(wallet.book, lab.account_id, 1_000_000, description="", now_seconds=now)
    theirs = (await ask(lab.service, await lab.service.bearer(), "mine")).headers[HEADER]
    lab.upstream.requests.clear()
    answers = [
        await lab.ask("x", "ok+paid", conversation=name, stream=stream)
        for name in (theirs, "conv_unknown", "conv_x; y")
    ]
    assert [answer.status_code for answer in answers] == [404] * 3
    assert answers[0].json() == answers[1].json() == answers[2].json()
    assert answers[0].json()["error"]["code"] == "not_found" and answers[0].json()["error"]["param"] == HEADER
    assert lab.upstream.requests == [] and await lab.conversations() == []
    assert (await lab.get("/billing/account"))["available_micros"] == 1_000_000


async def test_deleted_conversation_or_account_does_not_lose_the_answer(lab: Lab) -> None:
    conversation = (await lab.ask("one")).headers[HEADER]
    chat = asyncio.ensure_future(lab.ask("two", "slow-300ms", conversation=conversation))
    await until(lambda: len(lab.upstream.requests) == 2)
    assert (await lab.service.client.delete(f"/conversations/{conversation}", headers=lab.headers)).status_code == 204
    assert (await chat).status_code == 200 and await lab.conversations() == []
    chat = asyncio.ensure_future(lab.ask("three", "slow-300ms", stream=True))
    await until(lambda: len(lab.upstream.requests) == 3)
    body = {"password": PASSWORD}
    assert (await lab.service.client.request("DELETE", "/user/me", json=body, headers=lab.headers)).status_code == 204
    assert (await chat).status_code == 401


@pytest.mark.parametrize("stream", [False, True])
async def test_question_without_disk_space_is_refused_before_the_model_is_asked(lab: Lab, stream: bool) -> None:
    db, now = lab.service.state["db"], lab.service.clocks.now
    await db.write(wallet.book, lab.account_id, 3_000_000, description="", now_seconds=now)
    pages = await db.read(lambda conn: conn.execute("PRAGMA page_count").fetchone()[0])
    await db.write(lambda conn: conn.execute(f"PRAGMA max_page_count = {pages + 30}").fetchone())
    answer = await lab.ask("x" * 900_000, "ok+paid", stream=stream)
    assert answer.status_code == 503 and answer.json()["error"]["code"] == "storage_unavailable"
    account = await lab.get("/billing/account")
    assert account["held_micros"] == 0 and account["wallet_balance_micros"] == 3_000_000
    assert await lab.conversations() == [] and lab.upstream.requests == []
    await db.write(lambda conn: conn.execute("PRAGMA max_page_count = 1000000").fetchone())
    assert (await lab.ask("x", "ok+paid")).status_code == 200 and len(await lab.conversations()) == 1


async def test_output_before_a_disconnect_is_stored(lab: Lab) -> None:
    async with listening(lab.service.app) as address:
        left, _, writer = await open_stream(address, lab.headers)
        writer.transport.abort()
        messages: list[dict[str, Any]] = [{"status": "in_progress"}]
        while messages[0]["status"] == "in_progress":
            messages = (await lab.get(f"/conversations/{left}/messages"))["data"]
    assert [message["role"] for message in messages] == ["assistant", "user"]
    assert messages[0]["content"].startswith("on and on and on and") and messages[0]["status"] == "stopped"


async def test_output_before_a_shutdown_is_stored(tmp_path: Path, upstream: ModelServer) -> None:
    async with local_server(tmp_path, catalog(upstream)) as server:
        headers = await server.service.bearer()
        stopped, reader, writer = await open_stream((server.host, server.port), headers)
        ended = asyncio.ensure_future(reader.read())
        await server.stop()
        last, done = re.findall(rb"data: ([^\n]+)\n\n", await ended)[-2:]
        assert done == b"[DONE]" and b'"code":"shutting_down"' in last and b"finish_reason" not in last
        writer.close()
        query = "SELECT status FROM messages WHERE conversation_id = ? ORDER BY number"
        assert rows(server.data_dir / "service.db", query, stopped) == [("complete",), ("interrupted",)]


async def open_stream(
    address: tuple[str, int], headers: dict[str, str]
) -> tuple[str, asyncio.StreamReader, asyncio.StreamWriter]:
    """A stream of the model that never ends, after its first words; the id of its conversation."""
    body = orjson.dumps({"model": "lab/endless", "stream": True, "messages": [{"role": "user", "content": "go"}]})
    reader, writer = await asyncio.open_connection(*address)
    head = f"POST {COMPLETIONS} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n"
    head += "content-type: application/json\r\n"
    writer.write(f"{head}authorization: {headers['authorization']}\r\n\r\n".encode() + body)
    received = b""
    while received.count(b"on and") < 5:
        received += await reader.read(4096)
    return received.split(HEADER.encode() + b": ")[1].split(b"\r\n")[0].decode(), reader, writer


@each("text", ["\1" * 5_000, "\ud83d" * 5_000, "", None, 7])
def test_stored_error_is_bounded_and_can_be_stored(text: Any) -> None:
    stored = End(
        "failed", dict.fromkeys(("message", "type", "code", "param", "request_id", "further"), text)
    ).stored_error
    assert stored is not None and set(orjson.loads(stored)) == {"message", "type", "code", "param", "request_id"}
    assert len(stored) <= 10_000
    assert End("stopped").stored_error is None


# --- memory


async def test_matching_passages_follow_the_question(lab: Lab) -> None:
    earlier = (await lab.ask("My dog is called Rex.")).headers[HEADER]
    await lab.ask("Nothing of that kind")
    answer = await lab.ask("How is my dog called?", stream=True)
    assert answer.headers[MEMORY] == "1" and answer.headers[HEADER] != earlier
    (user,) = lab.sent
    question, passages = user["content"].split("\n\n", 1)
    assert question == "How is my dog called?" and "My dog is called Rex." in passages
    assert "Rex" not in str(await lab.said(answer.headers[HEADER]))


async def test_only_the_last_user_message_is_searched_and_sent_texts_are_not_repeated(lab: Lab) -> None:
    for text in ("Zebra and lion are striped.", "The lion roars."):
        await lab.ask(text)
    messages = [
        {"role": "user", "content": "The lion roars."},
        {"role": "assistant", "content": "Indeed it does."},
        {"role": "user", "content": "And the lion?"},
    ]
    answer = await lab.ask("", messages=messages)
    assert answer.headers[MEMORY] == "1"  # one of them is here already
    assert lab.sent[:2] == messages[:2], "what changes from call to call follows the history"
    assert "striped" in lab.sent[2]["content"] and "roars" not in lab.sent[2]["content"]


async def test_passages_follow_the_parts_of_a_question(lab: Lab) -> None:
    await lab.ask("The zebra is striped.")
    parts = [{"type": "text", "text": "zebra?"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    results = [{"role": "assistant", "content": "Let me look."}, {"role": "user", "content": parts}]
    assert (await lab.ask("", messages=results)).headers[MEMORY] == "1"
    *kept, last = lab.sent[1]["content"]
    assert lab.sent[0] == results[0] and kept == parts and "striped" in last["text"]


async def test_a_replaced_message_and_what_follows_it_are_not_recalled(lab: Lab) -> None:
    conversation = (await lab.ask("Say: the zebra Zora eats clover.", "echo")).headers[HEADER]
    await lab.ask("What does the zebra Zora eat today?", "echo", conversation)
    messages = (await lab.get(f"/conversations/{conversation}/messages"))["data"]
    asked = {**lab.headers, HEADER: conversation, "x-service-replaces": messages[2]["id"]}  # the first answer
    answer = await ask(lab.service, asked, "Say: the zebra Zora eats clover.", "echo")
    assert answer.headers[MEMORY] == "0" and len(lab.sent) == 1
    assert (await lab.ask("What does the zebra Zora eat?")).headers[MEMORY] != "0"


async def test_stop_words_and_numbers_recall_nothing(lab: Lab) -> None:
    for text in ("My car is on level 3.", "Mein Kind hat am 3. Mai Geburtstag."):
        await lab.ask(text)
    assert (await lab.ask("Give me 3 ideas")).headers[MEMORY] == "0"
    assert (await lab.ask("Where is my car?")).headers[MEMORY] == "1"  # "car" is a stop word in French only
    assert "level 3" in lab.sent[0]["content"]
    assert (await lab.ask("Wann hat mein Kind Geburtstag?")).headers[MEMORY] == "1"  # as "kind" is in English


async def test_at_most_five_passages_are_recalled(lab: Lab) -> None:
    for number in range(7):
        await lab.ask(f"zebra number {number}")
    answer = await lab.ask("zebra?")
    assert answer.headers[MEMORY] == "5" and lab.sent[0]["content"].count("zebra number") == 5
    assert [message["role"] for message in lab.sent] == ["user"]


async def test_memory_is_per_account_and_can_be_disabled(lab: Lab) -> None:
    await ask(lab.service, await lab.service.bearer(), "The zebra of another")
    assert (await lab.ask("zebra?")).headers[MEMORY] == "0" and len(lab.sent) == 1
    await lab.service.client.patch("/user/settings", json={"memory_enabled": False}, headers=lab.headers)
    answer = await lab.ask("The zebra?")
    assert answer.headers[MEMORY] == "0" and len(lab.sent) == 1 and len(await lab.said(answer.headers[HEADER])) == 2
    await lab.service.client.patch("/user/settings", json={"memory_enabled": True}, headers=lab.headers)
    assert (await lab.ask("A zebra!")).headers[MEMORY] == "2"


async def test_account_instructions_follow_the_projects_in_every_session_chat(lab: Lab) -> None:
    async def post(path: str, body: Any) -> str:
        return str((await lab.service.client.post(path, json=body, headers=lab.headers)).json()["id"])

    async def set_instructions(text: str | None) -> None:
        await lab.service.client.patch(
            "/user/settings", json={"instructions": text, "memory_enabled": False}, headers=lab.headers
        )

    project = await post("/projects", {"name": "p", "instructions": "Be brief."})
    conversation = await post("/conversations", {"project_id": project})
    await set_instructions("My name is Ada.")
    await lab.ask("hello")
    assert lab.sent == [{"role": "system", "content": "My name is Ada."}, {"role": "user", "content": "hello"}]
    await lab.ask("hello", conversation=conversation)
    assert lab.sent[0] == {"role": "system", "content": "Be brief.\n\nMy name is Ada."}
    await ask(lab.service, bearer((await lab.service.make_key(lab.headers))["key"]), "hello")
    assert [message["role"] for message in lab.sent] == ["user"], "a key's chats are stateless"
    await set_instructions(None)
    await lab.ask("hello")
    assert [message["role"] for message in lab.sent] == ["user"]


@each("model", ["ok", "ok+paid"])
async def test_conversations_temperature_and_limit_are_used_unless_the_request_has_its_own(
    lab: Lab, model: str
) -> None:
    await lab.service.state["db"].write(wallet.book, lab.account_id, 10**7, description="", now_seconds=1)
    body = {"temperature": 0.5, "max_output_tokens": 100}
    made = (await lab.service.client.post("/conversations", json=body, headers=lab.headers)).json()
    path = f"/conversations/{made['id']}"

    async def sent(conversation: str | None = made["id"], **fields: Any) -> dict[str, Any]:
        assert (await lab.ask("hello", model, conversation, **fields)).status_code == 200
        request = lab.upstream.requests[-1].body
        return {name: request.get(name) for name in ("temperature", "max_tokens", "max_completion_tokens")}

    own = {"temperature": 0.5, "max_tokens": 100, "max_completion_tokens": None}
    assert await sent() == await sent(temperature=None, max_tokens=None) == own
    assert await sent(temperature=0, max_tokens=7) == {**own, "temperature": 0, "max_tokens": 7}
    assert await sent(max_completion_tokens=7) == {**own, "max_tokens": None, "max_completion_tokens": 7}
    models_own = {
        "temperature": None,
        "max_tokens": 4096 if model == "ok+paid" else None,
        "max_completion_tokens": None,
    }
    assert await sent(conversation=None) == models_own
    await lab.service.client.patch(path, json={"temperature": None, "max_output_tokens": None}, headers=lab.headers)
    assert await sent() == models_own


async def test_posted_messages_and_runs_are_recalled_until_deleted(lab: Lab) -> None:
    made = (await lab.service.client.post("/conversations", json={}, headers=lab.headers)).json()
    body = {"role": "assistant", "content": "The zebra is called Ada."}
    await lab.service.client.post(f"/conversations/{made['id']}/messages", json=body, headers=lab.headers)
    run = {"goal": "say The zebra is called Bob.", "model": "builtin/script"}
    assert (await lab.service.client.post("/v1/agents/run", json=run, headers=lab.headers)).status_code == 200
    first = await lab.ask("zebra?")
    assert first.headers[MEMORY] == "3" and "Ada" in lab.sent[0]["content"] and "Bob" in lab.sent[0]["content"]
    await lab.service.client.delete(f"/conversations/{made['id']}", headers=lab.headers)
    await lab.service.client.delete(f"/conversations/{first.headers[HEADER]}", headers=lab.headers)
    assert (await lab.ask("zebra?")).headers[MEMORY] == "2" and "Ada" not in lab.sent[0]["content"]


async def test_the_built_in_assistant_recalls_an_earlier_conversation(lab: Lab) -> None:
    for text in ("My favourite colour is teal.", "What is my favourite colour?"):
        body = {"model": "builtin/assistant", "messages": [{"role": "user", "content": text}]}
        answer = await lab.service.client.post(COMPLETIONS, json=body, headers=lab.headers)
    assert "teal" in answer.json()["choices"][0]["message"]["content"]


async def test_project_instructions_come_first_and_memory_last(lab: Lab) -> None:
    project = {"name": "p", "instructions": "Always answer in rhyme."}
    project_id = (await lab.service.client.post("/projects", json=project, headers=lab.headers)).json()["id"]
    made = await lab.service.client.post("/conversations", json={"project_id": project_id}, headers=lab.headers)
    conversation = made.json()["id"]
    await lab.ask("The zebra is striped.", conversation=conversation)
    assert lab.sent[0] == {"role": "system", "content": "Always answer in rhyme."} and len(lab.sent) == 2
    messages = [{"role": "system", "content": "mine"}, {"role": "user", "content": "zebra?"}]
    assert (await lab.ask("", messages=messages, conversation=conversation)).headers[MEMORY] == "1"
    assert lab.sent[:2] == [{"role": "system", "content": "Always answer in rhyme."}, messages[0]]
    assert lab.sent[2]["content"].startswith("zebra?\n\n") and "striped" in lab.sent[2]["content"]
    await lab.service.client.delete(f"/projects/{project_id}", headers=lab.headers)
    await lab.ask("nothing alike", conversation=conversation)
    assert len(lab.sent) == 1


async def test_hold_covers_the_sent_messages(lab: Lab) -> None:
    await lab.ask("zebra " * 100)
    db, now = lab.service.state["db"], lab.service.clocks.now
    await db.write(wallet.book, lab.account_id, 500, description="", now_seconds=now)
    answer = await lab.ask("zebra", "ok+paid")
    assert answer.status_code == 402  # five bytes would be paid for; the passage of 600 is not
    key = bearer((await lab.service.make_key(lab.headers))["key"])
    assert (await ask(lab.service, key, "zebra", "ok+paid")).status_code == 200


# --- keys


async def test_request_with_a_key_ignores_the_header_and_is_not_stored(lab: Lab) -> None:
    key = bearer((await lab.service.make_key(lab.headers))["key"])
    conversation = (await lab.ask("The zebra is called Ada; canary-of-the-session")).headers[HEADER]
    before = await lab.said(conversation)
    for name in (conversation, "conv_unknown"):
        for stream in (False, True):
            for model in ("ok", "echo", "cut-after-3-chunks"):
                text = "zebra canary-of-the-key"
                answer = await ask(
                    lab.service, {**key, HEADER: name}, text, model, stream=stream, user="canary-of-the-key"
                )
                assert (
                    answer.status_code in (200, 502) and HEADER not in answer.headers and MEMORY not in answer.headers
                )
                assert lab.sent == [{"role": "user", "content": text}]
    assert await lab.said(conversation) == before and len(await lab.conversations()) == 1
    await lab.service.state["engines"].usage.flush()
    folder = lab.service.config.data_dir
    files = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    files["log"] = (folder.parent / "log").read_bytes()
    assert any(b"canary-of-the-session" in content for name, content in files.items() if name.startswith("service.db"))
    assert not any(b"canary-of-the-key" in content for content in files.values())
    assert b"canary" not in files["log"]
