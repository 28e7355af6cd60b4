"""The ends of streams that pass: what the service writes where the model server does not end them."""

import json
from types import SimpleNamespace
from typing import Any

from svc.errors import ApiError
from svc.inference.answer.passed import Passed, PassedAnswer
from svc.inference.formats.answer import AnswerWriter
from svc.inference.formats.passed_answer import PassedMessage, PassedResponse, PassedWriter
from tests.support.format_events import Said, events_of
from tests.support.sdk_types import checked_event

SAID = Said([{"text": "Hello, world!"}])
USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
remembered: dict[str, bytes] = {}


def writer_of(api: str, *, cut: bool = False, other: Any = AnswerWriter) -> PassedWriter:
    call: Any = SimpleNamespace(
        server_answer=PassedAnswer(), chunk_writer=SimpleNamespace(cut=cut), usage=USAGE, request_id="req_1"
    )
    return PassedMessage(call, other) if api == "messages" else PassedResponse(call, other, remembered.update)


def passed(event: dict[str, Any]) -> Passed:
    data = json.dumps(event).encode()
    return Passed(b"event: %b\ndata: %b\n\n" % (event["type"].encode(), data), [], event)


def begun(writer: PassedWriter, api: str, count: int) -> list[dict[str, Any]]:
    """Pass the first events of an answer, and return them."""
    events = events_of(api, SAID, "m")[:count]
    blocks = b"".join(writer.events([passed(event) for event in events]))
    assert events_in(blocks) == events
    writer.server_answer.begun = True
    return events


def events_in(blocks: bytes) -> list[dict[str, Any]]:
    data = [block.rpartition("data: ")[2] for block in blocks.decode().split("\n\n")[:-1]]
    return [json.loads(one) for one in data if one != "[DONE]"]


def test_stream_of_messages_that_exceeds_its_limit_closes_its_block() -> None:
    writer = writer_of("messages", cut=True)
    begun(writer, "messages", 3)
    stop, delta, end = [checked_event("messages", event) for event in events_in(writer.end())]
    assert (stop["type"], stop["index"], end["type"]) == ("content_block_stop", 0, "message_stop")
    assert delta["delta"]["stop_reason"] == "max_tokens" and delta["usage"]["output_tokens"] == 5


def test_response_that_exceeds_its_limit_is_incomplete() -> None:
    writer = writer_of("responses", cut=True)
    before = begun(writer, "responses", 5)
    blocks = writer.end()
    (end,) = [checked_event("responses", event) for event in events_in(blocks)]
    assert end["type"] == "response.incomplete" and blocks.endswith(b"data: [DONE]\n\n")
    assert end["sequence_number"] == before[-1]["sequence_number"] + 1
    assert end["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert end["response"]["usage"]["total_tokens"] == 12


def test_faults_end_a_stream_once_in_its_format() -> None:
    error = ApiError("upstream_error")
    writer = writer_of("messages")
    begun(writer, "messages", 3)
    (end,) = events_in(writer.fault(error))
    assert (end["type"], end["error"]["type"]) == ("error", "api_error")
    writer = writer_of("responses")
    begun(writer, "responses", 5)
    (end,) = [checked_event("responses", event) for event in events_in(writer.fault(error))]
    assert (end["response"]["status"], end["response"]["error"]["code"]) == ("failed", "server_error")


def test_complete_response_is_remembered_by_its_items() -> None:
    writer = writer_of("responses")
    events = begun(writer, "responses", 99)
    assert writer.end() == b"data: [DONE]\n\n"
    assert {json.loads(item)["id"] for item in remembered.values()} == {events[-1]["response"]["output"][0]["id"]}


def test_other_writer_writes_what_does_not_pass() -> None:
    class Other(AnswerWriter):
        def end(self) -> bytes:
            return b"the end"

        def answer(self, completion: dict[str, Any], written: bytes) -> bytes:
            return b"translated"

        def fault(self, error: ApiError) -> bytes:
            raise ApiError("invalid_value")

    writer = writer_of("responses", other=Other)
    assert writer.end() == b"the end" and writer.answer({}, b"") == b"translated"
    (end,) = events_in(writer.fault(ApiError("upstream_error")))  # the request has no translation
    assert end["type"] == "error" and end["sequence_number"] == 0
