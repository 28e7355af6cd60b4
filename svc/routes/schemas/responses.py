"""Shapes of OpenAI's Responses."""

from svc.routes.schemas.common import COUNT, SECONDS
from svc.routes.schemas.headers import COST_HEADER
from svc.server.interface import Answer, Content
from svc.shapes import anything, json_object, one_of, string

RESPONSE = json_object(
    "Response",
    {
        "id": string.about(example="resp_01m3250v3vn4qvxnatpwzmywwn", pattern="^resp_"),
        "object": one_of("response"),
        "created_at": SECONDS,
        "model": string.about(example="builtin/assistant"),
    },
    additionalProperties=True,
)
_EVENT = json_object(
    "ResponseEvent",
    {"type": string.about(pattern="^response\\."), "sequence_number": COUNT},
    additionalProperties=True,
)
_STREAM_EVENT = json_object(
    "ResponseStreamEvent",
    {
        "data": anything.about(
            "An event. The last one is the text `[DONE]`.",
            '{"type":"response.in_progress","sequence_number":1}',
            anyOf=[one_of("[DONE]"), string.about(contentMediaType="application/json", contentSchema=_EVENT)],
        )
    },
    optional={"event": string.about("The `type` of the data.")},
)
RESPONSE_TEXT = "OpenAI's Responses, without stored state."
RESPONSE_ANSWER = Answer(
    "The response: one JSON object, or with `stream: true` server-sent events.",
    contents={"application/json": Content(RESPONSE), "text/event-stream": Content(_STREAM_EVENT)},
    headers={"x-service-cost-micros": COST_HEADER},
)
RESPONSE_EXAMPLES = {"text": ("A question", {"model": "builtin/assistant", "input": "What is 12 * (3 + 4)?"})}
