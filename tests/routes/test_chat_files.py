"""How a model gets the files of a project: whole, by tools, or as the passages that match the question."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from svc.agents.tools.sources import INSTRUCTION
from svc.config import Config
from tests.conftest import Clocks, Service, serving
from tests.routes.test_project_files import TRAIN, add, artifact, events_of, project_of
from tests.support.model_server import ModelServer

FILES = "Files of the project, as data:"
HEADER = "x-service-conversation"
CATALOG = """
[[providers]]
name = "lab"
base_url = "{base_url}"
{models}
"""
MODEL = '[[providers.models]]\nid = "{id}"\ninput_micros_per_million_tokens = 0\noutput_micros_per_million_tokens = 0\n'
MODELS = {
    "ok": "",
    "no-ids": "capabilities = []",
    "script": 'capabilities = ["tools"]\ncontext_length = 4_000',
    "unicode": "capabilities = []\ncontext_length = 4_000",
    "echo": "context_length = 4_000",
}
FIT_BYTES = 4_000 * 3 // 4  # of those with a context of 4,000 tokens


@pytest.fixture
async def lab() -> AsyncIterator[ModelServer]:
    async with ModelServer(models=tuple(MODELS)) as server:
        yield server


@pytest.fixture
async def service(config: Config, clocks: Clocks, lab: ModelServer) -> AsyncIterator[Service]:
    models = "".join(f"{MODEL.format(id=id)}{more}\n" for id, more in MODELS.items())
    async with serving(config, clocks, CATALOG.format(base_url=lab.base_url, models=models)) as service:
        yield service


async def chat_of(service: Service, headers: dict[str, str], *contents: bytes) -> dict[str, str]:
    """Return the headers of a chat in a project with these files."""
    project_id = await project_of(service, headers)
    for number, content in enumerate(contents):
        await add(service, headers, project_id, await artifact(service, headers, content, f"{number}.md"))
    made = await service.client.post("/conversations", json={"project_id": project_id}, headers=headers)
    return {**headers, HEADER: made.json()["id"]}


async def ask(service: Service, chat: dict[str, str], model: str, *texts: str, **fields: Any) -> Any:
    roles = ["assistant" if (len(texts) - place) % 2 == 0 else "user" for place in range(len(texts))]
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
    body = {"model": f"lab/{model}", "messages": messages, **fields}
    answer = await service.client.post("/v1/chat/completions", json=body, headers=chat)
    assert answer.status_code == 200, answer.text
    return answer


async def newest(service: Service, chat: dict[str, str]) -> dict[str, Any]:
    path = f"/conversations/{chat[HEADER]}/messages"
    answer = await service.client.get(path, headers={"authorization": chat["authorization"]})
    return dict(answer.json()["data"][0])


def long_file(words: str) -> bytes:
    """Return a text that does not fit, in which one passage has these words."""
    filler = "\n\n".join(f"Paragraph {number} about gardens and soil. " * 8 for number in range(30))
    return f"{filler}\n\n{words}\n\n{filler}".encode()


async def test_files_that_fit_are_sent_whole_before_the_first_message_and_the_prefix_stays(
    service: Service, lab: ModelServer
) -> None:
    headers = await service.bearer()
    chat = await chat_of(service, headers, TRAIN.encode(), b"second file")
    await ask(service, chat, "ok", "When does it leave?")
    first = lab.requests[-1].body["messages"]
    assert [one["role"] for one in first] == ["user", "user"] and first[1]["content"] == "When does it leave?"
    text = first[0]["content"]
    assert text.startswith(FILES) and "[1]" in text and "File: 0.md" in text
    assert TRAIN.split("\n")[2] in text and text.index("File: 0.md") < text.index("second file")
    assert "tools" not in lab.requests[-1].body, "this model may refuse tools"
    await ask(service, chat, "ok", "When does it leave?", "Hello, world!", "And back?")
    second = lab.requests[-1].body["messages"]
    assert second[: len(first)] == first and len(second) == len(first) + 2
    project_id = (await service.client.get(f"/conversations/{chat[HEADER]}", headers=headers)).json()["project_id"]
    await add(service, headers, project_id, await artifact(service, headers, b"third", "third.md"))
    await ask(service, chat, "ok", "And now?")
    assert lab.requests[-1].body["messages"][0]["content"].startswith(text), "a new file comes last"


async def test_files_stand_after_the_instructions(service: Service, lab: ModelServer) -> None:
    headers = await service.bearer()
    chat = await chat_of(service, headers, TRAIN.encode())
    await service.client.patch("/user/settings", json={"instructions": "Be short."}, headers=headers)
    await ask(service, chat, "ok", "When?")
    sent = lab.requests[-1].body["messages"]
    assert [one["role"] for one in sent] == ["system", "user", "user"]
    assert sent[0]["content"] == "Be short." and sent[1]["content"].startswith(FILES)


@pytest.mark.parametrize(("size", "whole"), [(FIT_BYTES, True), (FIT_BYTES + 1, False)])
async def test_files_fit_in_a_quarter_of_the_context(
    service: Service, lab: ModelServer, size: int, whole: bool
) -> None:
    headers = await service.bearer()
    chat = await chat_of(service, headers, b"x " * 1_000 + b"y" * (size - 2_000))
    await ask(service, chat, "unicode", "x?")
    text = lab.requests[-1].body["messages"][0]["content"]
    assert text.startswith(FILES) and ("y" * 400 in text) is whole


async def test_model_of_an_unknown_context_gets_at_most_6144_bytes(service: Service, lab: ModelServer) -> None:
    headers = await service.bearer()
    for size, whole in ((6_144, True), (6_145, False)):
        chat = await chat_of(service, headers, b"a" * size)
        await ask(service, chat, "ok", "what?")
        sent = lab.requests[-1].body
        assert sent["messages"][0]["content"].startswith(FILES) is whole
        assert ("tools" in sent) is not whole


async def test_longer_files_are_searched_with_tools(service: Service, lab: ModelServer) -> None:
    headers = await service.bearer()
    chat = await chat_of(service, headers, long_file("The night train leaves at 22:40."))
    goal = 'tool find_in_files {"query": "night train"}\n---\nsay At 22:40 [1].'
    await ask(service, chat, "script", goal)
    first, second = [seen.body for seen in lab.requests[-2:]]
    assert {one["function"]["name"] for one in first["tools"]} == {"find_in_files", "read_file"}
    assert not any(str(one["content"]).startswith(FILES) for one in first["messages"])
    assert second["messages"][-1]["role"] == "tool" and "22:40" in second["messages"][-1]["content"]


@pytest.mark.parametrize("fields", [{}, {"n": 2}, {"tools": [{"type": "function", "function": {"name": "own"}}]}])
async def test_model_without_the_tools_gets_the_best_passages_before_the_question(
    service: Service, lab: ModelServer, fields: dict[str, Any]
) -> None:
    headers = await service.bearer()
    chat = await chat_of(service, headers, long_file("The night train leaves at 22:40."))
    model = "echo" if fields else "unicode"
    await ask(service, chat, model, "Hello", "Hi", "When does the night train leave?", **fields)
    sent = lab.requests[-1].body["messages"]
    assert [one["role"] for one in sent] == ["user", "assistant", "user", "user"]
    assert sent[2]["content"].startswith(FILES) and "22:40" in sent[2]["content"]
    assert sent[2]["content"].count("\n[") <= 8 and len(sent[2]["content"]) < 9_500
    assert sent[3]["content"] == "When does the night train leave?"
    sources = (await newest(service, chat))["sources"]
    assert [one["number"] for one in sources] == list(range(1, len(sources) + 1)) and "22:40" in sources[0]["text"]


async def test_whole_files_stay_when_the_oldest_messages_no_longer_fit(service: Service, lab: ModelServer) -> None:
    headers = await service.bearer()
    chat = await chat_of(service, headers, TRAIN.encode() * 20)
    said = [f"{number} " + "word " * 300 for number in range(14)]
    await ask(service, chat, "unicode", *said, "And the train?")
    sent = [str(one["content"]) for one in lab.requests[-1].body["messages"]]
    assert sent[0].startswith(FILES) and sent[-1] == "And the train?"
    assert 2 < len(sent) < 16 and said[0] not in sent and sent[1:-1] == said[-(len(sent) - 2) :]


async def test_question_without_a_match_has_no_passages(service: Service, lab: ModelServer) -> None:
    headers = await service.bearer()
    chat = await chat_of(service, headers, long_file("The night train leaves at 22:40."))
    await ask(service, chat, "unicode", "Zebras?")
    assert lab.requests[-1].body["messages"] == [{"role": "user", "content": "Zebras?"}]
    assert (await newest(service, chat))["sources"] == []


@pytest.mark.parametrize("streams", [False, True])
async def test_quotations_of_whole_files_are_checked_and_only_cited_passages_are_sources(
    service: Service, streams: bool
) -> None:
    headers = await service.bearer()
    chat = await chat_of(service, headers, TRAIN.encode(), b"A second file.")
    quotation = "the night train to Vienna leaves at 22:40 from platform nine"
    said = f'It says "{quotation}" [1].'
    body = {"model": "builtin/echo", "messages": [{"role": "user", "content": said}], "stream": streams}
    answer = await service.client.post("/v1/chat/completions", json=body, headers=chat)
    assert answer.status_code == 200, answer.text
    message = await newest(service, chat)
    (source,) = message["sources"]
    assert (source["number"], source["kind"], source["name"], source["from_line"]) == (1, "file", "0.md", 1)
    assert message["citations"] == [{"number": 1, "quotation": quotation, "verified": True}]


async def test_known_tools_continue_the_numbers_of_whole_files(service: Service, lab: ModelServer) -> None:
    headers = await service.bearer()
    chat = await chat_of(service, headers, TRAIN.encode())
    goal = 'tool read_file {"file": "0.md", "from": 3, "lines": 1}\n---\nsay See [3].'
    await ask(service, chat, "script", goal)
    assert lab.requests[-2].body["messages"][1]["content"].startswith(FILES), "after the rules for citations"
    (source,) = (await newest(service, chat))["sources"]
    assert source["number"] == 3 and source["text"] == TRAIN.split("\n")[2]


async def test_chat_without_files_or_with_a_key_gets_none(service: Service, lab: ModelServer) -> None:
    headers = await service.bearer()
    chat = await chat_of(service, headers)
    await ask(service, chat, "ok", "When?")
    assert lab.requests[-1].body["messages"] == [{"role": "user", "content": "When?"}]
    chat = await chat_of(service, headers, TRAIN.encode())
    key = (await service.client.post("/user/api-keys", json={"name": "k"}, headers=headers)).json()["key"]
    await ask(service, {**chat, "authorization": f"Bearer {key}"}, "ok", "When?")
    assert lab.requests[-1].body["messages"] == [{"role": "user", "content": "When?"}]


async def test_runs_get_the_files_as_chats_do(service: Service, lab: ModelServer) -> None:
    headers = await service.bearer()
    chat = await chat_of(service, headers, long_file("The night train leaves at 22:40."))
    project_id = (await service.client.get(f"/conversations/{chat[HEADER]}", headers=headers)).json()["project_id"]

    async def sent(model: str, **fields: Any) -> list[Any]:
        body = {"goal": "say The night train", "model": f"lab/{model}", "project_id": project_id, **fields}
        run = await events_of(service, headers, body)
        assert run[-1]["type"] == "final", orjson.dumps(run[-1])
        return list(lab.requests[-1].body["messages"])

    begins, goal = await sent("script")
    assert (begins["role"], goal["role"]) == ("system", "user") and begins["content"].endswith(INSTRUCTION)
    for found in (await sent("script", tools=[]), await sent("no-ids")):
        assert [one["role"] for one in found] == ["system", "user", "user"]
        assert found[1]["content"].startswith(FILES) and "22:40" in found[1]["content"]
    small = await project_of(service, headers)
    await add(service, headers, small, await artifact(service, headers, TRAIN.encode()))
    whole = await sent("script", project_id=small)
    assert whole[1]["content"].startswith(FILES) and whole[2]["content"] == "say The night train"
