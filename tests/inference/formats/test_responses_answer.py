"""svc/inference/formats/responses_answer.py: one response, and its events."""

import orjson

from svc.inference.formats.responses_answer import NamedTool, ResponseWriter
from tests.inference.formats.test_answer import call, chunk
from tests.support.responses import checked_events

USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def test_a_custom_tool_gets_its_one_argument_back() -> None:
    writer = ResponseWriter(
        None,  # type: ignore[arg-type]  # it asks the call nothing
        echo=b'"parallel_tool_calls":true,"tools":[],"tool_choice":"auto"',
        tools={"patch": NamedTool("patch", custom=True)},
        summary=False,
        clock=lambda: 5.0,
        remember=lambda items: None,
    )
    begin = call(0, id="call_1")
    begin["tool_calls"][0]["function"]["name"] = "patch"
    parts = writer.events(
        [chunk(begin), chunk(call(0, '{"input": "é\\n"}')), chunk({}, "tool_calls"), {**chunk({}), "choices": [], "usage": USAGE}]
    )
    events = checked_events(b"".join(parts) + writer.end())
    assert [event["type"] for event in events][2:-1] == [
        "response.output_item.added",
        "response.custom_tool_call_input.delta",
        "response.custom_tool_call_input.done",
        "response.output_item.done",
    ]
    (item,) = events[-1]["response"]["output"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "patch", "é\n") and orjson.dumps(item)
