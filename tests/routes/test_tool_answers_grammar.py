"""Streams with hosted searches obey the grammar of their format, and the JSON answer says the same."""

import random
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from svc.config import Config
from tests.conftest import Clocks, Service, serving
from tests.routes.test_tool_answers import FUNCTION, PRICE, key_of
from tests.support.format_server import FormatServer
from tests.support.messages import checked_message, checked_stream
from tests.support.money import assert_exact, watch
from tests.support.responses import checked_events, checked_response
from tests.support.search_engine import SearchEngine

CASES = 25
MODELS = ("builtin/script", "lab/script", "lab/script+reasoning")


@pytest.fixture
async def engine() -> AsyncIterator[SearchEngine]:
    async with SearchEngine("searxng") as engine:
        yield engine


@pytest.fixture
async def service(config: Config, clocks: Clocks, engine: SearchEngine) -> AsyncIterator[Service]:
    async with FormatServer() as upstream:
        names = "".join(f'[[providers.models]]\nid = "{model[4:]}"\n' for model in MODELS[1:])
        provider = f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\n{names}'
        async with serving(config, clocks, engine.catalog(micros_per_search=PRICE) + provider) as service:
            watch(service.config.data_dir / "service.db")
            yield service


def a_script(rnd: random.Random, model: str) -> str:
    """Return rounds of texts and searches. The last one is a text, a call of the client's function, or a fault."""
    searches = ['tool web_search {"query": "x"}', "tool web_search {}", 'tool web_search {"query": 5}']
    texts = ["say Hm [1] [2].", "say 🙂 [9]", "say word"]
    rounds = []
    for _ in range(rnd.randrange(5)):
        lines = [rnd.choice(texts)] * rnd.randrange(2) + rnd.choices(searches, (4, 1, 1), k=rnd.randint(1, 3))
        rounds.append("\n".join(lines))
    last = [rnd.choice(texts), "tool look {}", f"{searches[0]}\ntool look {{}}"]
    faults = ["say cut\ndrop", "fail 400 no", "say cut\nfail 500 no", "say cut\nlength"]
    rounds.append(rnd.choice(last + (faults if model == MODELS[0] else [])))
    return "\n---\n".join(rounds)


def bodies(script: str, model: str) -> dict[str, dict[str, Any]]:
    tools = [
        {"type": "web_search_20250305", "name": "web_search"},
        {"name": "look", "input_schema": FUNCTION["parameters"]},
    ]
    messages = [{"role": "user", "content": script}]
    return {
        "responses": {"model": model, "input": script, "tools": [{"type": "web_search"}, FUNCTION]},
        "messages": {"model": model, "max_tokens": 1_000, "messages": messages, "tools": tools},
    }


def of_response(items: list[dict[str, Any]]) -> list[Any]:
    """Return what a response says, without its ids."""
    return [{name: item[name] for name in item if name not in ("id", "call_id")} for item in items]


def of_message(blocks: list[dict[str, Any]]) -> list[Any]:
    """Return what a message says, without its ids, with the input of calls as a value."""
    said = []
    for block in blocks:
        kept = {name: block[name] for name in block if name not in ("id", "tool_use_id", "arguments")}
        if "arguments" in block:
            kept["input"] = orjson.loads(block["arguments"])
        said.append(kept)
    return said


def check_searches_of_message(blocks: list[dict[str, Any]], *, whole: bool) -> None:
    """Each search has one result, with its id."""
    asked = [block["id"] for block in blocks if block["type"] == "server_tool_use"]
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "web_search_tool_result"]
    assert len({*asked}) == len(asked) and answered == (asked if whole else asked[: len(answered)])


async def test_streams_with_searches_obey_their_grammar_and_json_says_the_same(
    service: Service, engine: SearchEngine
) -> None:
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    rnd = random.Random(seed)
    headers = {"authorization": f"Bearer {await key_of(service, 100_000_000)}"}
    for _ in range(CASES):
        model = rnd.choice(MODELS)
        script = a_script(rnd, model)
        engine.status = rnd.choice((200, 200, 429))
        print(model, engine.status, repr(script))
        for api, body in bodies(script, model).items():
            whole = await service.client.post(f"/v1/{api}", json=body, headers=headers)
            streamed = await service.client.post(f"/v1/{api}", json={**body, "stream": True}, headers=headers)
            if streamed.status_code != 200:
                assert whole.status_code == streamed.status_code
                continue
            if api == "responses":
                last = checked_events(streamed.content)[-1]
                assert (last["type"] == "response.failed") == (whole.status_code != 200)
                if whole.status_code == 200:
                    checked = checked_response(whole.json())
                    assert of_response(checked["output"]) == of_response(last["response"]["output"])
            else:
                message, error = checked_stream(streamed.content)
                assert (error is not None) == (whole.status_code != 200)
                check_searches_of_message(message.get("content", []), whole=error is None)
                if whole.status_code == 200:
                    checked = checked_message(whole.json())
                    assert of_message(checked["content"]) == of_message(message["content"])
                    assert checked["usage"]["server_tool_use"] == message["usage"]["server_tool_use"]
    assert_exact(service.config.data_dir / "service.db")
