"""Recorded requests of Claude Code to POST /v1/messages: they are answered as it reads them, and paid once."""

from svc.config import Config
from tests.clients.recorded_requests import CALL_MICROS, events_of, in_front_of, recorded
from tests.conftest import Clocks


async def test_recorded_requests_are_streamed_to_their_end_and_paid(config: Config, clocks: Clocks) -> None:
    requests = recorded("claude-code")
    assert len(requests) >= 3
    async with in_front_of(config, clocks, "ok") as play:
        for request in requests:
            _, answer, asked, spent_micros = await play(request)
            events = events_of(answer)
            kinds = [event["type"] for event in events]
            assert kinds[0] == "message_start" and kinds[-2:] == ["message_delta", "message_stop"]
            texts = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
            assert "".join(texts) == "Hello, world!"
            assert spent_micros == CALL_MICROS
            offered = {tool["name"] for tool in request["body"]["tools"]} - {"DeferredToolPlaceholder"}
            assert {tool["function"]["name"] for tool in asked.body["tools"]} == offered


async def test_results_of_its_tools_reach_the_model(config: Config, clocks: Clocks) -> None:
    [request] = [one for one in recorded("claude-code") if "tool_result" in str(one["body"]["messages"])][:1]
    async with in_front_of(config, clocks, "ok") as play:
        asked = (await play(request)).asked
    blocks = [
        block
        for message in request["body"]["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_result"
    ]
    results = [message for message in asked.body["messages"] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in results] == [block["tool_use_id"] for block in blocks]


async def test_its_tool_call_is_a_tool_use(config: Config, clocks: Clocks) -> None:
    [request] = [one for one in recorded("claude-code") if one["body"].get("tools")][:1]
    async with in_front_of(config, clocks, "tools") as play:
        answer = (await play(request)).answer
    events = events_of(answer)
    begun = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    assert [block["type"] for block in begun] == ["tool_use", "tool_use"]
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
