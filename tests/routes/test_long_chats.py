"""Chats that are longer than the context of their model: what the model server gets, what is stored, what it costs."""

from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from svc.billing import wallet
from svc.config import Config
from svc.content.given_files import is_given
from tests.conftest import Clocks, Service, bearer, serving
from tests.routes.test_chat_files import chat_of
from tests.support.cases import each
from tests.support.model_answers import Wanted
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, watch

CHAT, HEADER = "/v1/chat/completions", "x-service-conversation"
MODELS = """
[[providers]]
name = "lab"
base_url = "{base_url}"
{models}
[[providers.models]]
id = "context-1200"
[[providers.models]]
id = "script+context-1400"
"""
_MODEL = """
[[providers.models]]
id = "{id}"
context_length = {tokens}
{prices}
"""
PRICES = "input_micros_per_million_tokens = 1000000\noutput_micros_per_million_tokens = 2000000"


class Counting(Wanted):
    """Counts a token for each four bytes of the messages, and answers with a long text."""

    def usage(self) -> dict[str, Any] | None:
        if "no-usage" in self.commands or self.given(r"usage-(\d+)"):
            return super().usage()
        prompt = sum(len(str(message["content"])) for message in self.request["messages"]) // 4
        return {"prompt_tokens": prompt, "completion_tokens": 4}


@pytest.fixture
async def upstream() -> AsyncIterator[ModelServer]:
    async with ModelServer(answers=Counting) as server:
        yield server


@pytest.fixture
async def service(config: Config, clocks: Clocks, upstream: ModelServer) -> AsyncIterator[Service]:
    named = [
        ("ok", 1200, ""),
        ("no-usage", 1200, ""),
        ("usage-1100", 1200, ""),
        ("fixed+usage-300", 1200, ""),
        ("tools", 1200, ""),
        ("paid", 1200, PRICES),
        ("longer+no-usage", 3000, ""),
        ("script+no-usage", 2400, ""),
        ("window-900", 1200, PRICES),
    ]
    models = "".join(_MODEL.format(id=id, tokens=tokens, prices=prices) for id, tokens, prices in named)
    catalog = MODELS.format(base_url=upstream.base_url, models=models)
    async with serving(config, clocks, catalog) as service:
        watch(service.config.data_dir / "service.db")
        yield service


class Chat:
    """A chat that sends all of its messages, as the page does."""

    def __init__(self, service: Service, upstream: ModelServer, model: str) -> None:
        self.service, self.upstream, self.model = service, upstream, model
        self.headers: dict[str, str] = {}
        self.messages: list[dict[str, Any]] = []
        self.number = 0

    async def begin(self, micros: int = 0) -> "Chat":
        session = await self.service.sign_up()
        self.headers = bearer(session["access_token"])
        if micros:
            about = {"description": "", "now_seconds": self.service.clocks.now}
            await self.service.state["db"].write(wallet.book, session["user"]["id"], micros, **about)
        return self

    async def ask(self, bytes: int = 300, text: str | None = None, **fields: Any) -> Any:
        """Ask the next question; return the messages that the model server got."""
        self.number += 1
        self.service.clocks.advance(4)  # the rate limit
        self.messages.append({"role": "user", "content": text or f"question {self.number} ".ljust(bytes, "x")})
        body = {"model": self.model, "messages": self.messages, "max_tokens": 100, **fields}
        answer = await self.service.client.post(CHAT, json=body, headers=self.headers)
        assert answer.status_code == 200, answer.text
        self.headers[HEADER] = answer.headers[HEADER]
        self.messages.append({"role": "assistant", "content": answer.json()["choices"][0]["message"]["content"]})
        return self.upstream.requests[-1].body["messages"]

    async def stored(self) -> list[dict[str, Any]]:
        path = f"/conversations/{self.headers[HEADER]}/messages?limit=100"
        stored: list[dict[str, Any]] = (await self.service.client.get(path, headers=self.headers)).json()["data"]
        return stored[::-1]


@pytest.fixture
async def chat(service: Service, upstream: ModelServer) -> Chat:
    return await Chat(service, upstream, "lab/no-usage").begin()


def questions(messages: list[dict[str, Any]]) -> list[int]:
    return [int(message["content"].split()[1]) for message in messages if message["content"].startswith("question")]


async def test_messages_fit_the_context_less_the_output_limit_and_the_newest_stay(chat: Chat) -> None:
    for number in range(1, 25):
        sent = await chat.ask()
        assert sum(len(message["content"]) for message in sent) / 3 <= 1200 - 100
        found = questions(sent)
        assert found == list(range(found[0], number + 1)) and sent[0]["role"] == "user"
        assert len(found) == number if number <= 10 else found[0] > 1


async def test_oldest_exchanges_go_in_steps_of_a_quarter(chat: Chat) -> None:
    firsts = [questions(await chat.ask())[0] for _ in range(30)]
    steps = [after - before for before, after in pairwise(firsts) if after != before]
    # An exchange is 105 tokens, and a step 300 of them: three exchanges, rounded up.
    assert len(steps) > 5 and set(steps) == {3}


async def test_system_message_always_stays(chat: Chat) -> None:
    chat.messages.append({"role": "system", "content": "Be brief."})
    for _ in range(15):
        sent = await chat.ask()
        assert sent[0] == {"role": "system", "content": "Be brief."}
    assert questions(sent)[0] > 1


async def test_answer_tells_where_the_view_of_its_model_began(chat: Chat) -> None:
    for _ in range(14):
        sent = await chat.ask()
    stored = await chat.stored()
    first = next(message for message in stored if message["content"] == sent[0]["content"])
    assert questions(sent)[0] > 1
    assert stored[-1]["first_sent_message_id"] == stored[-1]["answer"]["first_sent_message_id"] == first["id"]
    assert stored[1]["first_sent_message_id"] is None and stored[-2]["first_sent_message_id"] is None


async def test_count_of_the_model_server_comes_before_the_estimate(service: Service, upstream: ModelServer) -> None:
    many = await Chat(service, upstream, "lab/usage-1100").begin()
    assert questions(await many.ask(30)) == [1]
    assert questions(await many.ask(30)) == [2]  # 1100 tokens and the new question do not fit
    few = await Chat(service, upstream, "lab/fixed+usage-300").begin()
    for number in range(1, 20):
        sent = await few.ask()
        assert questions(sent)[0] == 1 and len(questions(sent)) == number


async def test_count_of_another_version_of_the_chat_does_not_matter(service: Service, upstream: ModelServer) -> None:
    chat = await Chat(service, upstream, "lab/ok").begin()
    for _ in range(14):
        await chat.ask()
    chat.messages = chat.messages[:2]
    stored = await chat.stored()
    chat.headers["x-service-replaces"] = stored[2]["id"]
    sent = await chat.ask(text="question 2 once more")
    assert questions(sent) == [1, 2]
    assert (await chat.stored())[-1]["first_sent_message_id"] is None


async def test_model_with_a_longer_context_gets_what_the_last_one_did_not(chat: Chat) -> None:
    for _ in range(14):
        sent = await chat.ask()
    assert questions(sent)[0] > 1
    chat.model = "lab/longer+no-usage"
    assert questions(await chat.ask()) == list(range(1, 16))
    assert (await chat.stored())[-1]["first_sent_message_id"] is None
    chat.model = "lab/no-usage"
    assert questions(await chat.ask())[0] > 1


async def test_exchange_that_alone_is_too_long_is_sent_alone(chat: Chat) -> None:
    await chat.ask()
    await chat.ask()
    sent = await chat.ask(9000)
    assert questions(sent) == [3] and len(sent) == 1


async def test_calls_of_tools_are_never_halved(service: Service, upstream: ModelServer) -> None:
    chat = await Chat(service, upstream, "lab/no-usage").begin()
    for number in range(1, 12):
        question = {"role": "user", "content": f"question {number} ".ljust(100, "x")}
        function = {"name": "look", "arguments": "{}"}
        calls = [{"id": f"call_{number}", "type": "function", "function": function}]
        result = {"role": "tool", "tool_call_id": f"call_{number}", "content": "y" * 500}
        chat.messages += [question, {"role": "assistant", "content": None, "tool_calls": calls}, result]
        chat.messages.append({"role": "assistant", "content": f"answer {number}"})
    sent = await chat.ask()
    assert sent[0]["role"] == "user" and len(sent) < 20
    made = [call["id"] for message in sent for call in message.get("tool_calls") or ()]
    assert made == [message["tool_call_id"] for message in sent if message["role"] == "tool"] and made


async def test_calls_before_the_last_ones_of_a_question_go_and_the_question_stays(chat: Chat) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "question 1"}]
    for number in range(8):
        function = {"name": "look", "arguments": "{}"}
        calls = [{"id": f"call_{number}", "type": "function", "function": function}]
        messages += [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": "y" * 600},
        ]
    body = {"model": chat.model, "messages": messages, "max_tokens": 100}
    answer = await chat.service.client.post(CHAT, json=body, headers=chat.headers)
    assert answer.status_code == 200
    sent = chat.upstream.requests[-1].body["messages"]
    assert sent[0]["content"] == "question 1" and sent[-1]["tool_call_id"] == "call_7"
    assert 3 <= len(sent) < 11 and [message["role"] for message in sent[1:3]] == ["assistant", "tool"]


async def test_files_of_the_project_always_stay_before_the_first_message_that_is_sent(chat: Chat) -> None:
    of_files = await chat_of(chat.service, chat.headers, b"The train leaves at 7:12.")
    chat.headers = of_files
    for number in range(1, 15):
        sent = await chat.ask()
        assert is_given(sent[0]) and "7:12" in sent[0]["content"] and sent[1]["role"] == "user"
        assert sum(len(message["content"]) for message in sent) / 3 <= 1200 - 100
        assert questions(sent)[-1] == number
    stored = await chat.stored()
    first = next(message for message in stored if message["content"] == sent[1]["content"])
    assert questions(sent)[0] > 1 and stored[-1]["first_sent_message_id"] == first["id"]


@each("path", [CHAT, "/v1/responses", "/v1/messages"])
async def test_requests_with_a_key_are_sent_whole(chat: Chat, path: str) -> None:
    key = bearer((await chat.service.make_key(chat.headers))["key"])
    messages = [{"role": role, "content": "x" * 900} for _ in range(6) for role in ("user", "assistant")]
    messages.append({"role": "user", "content": "question"})
    body = {"model": "lab/ok", "input" if path == "/v1/responses" else "messages": messages, "max_tokens": 100}
    answer = await chat.service.client.post(path, json=body, headers=key)
    assert answer.status_code == 200, answer.text
    assert len(chat.upstream.requests[-1].body["messages"]) == 13


async def test_temporary_chat_fits_as_well(chat: Chat) -> None:
    chat.headers["x-service-temporary"] = "true"
    messages = [{"role": role, "content": "x" * 900} for _ in range(6) for role in ("user", "assistant")]
    messages.append({"role": "user", "content": "question"})
    body = {"model": "lab/no-usage", "messages": messages, "max_tokens": 100}
    answer = await chat.service.client.post(CHAT, json=body, headers=chat.headers)
    assert answer.status_code == 200 and len(chat.upstream.requests[-1].body["messages"]) == 3


# --- refusals


async def test_refusal_for_length_is_learned_and_the_chat_goes_on(service: Service, upstream: ModelServer) -> None:
    chat = await Chat(service, upstream, "lab/context-1200").begin()
    for _ in range(3):
        await chat.ask(1000)
    asked_before = len(upstream.requests)
    sent = await chat.ask(3000)  # 1,500 tokens, as the server counts them
    assert len(upstream.requests) == asked_before + 2 and sent[-1]["content"].startswith("question 4")
    assert len(sent) < len(upstream.requests[-2].body["messages"])
    assert (await chat.stored())[-1]["first_sent_message_id"] is not None
    await chat.ask(1000)
    assert len(upstream.requests) == asked_before + 3, "the length was not remembered"
    other = await Chat(service, upstream, "lab/context-1200").begin()
    for _ in range(3):
        await other.ask(1000)
    before = len(upstream.requests)
    await other.ask(3000)
    assert len(upstream.requests) == before + 2, "one account has learned for another one"


async def test_second_refusal_is_an_error_in_plain_words(service: Service, upstream: ModelServer) -> None:
    chat = await Chat(service, upstream, "lab/context-1200").begin()
    await chat.ask(1000)
    asked_before = len(upstream.requests)
    body = {"model": chat.model, "messages": [*chat.messages, {"role": "user", "content": "x" * 12_000}]}
    answer = await service.client.post(CHAT, json=body, headers=chat.headers)
    error = answer.json()["error"]
    assert answer.status_code == 400 and error["code"] == "context_length_exceeded"
    assert error["message"].startswith("This message is too long for the model, which reads 1,200 tokens")
    assert len(upstream.requests) == asked_before + 2
    assert len(upstream.requests[-1].body["messages"]) == 1
    assert (await chat.stored())[-1]["error"]["message"] == error["message"]


@each("form", ["too-long-vllm", "too-long-anthropic", "too-long-openai"])
async def test_refusal_of_a_key_is_not_tried_again(service: Service, upstream: ModelServer, form: str) -> None:
    key = bearer((await service.make_key(await service.bearer()))["key"])
    provider = {"name": "own", "base_url": upstream.base_url}
    upstream.requests.clear()
    assert (await service.client.post("/user/providers", json=provider, headers=key)).status_code == 201
    messages = [{"role": role, "content": "x" * 900} for _ in range(6) for role in ("user", "assistant")]
    body = {"model": f"own/{form}", "messages": [*messages, {"role": "user", "content": "question"}]}
    answer = await service.client.post(CHAT, json=body, headers=key)
    assert answer.json()["error"]["code"] == "context_length_exceeded" and len(upstream.requests) == 1


async def test_retry_of_a_paid_chat_has_one_hold_and_one_settlement(service: Service, upstream: ModelServer) -> None:
    chat = await Chat(service, upstream, "lab/window-900").begin(micros=1_000_000)
    for _ in range(3):
        await chat.ask(800)
    before = len(upstream.requests)
    sent = await chat.ask(800)
    assert len(upstream.requests) == before + 2 and len(sent) < 7
    database = service.config.data_dir / "service.db"
    assert_exact(database)
    entries = (await service.client.get("/billing/ledger", headers=chat.headers)).json()["data"]
    debits = [entry for entry in entries if entry["amount_micros"] < 0]
    assert len(debits) == 4 and debits[0]["input_tokens"] == sum(len(one["content"]) for one in sent) // 4


async def test_stream_goes_on_after_a_refusal(service: Service, upstream: ModelServer) -> None:
    chat = await Chat(service, upstream, "lab/context-1200").begin()
    for _ in range(4):
        await chat.ask(1000)
    body = {"model": chat.model, "messages": [*chat.messages, {"role": "user", "content": "x" * 3000}], "stream": True}
    answer = await service.client.post(CHAT, json=body, headers=chat.headers)
    assert answer.status_code == 200 and "[DONE]" in answer.text and '"error"' not in answer.text


# --- runs


@each("model, refusals", [("script+no-usage", 0), ("script+context-1400", 1)])
async def test_run_leaves_out_its_oldest_calls_and_keeps_its_goal(
    service: Service, upstream: ModelServer, model: str, refusals: int
) -> None:
    headers = await service.bearer()
    file = {"name": "a.txt", "content_type": "text/plain", "content": "x" * 900}
    made = await service.client.post("/artifacts", json=file, headers=headers)
    goal = "\n---\n".join([f'tool read_artifact {{"id": "{made.json()["id"]}"}}'] * 20)
    upstream.requests.clear()
    body = {"goal": goal, "model": f"lab/{model}", "tools": ["read_artifact"], "max_steps": 12}
    answer = await service.client.post("/v1/agents/run", json=body, headers=headers)
    # The script is played by the number of calls in the prompt, so it does not end.
    assert '"reason":"max_steps"' in answer.text, answer.text
    prompts = [request.body["messages"] for request in upstream.requests]
    for messages in prompts:
        assert [message["role"] for message in messages[:2]] == ["system", "user"] and messages[1]["content"] == goal
        called = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
        assert called == [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert len(prompts) == 12 + refusals and 4 <= len(prompts[-1]) < 14
    assert prompts[2][: len(prompts[1])] == prompts[1], "the prefix changed"
