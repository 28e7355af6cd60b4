"""The search requests of Codex and Claude Code, as these clients send them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from svc.config import Config
from tests.conftest import Clocks, Service, serving
from tests.support.search_engine import SearchEngine

GOAL = 'tool web_search {"query": "x"}\n---\nsay As [1] says.'
OF_CODEX: dict[str, Any] = {
    "model": "builtin/script",
    "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": GOAL}]}],
    "tools": [{"type": "web_search", "external_web_access": True, "search_content_types": ["text", "image"]}],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "store": False,
    "include": ["reasoning.encrypted_content"],
}
OF_CLAUDE_CODE: dict[str, Any] = {
    "model": "builtin/script",
    "max_tokens": 32_000,
    "system": [{"type": "text", "text": "You run a web search for another model."}],
    "messages": [{"role": "user", "content": GOAL}],
    "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 8}],
    "tool_choice": {"type": "tool", "name": "web_search"},
}


@pytest.fixture
async def engine() -> AsyncIterator[SearchEngine]:
    async with SearchEngine("searxng") as engine:
        yield engine


@pytest.fixture
async def service(config: Config, clocks: Clocks, engine: SearchEngine) -> AsyncIterator[Service]:
    async with serving(config, clocks, engine.catalog()) as service:
        yield service


@pytest.mark.parametrize(("path", "body"), [("/v1/responses", OF_CODEX), ("/v1/messages", OF_CLAUDE_CODE)])
async def test_search_request_of_a_client_is_answered_with_a_citation(
    service: Service, engine: SearchEngine, path: str, body: dict[str, Any]
) -> None:
    headers = {"authorization": f"Bearer {(await service.sign_up())['access_token']}"}
    key = (await service.client.post("/user/api-keys", json={"name": "k"}, headers=headers)).json()["key"]
    answer = await service.client.post(path, json=body, headers={"authorization": f"Bearer {key}"})
    assert answer.status_code == 200 and [asked.query for asked in engine.requests] == ["x"]
    assert "citation" in answer.text and "light.example" in answer.text and "ignored" not in str(answer.headers)
