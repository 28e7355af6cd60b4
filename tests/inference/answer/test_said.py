"""What an answer says is the same for the client that asked, a later reader, the stored message and an agent run."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.config import Config
from svc.inference.answer import said
from tests.conftest import Clocks, Service, serving
from tests.routes.test_agents import run
from tests.support.cases import each
from tests.support.model_answers import TEXT
from tests.support.model_server import ModelServer

MODELS = ("refusal", "no-ids+refusal", "reasoning+refusal")
TEXTS = st.none() | st.text(max_size=3)
DELTAS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("content", "refusal", "reasoning_content", "reasoning"), TEXTS)
)


@pytest.fixture
async def lab(config: Config, clocks: Clocks) -> AsyncIterator[Service]:
    async with ModelServer() as models:
        listed = "".join(f'[[providers.models]]\nid = "{name}"\n' for name in MODELS)
        catalog = f'[[providers]]\nname = "lab"\nbase_url = "{models.base_url}"\n{listed}'
        async with serving(config, clocks, catalog) as service:
            yield service


async def ask(lab: Service, headers: dict[str, str], model: str, *, stream: bool = True) -> httpx.Response:
    body = {"model": f"lab/{model}", "messages": [{"role": "user", "content": "May I?"}], "stream": stream}
    answer = await lab.client.post("/v1/chat/completions", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer


def deltas(answer: httpx.Response) -> list[dict[str, Any]]:
    lines = (line[6:] for line in answer.text.splitlines() if line.startswith("data: {"))
    return [choice["delta"] for line in lines for choice in orjson.loads(line)["choices"]]


async def newest(lab: Service, headers: dict[str, str], conversation: str) -> dict[str, Any]:
    found = await lab.client.get(f"/conversations/{conversation}/messages", headers=headers)
    message: dict[str, Any] = found.json()["data"][0]
    return message


@each("continues", ["false", "true"])
@each("model", MODELS)
async def test_refusal_from_the_first_chunk_on_is_streamed_and_stored_whole(
    lab: Service, model: str, continues: str
) -> None:
    headers = {**await lab.bearer(), "x-service-continue": continues}
    answer = await ask(lab, headers, model)
    parts = deltas(answer)
    assert "".join(map(said.text, parts)) == TEXT
    stored = await newest(lab, headers, answer.headers["x-service-conversation"])
    assert (stored["content"], stored["status"]) == (TEXT, "complete")
    assert stored["answer"]["reasoning"] == ("Let me think." if "reasoning" in model else None)


async def test_refusal_in_a_json_answer_is_stored(lab: Service) -> None:
    headers = await lab.bearer()
    answer = await ask(lab, headers, "refusal", stream=False)
    message = answer.json()["choices"][0]["message"]
    assert (message["content"] or "", message["refusal"]) == ("", TEXT)
    assert (await newest(lab, headers, answer.headers["x-service-conversation"]))["content"] == TEXT


async def test_refusal_is_the_output_of_a_run_and_its_deltas(lab: Service) -> None:
    found = await run(lab, await lab.bearer(), "May I?", "lab/no-ids+refusal")
    assert "".join(event["text"] for event in found if event["type"] == "delta") == TEXT
    assert (found[-1]["type"], found[-1]["output"]) == ("final", TEXT)


@given(DELTAS)
def test_parts_are_the_reasoning_and_the_text(delta: dict[str, str | None]) -> None:
    parts = said.parts(delta)
    assert all(text for _, text in parts) and len({kind for kind, _ in parts}) == len(parts)
    assert "".join(text for kind, text in parts if kind != "reasoning") == said.text(delta)
    assert [text for kind, text in parts if kind == "reasoning"] == (
        [said.reasoning(delta)] * (said.reasoning(delta) is not None)
    )


def test_content_and_refusal_of_one_message_are_both_said() -> None:
    assert said.text({"content": "Well. ", "refusal": "No."}) == "Well. No."
    assert said.text({"content": "", "refusal": "No."}) == said.text({"refusal": "No."}) == "No."
    assert said.text({"content": None, "refusal": None}) == said.text({}) == ""


def test_reasoning_is_the_first_field_with_a_text() -> None:
    assert said.reasoning({"reasoning_content": "A", "reasoning": "A"}) == "A"
    assert said.reasoning({"reasoning_content": "", "reasoning": "B"}) == "B"
    assert said.reasoning({"reasoning_content": [{"step": 1}], "reasoning": "B"}) == "B"
    assert said.reasoning({"reasoning": {"effort": "high"}}) is None
