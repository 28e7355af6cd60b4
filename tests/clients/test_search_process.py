"""Codex and Claude Code search the web through the service: each cites what only the search engine knows."""

from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
import pytest_asyncio

from tests.clients.conftest import CALL_MICROS, MODELS, Lab, Services, in_soak, served
from tests.clients.test_claude_code_process import as_script, claude
from tests.clients.test_codex_process import call, codex
from tests.support.search_engine import SearchEngine, answer_of

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]
PRICE = 5_000
URL = "https://beacon.example/height"
FACT = "The Skerry beacon is 4127 centimetres high."
QUOTED = f"quote {FACT.replace('4127', '[0-9]+')}"  # no script says the number


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine() -> AsyncIterator[SearchEngine]:
    async with SearchEngine("searxng") as engine:
        engine.answer = orjson.dumps(answer_of("searxng", [("The beacon", URL, FACT, None)]))
        yield engine


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(tmp_path_factory: pytest.TempPathFactory, engine: SearchEngine) -> AsyncIterator[Services]:
    async with served(tmp_path_factory.mktemp("search"), MODELS, engine.catalog(PRICE)) as running:
        yield running


@pytest.mark.parametrize(
    "model", ["coder", "gpt-5.5", *in_soak("thinker", "responses/script", "messages/script+reasoning")]
)
async def test_codex_cites_a_page_of_the_search_engine(
    lab: Lab, engine: SearchEngine, tmp_path: Path, model: str
) -> None:
    asked_before, searched_before = len(lab.upstream.requests), len(engine.requests)
    script = f"{call('web_search', query='skerry beacon')}\n---\n{QUOTED}\nsay  [1]"
    message, shown = await codex(lab, tmp_path, model, script)
    assert message == f"{FACT} [1]" and "skerry beacon" in shown
    assert [asked.query for asked in engine.requests[searched_before:]] == ["skerry beacon"]
    calls = lab.asked(asked_before, model)
    assert len(calls) == 2 and await lab.spent() == PRICE + 2 * CALL_MICROS


@pytest.mark.parametrize(
    "model", ["claude-opus-5", "messages/script", *in_soak("claude-sonnet-4-5", "responses/script")]
)
async def test_claude_code_cites_a_page_of_the_search_engine(
    lab: Lab, engine: SearchEngine, tmp_path: Path, model: str
) -> None:
    asked_before, searched_before = len(lab.upstream.requests), len(engine.requests)
    nested = f"skerry beacon\n{call('web_search', query='skerry beacon')}\n---\n{QUOTED}\nsay  [1]"
    script = as_script([("WebSearch", {"query": nested})]).replace("say All done.", QUOTED)
    answer = await claude(lab, tmp_path, model, script, "--allowedTools", "WebSearch")
    assert answer.endswith(FACT)
    assert [asked.query for asked in engine.requests[searched_before:]] == ["skerry beacon"]
    _, forced, _, last = lab.asked(asked_before, model)
    assert [tool["function"]["name"] for tool in forced["tools"]] == ["web_search"]
    assert await lab.spent() == PRICE + 4 * CALL_MICROS
    [result] = [message["content"] for message in last["messages"] if message["role"] == "tool"]
    assert URL in result and f"{FACT} [1]" in result
