"""Schemas of OpenAI's Responses: what is answered."""

from svc.routes.schemas.headers import COST_HEADER
from svc.server.interface import Answer, Content, choice, integer, record, string

RESPONSE = record(
    "Response",
    {"id": string(pattern="^resp_"), "object": choice("response"), "created_at": integer("Unix seconds."), "model": string()},
    additionalProperties=True,
)
RESPONSE_EVENT = record(
    "ResponseEvent",
    {"type": string(pattern="^response\\."), "sequence_number": integer(minimum=0)},
    additionalProperties=True,
)
RESPONSE_STREAM_EVENT = record(
    "ResponseStreamEvent",
    {
        "event": string("The `type` of the data."),
        "data": {
            "description": "An event; in the last one of all the text `[DONE]`.",
            "anyOf": [choice("[DONE]"), string(contentMediaType="application/json", contentSchema=RESPONSE_EVENT)],
        },
    },
    required=("data",),
    example={"event": "response.in_progress", "data": '{"type":"response.in_progress","sequence_number":1}'},
)
RESPONSE_TEXT = "OpenAI's Responses, without stored state."
RESPONSE_ANSWER = Answer(
    "The response: one JSON object, or with `stream: true` server-sent events.",
    contents={"application/json": Content(RESPONSE), "text/event-stream": Content(RESPONSE_STREAM_EVENT)},
    headers={"x-service-cost-micros": COST_HEADER},
)
RESPONSE_EXAMPLES = {"text": ("A question", {"model": "builtin/assistant", "input": "What is 12 * (3 + 4)?"})}
