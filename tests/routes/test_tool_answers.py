"""Hosted web search in Responses and Messages, with the SDKs of the vendors."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import httpx
import httpx2
import pytest

from svc.billing import wallet
from svc.config import Config
from tests.conftest import Clocks, Service, serving
from tests.support.cases import each
from tests.support.format_server import FormatServer
from tests.support.late_imports import import_late
from tests.support.money import assert_exact, watch
from tests.support.search_engine import SearchEngine

if TYPE_CHECKING:
    import anthropic
    import openai

PRICE = 5_000
GOAL = 'say Let me look.\ntool web_search {"query": "x"}\n---\nsay As [1] says.'
FUNCTION = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}


@pytest.fixture
async def engine() -> AsyncIterator[SearchEngine]:
    async with SearchEngine("searxng") as engine:
        yield engine


@pytest.fixture
async def service(config: Config, clocks: Clocks, engine: SearchEngine) -> AsyncIterator[Service]:
    async with serving(config, clocks, engine.catalog(micros_per_search=PRICE)) as service:
        watch(service.config.data_dir / "service.db")
        yield service


async def key_of(service: Service, micros: int = 100_000) -> str:
    signed_up = await service.sign_up()
    headers = {"authorization": f"Bearer {signed_up['access_token']}"}
    await service.state["db"].write(
        wallet.book, signed_up["user"]["id"], micros, description="", now_seconds=service.clocks.now
    )
    made = await service.client.post("/user/api-keys", json={"name": "k"}, headers=headers)
    key: str = made.json()["key"]
    return key


def client_of(service: Service) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=service.transport)


@pytest.fixture
async def of_openai(service: Service) -> AsyncIterator["openai.AsyncOpenAI"]:
    import_late("openai")
    import openai

    async with openai.AsyncOpenAI(
        api_key=await key_of(service),
        base_url=f"{service.config.base_url}/v1",
        http_client=client_of(service),
        max_retries=0,
    ) as client:
        yield client


@pytest.fixture
async def of_anthropic(service: Service) -> AsyncIterator["anthropic.AsyncAnthropic"]:
    import_late("anthropic")
    import anthropic

    async with anthropic.AsyncAnthropic(
        api_key=await key_of(service),
        base_url=service.config.base_url,
        http_client=httpx2.AsyncClient(transport=httpx2.ASGITransport(service.app)),
        max_retries=0,
    ) as client:
        yield client


def message(goal: str, tool: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    tools = [{"type": "web_search_20250305", "name": "web_search", **(tool or {})}]
    return {
        "model": "builtin/script",
        "max_tokens": 1_000,
        "messages": [{"role": "user", "content": goal}],
        "tools": tools,
        **fields,
    }


@each("kind", ["web_search", "web_search_preview", "web_search_2025_08_26", "web_search_preview_2025_03_11"])
async def test_response_has_the_search_and_its_citations(
    service: Service, of_openai: "openai.AsyncOpenAI", engine: SearchEngine, kind: str
) -> None:
    body: Any = {"model": "builtin/script", "input": GOAL, "tools": [{"type": kind}]}
    response = await of_openai.responses.create(**body)
    first, search, answer = response.output
    assert search.type == "web_search_call" and search.status == "completed"
    assert search.action.model_dump(exclude_none=True) == {"type": "search", "query": "x", "queries": ["x"]}
    assert first.type == answer.type == "message" and response.output_text == "Let me look.As [1] says."
    part = answer.content[0]
    assert part.type == "output_text" and part.annotations[0].type == "url_citation"
    assert part.text[part.annotations[0].start_index : part.annotations[0].end_index] == "[1]"
    assert part.annotations[0].url == "https://light.example/a"
    events = []
    async with of_openai.responses.stream(**body) as stream:
        async for event in stream:
            events.append(event.type)
        streamed = await stream.get_final_response()
    assert [item.type for item in streamed.output] == ["message", "web_search_call", "message"]
    searched = [one for one in events if one.startswith("response.web_search_call")]
    assert searched == [f"response.web_search_call.{state}" for state in ("in_progress", "searching", "completed")]
    assert "response.output_text.annotation.added" in events and streamed.usage is not None
    assert len(engine.requests) % 2 == 0
    assert_exact(service.config.data_dir / "service.db")


async def test_sources_are_named_if_the_request_includes_them(of_openai: "openai.AsyncOpenAI") -> None:
    response = await of_openai.responses.create(
        model="builtin/script",
        input=GOAL,
        tools=[{"type": "web_search"}],
        include=["web_search_call.action.sources"],
    )
    action: Any = response.output[1].action  # type: ignore[union-attr]
    assert [source.url for source in action.sources] == ["https://light.example/a", "https://fog.example/b?x=1"]


async def test_message_has_the_search_its_results_and_citations(
    service: Service, of_anthropic: "anthropic.AsyncAnthropic", engine: SearchEngine
) -> None:
    made: Any = await of_anthropic.messages.create(**message(GOAL))
    assert [block.type for block in made.content] == ["text", "server_tool_use", "web_search_tool_result", "text"]
    _, use, results, text = made.content
    assert (use.name, use.input, results.tool_use_id) == ("web_search", {"query": "x"}, use.id)
    assert [one.url for one in results.content] == ["https://light.example/a", "https://fog.example/b?x=1"]
    assert [one.url for one in text.citations] == ["https://light.example/a"]
    assert made.stop_reason == "end_turn" and made.usage.server_tool_use.web_search_requests == 1
    async with of_anthropic.messages.stream(**message(GOAL)) as stream:
        streamed: Any = await stream.get_final_message()
    assert [block.type for block in streamed.content] == [block.type for block in made.content]
    assert (
        streamed.content[1].input == {"query": "x"} and streamed.content[3].citations[0].url == results.content[0].url
    )
    assert streamed.usage.server_tool_use.web_search_requests == 1
    # The whole answer is sent back with the next question.
    turn: Any = [block.model_dump() for block in streamed.content]
    again = [
        {"role": "user", "content": GOAL},
        {"role": "assistant", "content": turn},
        {"role": "user", "content": "say ok"},
    ]
    later: Any = await of_anthropic.messages.create(**message("", messages=again))
    assert later.content[0].text == "ok" and len(engine.requests) == 2
    assert_exact(service.config.data_dir / "service.db")


async def test_each_search_has_its_price_in_the_ledger_and_the_header(service: Service) -> None:
    headers = {"authorization": f"Bearer {await key_of(service)}"}
    answer = await service.client.post("/v1/messages", json=message(GOAL), headers=headers)
    assert answer.headers["x-service-cost-micros"] == str(PRICE) and "x-service-ignored-tools" not in answer.headers
    rows = (await service.client.get("/billing/ledger", headers=headers)).json()["data"]
    assert [row["amount_micros"] for row in rows if row["amount_micros"] < 0] == [-PRICE]


async def test_uses_and_domains_are_limits(of_anthropic: "anthropic.AsyncAnthropic", engine: SearchEngine) -> None:
    goal = 'tool web_search {"query": "a"}\n---\ntool web_search {"query": "b"}\n---\nsay ok'
    made: Any = await of_anthropic.messages.create(**message(goal, {"max_uses": 1}))
    results = [block.content for block in made.content if block.type == "web_search_tool_result"]
    assert results[1].error_code == "max_uses_exceeded" and len(engine.requests) == 1
    assert made.usage.server_tool_use.web_search_requests == 1
    only: Any = await of_anthropic.messages.create(**message(GOAL, {"allowed_domains": ["fog.example"]}))
    assert [one.url for one in only.content[2].content] == ["https://fog.example/b?x=1"]
    without: Any = await of_anthropic.messages.create(**message(GOAL, {"blocked_domains": ["fog.example"]}))
    assert [one.url for one in without.content[2].content] == ["https://light.example/a"]
    import anthropic

    with pytest.raises(anthropic.BadRequestError):
        await of_anthropic.messages.create(**message(GOAL, {"allowed_domains": ["a"], "blocked_domains": ["b"]}))


async def test_step_that_also_calls_a_function_of_the_client_ends_with_it(
    of_openai: "openai.AsyncOpenAI", engine: SearchEngine
) -> None:
    body: Any = {"model": "builtin/script", "tools": [{"type": "web_search"}, FUNCTION]}
    for goal in ("", GOAL.replace("---\nsay As [1] says.", "---\nsay And.\n")):
        body["input"] = f'{goal}tool web_search {{"query": "a"}}\ntool look {{}}\n---\nsay never'
        response = await of_openai.responses.create(**body)
        earlier = ["message", "web_search_call", "message"] if goal else []
        assert [item.type for item in response.output] == [*earlier, "function_call", "web_search_call"]
        async with of_openai.responses.stream(**body) as stream:
            streamed = await stream.get_final_response()
        assert [item.type for item in streamed.output] == [item.type for item in response.output]
    assert len(engine.requests) == 6


async def test_blocks_of_a_message_have_the_same_order_in_json_and_streams(
    of_anthropic: "anthropic.AsyncAnthropic",
) -> None:
    look = {"name": "look", "input_schema": {"type": "object"}}
    body = message('say One.\ntool web_search {"query": "a"}\ntool look {}\n---\nsay never')
    body["tools"].append(look)
    made: Any = await of_anthropic.messages.create(**body)
    async with of_anthropic.messages.stream(**body) as stream:
        streamed: Any = await stream.get_final_message()
    found = ["text", "tool_use", "server_tool_use", "web_search_tool_result"]
    assert [block.type for block in made.content] == [block.type for block in streamed.content] == found
    assert made.stop_reason == streamed.stop_reason == "tool_use"


async def test_engine_that_fails_is_a_result_and_costs_nothing(
    service: Service, of_anthropic: "anthropic.AsyncAnthropic", engine: SearchEngine
) -> None:
    engine.status = 429
    made: Any = await of_anthropic.messages.create(**message(GOAL))
    assert made.content[2].content.error_code == "unavailable" and made.content[3].text == "As [1] says."
    assert made.usage.server_tool_use.web_search_requests == 0
    assert_exact(service.config.data_dir / "service.db")


async def test_item_of_a_failed_search_says_so(of_openai: "openai.AsyncOpenAI", engine: SearchEngine) -> None:
    engine.status = 429
    body: Any = {"model": "builtin/script", "input": GOAL, "tools": [{"type": "web_search"}]}
    response = await of_openai.responses.create(**body)
    events = []
    async with of_openai.responses.stream(**body) as stream:
        async for event in stream:
            events.append(event.type)
        streamed = await stream.get_final_response()
    for output in (response.output, streamed.output):
        search: Any = output[1]
        assert (search.type, search.status, search.action.query) == ("web_search_call", "failed", "x")
    assert "response.web_search_call.searching" in events and "response.web_search_call.completed" not in events
    assert response.status == streamed.status == "completed"


async def test_fault_of_the_model_after_a_search_ends_the_stream_as_failed(
    service: Service, of_openai: "openai.AsyncOpenAI", engine: SearchEngine
) -> None:
    body: Any = {
        "model": "builtin/script",
        "input": 'tool web_search {"query": "a"}\n---\nfail 400 no more',
        "tools": [{"type": "web_search"}],
        "stream": True,
    }
    events = [event async for event in await of_openai.responses.create(**body)]
    assert events[-1].type == "response.failed" and len(engine.requests) == 1
    assert_exact(service.config.data_dir / "service.db")


async def test_forced_search_is_forced_once(of_openai: "openai.AsyncOpenAI", engine: SearchEngine) -> None:
    choice: Any = {"type": "web_search"}
    response = await of_openai.responses.create(
        model="builtin/script", input=GOAL, tools=[{"type": "web_search"}], tool_choice=choice
    )
    assert response.output_text.endswith("As [1] says.") and len(engine.requests) == 1


async def test_allowed_tools_may_name_the_search(of_openai: "openai.AsyncOpenAI", engine: SearchEngine) -> None:
    choice: Any = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "web_search"}]}
    tools: Any = [{"type": "web_search"}, FUNCTION]
    response = await of_openai.responses.create(model="builtin/script", input=GOAL, tools=tools, tool_choice=choice)
    assert response.output_text.endswith("As [1] says.") and len(engine.requests) == 1


async def test_repeated_key_searches_once(service: Service, engine: SearchEngine) -> None:
    headers = {"authorization": f"Bearer {await key_of(service)}", "idempotency-key": "once"}
    for stream in (True, False):
        headers["idempotency-key"] = f"once-{stream}"
        body = message(GOAL, stream=stream)
        first = await service.client.post("/v1/messages", json=body, headers=headers)
        again = await service.client.post("/v1/messages", json=body, headers=headers)
        assert first.status_code == 200 and again.text == first.text
    assert len(engine.requests) == 2
    assert_exact(service.config.data_dir / "service.db")


def provider(upstream: FormatServer, api: str, name: str, *lines: str) -> str:
    """A provider of the format `api` with a model that plays scripts. `lines` are of the model."""
    head = f'[[providers]]\nname = "{name}"\napi = "{api}"\nbase_url = "{upstream.base_url}"\n'
    return "\n".join((f'{head}[[providers.models]]\nid = "script"', *lines, ""))


def body_for(api: str, model: str, **fields: Any) -> dict[str, Any]:
    if api == "messages":
        return message(GOAL, model=model, **fields)
    return {"model": model, "input": GOAL, "tools": [{"type": "web_search"}], **fields}


@pytest.mark.parametrize(
    ("api", "stream"), [(api, stream) for api in ("responses", "messages") for stream in (True, False)]
)
async def test_search_runs_before_a_server_of_the_same_format_too(
    config: Config, clocks: Clocks, engine: SearchEngine, api: str, stream: bool
) -> None:
    async with FormatServer() as upstream:
        catalog = engine.catalog(micros_per_search=PRICE) + provider(upstream, api, "same")
        async with serving(config, clocks, catalog) as service:
            headers = {"authorization": f"Bearer {await key_of(service)}"}
            answer = await service.client.post(
                f"/v1/{api}", json=body_for(api, "same/script", stream=stream), headers=headers
            )
            assert answer.status_code == 200 and "light.example" in answer.text and "citation" in answer.text
            assert "x-service-ignored-tools" not in answer.headers
            assert len(upstream.requests) == 2 and len(engine.requests) == 1
            assert_exact(service.config.data_dir / "service.db")


@pytest.mark.parametrize("api", ["responses", "messages"])
async def test_server_that_searches_itself_gets_the_tool(
    config: Config, clocks: Clocks, engine: SearchEngine, api: str
) -> None:
    prices = "hosted_tools = { web_search = 0 }"
    async with FormatServer() as upstream:
        catalog = engine.catalog() + provider(upstream, api, "same", prices)
        async with serving(config, clocks, catalog) as service:
            headers = {"authorization": f"Bearer {await key_of(service)}"}
            body = body_for(api, "same/script")
            await service.client.post(f"/v1/{api}", json=body, headers=headers)
            assert upstream.requests[0].body["tools"] == body["tools"] and not engine.requests


async def test_function_of_the_client_with_the_same_name_is_the_clients(service: Service, engine: SearchEngine) -> None:
    headers = {"authorization": f"Bearer {await key_of(service)}"}
    function = {**FUNCTION, "name": "web_search"}
    for tools in ([{"type": "web_search"}, function], [function, {"type": "web_search"}]):
        body = {"model": "builtin/script", "input": "tool web_search {}\n---\nsay never", "tools": tools}
        answer = await service.client.post("/v1/responses", json=body, headers=headers)
        assert [item["type"] for item in answer.json()["output"]] == ["function_call"]
    own = {"name": "web_search", "input_schema": {"type": "object"}}
    hosted = message("x")["tools"][0]
    for tools in ([own, hosted], [hosted, own]):
        refused = await service.client.post("/v1/messages", json=message("x", tools=tools), headers=headers)
        assert refused.status_code == 400 and "another tool" in refused.json()["error"]["message"]
    assert engine.requests == []


async def test_without_an_engine_the_tool_is_left_out(config: Config, clocks: Clocks) -> None:
    async with serving(config, clocks) as service:
        headers = {"authorization": f"Bearer {await key_of(service)}"}
        answer = await service.client.post("/v1/messages", json=message("say hello"), headers=headers)
        assert (
            answer.headers["x-service-ignored-tools"] == "web_search" and answer.json()["content"][0]["text"] == "hello"
        )
