"""Recorded requests of Codex to POST /v1/responses: they are answered as it reads them, and paid once."""

from svc.config import Config
from tests.clients.recorded_requests import CALL_MICROS, events_of, in_front_of, recorded
from tests.conftest import Clocks


async def test_recorded_requests_are_streamed_to_their_end_and_paid(config: Config, clocks: Clocks) -> None:
    requests = recorded("codex")
    assert len(requests) >= 3
    async with in_front_of(config, clocks, "ok") as play:
        for request in requests:
            _, answer, _, spent_micros = await play(request)
            events = events_of(answer)
            assert (events[0]["type"], events[-1]["type"]) == ("response.created", "response.completed")
            response = events[-1]["response"]
            [text] = [part["text"] for item in response["output"] for part in item.get("content", ())]
            assert (text, response["status"]) == ("Hello, world!", "completed")
            assert response["usage"]["total_tokens"] == 12 and spent_micros == CALL_MICROS


async def test_outputs_of_its_tools_reach_the_model(config: Config, clocks: Clocks) -> None:
    async with in_front_of(config, clocks, "ok") as play:
        for request in recorded("codex"):
            outputs = [item["call_id"] for item in request["body"]["input"] if item["type"].endswith("_call_output")]
            asked = (await play(request)).asked
            results = [message for message in asked.body["messages"] if message["role"] == "tool"]
            assert [message["tool_call_id"] for message in results] == outputs
