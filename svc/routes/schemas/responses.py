"""Shapes of OpenAI's Responses."""

from typing import Any

from svc.routes.schemas.common import ARGUMENTS, CALCULATE, COST_HEADER, COUNT, IGNORED_HEADERS, SECONDS
from svc.server.interface import Answer, Content, kind_of, variants
from svc.shapes import Shape, anything, boolean, json_object, list_of, mapping, nullable, number, one_of, string, whole

_LOGPROBS = list_of(mapping).about("Log probabilities, if the request asks for them.", [])
_CITATION = kind_of(
    "ResponseUrlCitation",
    "url_citation",
    start_index=COUNT,
    end_index=COUNT,
    url=string,
    title=string,
)
_TEXT_PART = kind_of(
    "ResponseOutputText",
    "output_text",
    text="84",
    annotations=list_of(_CITATION).about("The results of hosted web search that the text cites as `[1]`.", []),
    logprobs=_LOGPROBS.optional(),
)
_REFUSAL_PART = kind_of("ResponseRefusal", "refusal", refusal=string)
_REASONING_PART = kind_of("ResponseReasoningText", "reasoning_text", text=string)
_SUMMARY_PART = kind_of("ResponseSummaryText", "summary_text", text=string)
_STATUS = one_of("in_progress", "completed", "incomplete").about(example="completed")
_CALL = {"call_id": string.about("The id that the tool's result repeats."), "name": string}
_NAMESPACE = string.about("The group that the tool belongs to.").optional()


def _item(title: str, kind: str, prefix: str, /, **fields: Shape[Any] | str | int) -> Shape[dict[str, Any]]:
    item_id = string.about(example=f"{prefix}_5n6vC0aYqTtWm3Ld8RkJxZeHgB1uPsFo", pattern=f"^{prefix}_")
    return json_object(title, id=item_id, type=one_of(kind), status=_STATUS, **fields)


_MESSAGE = _item(
    "ResponseMessage",
    "message",
    "msg",
    role=one_of("assistant"),
    content=list_of(variants(_TEXT_PART, _REFUSAL_PART), most=1).about(example=[_TEXT_PART.example]),
)
_ITEM = variants(
    _MESSAGE,
    _item(
        "ResponseReasoning",
        "reasoning",
        "rs",
        summary=list_of(_SUMMARY_PART, most=1).about("The same text, if the request has `reasoning.summary`.", []),
        content=list_of(_REASONING_PART, most=1),
        encrypted_content=string.about(
            "Only the model server reads it. Send the item back with the results."
        ).optional(),
    ),
    _item(
        "ResponseFunctionCall", "function_call", "fc", **_CALL, arguments=string.about("JSON."), namespace=_NAMESPACE
    ),
    json_object(
        "ResponseWebSearchCall",
        "A search that the service has run.",
        id=string.about(example="ws_5n6vC0aYqTtWm3Ld8RkJxZeHgB1uPsFo", pattern="^ws_"),
        type=one_of("web_search_call"),
        status=one_of("in_progress", "searching", "completed", "failed").about(example="completed"),
        action=json_object(
            "ResponseSearchAction",
            type=one_of("search"),
            query=string,
            queries=list_of(string).optional(),
            sources=list_of(json_object("ResponseSearchSource", type=one_of("url"), url=string))
            .about("With `web_search_call.action.sources` in `include`.")
            .optional(),
        ),
    ),
    _item("ResponseCustomToolCall", "custom_tool_call", "ctc", **_CALL, input=string, namespace=_NAMESPACE),
)
_USAGE = json_object(
    "ResponseUsage",
    "The same counts as in chat completions.",
    input_tokens=6,
    input_tokens_details=json_object("ResponseInputTokens", cached_tokens=COUNT, cache_write_tokens=COUNT),
    output_tokens=5,
    output_tokens_details=json_object("ResponseOutputTokens", reasoning_tokens=COUNT),
    total_tokens=11,
)
_ERROR = json_object(
    "ResponseFailure", code=one_of("server_error", "rate_limit_exceeded", "context_length_exceeded"), message=string
)
_REPEATED = "As in the request, or the default."
_RESPONSE = json_object(
    "Response",
    id=string.about(example="resp_8sQw2Xh4VfKc7TzN0LbYjMd6RgUaPe1E", pattern="^resp_"),
    object=one_of("response"),
    created_at=SECONDS,
    completed_at=nullable(SECONDS).about("Null unless the status is `completed`.", SECONDS.example),
    status=one_of("in_progress", "completed", "incomplete", "failed").about(example="completed"),
    error=nullable(_ERROR).about("The cause if the status is `failed`."),
    incomplete_details=nullable(
        json_object("ResponseIncompleteDetails", reason=one_of("max_output_tokens", "content_filter"))
    ).about("The cause if the status is `incomplete`."),
    model=string.about("The model that answered.", "builtin/assistant"),
    output=list_of(_ITEM).about(example=[_MESSAGE.example]),
    usage=nullable(_USAGE).about("Null in the first two events and in a failed response.", _USAGE.example),
    instructions=nullable(string).about(_REPEATED),
    max_output_tokens=nullable(whole).about(_REPEATED),
    max_tool_calls=nullable(whole).about(_REPEATED),
    metadata=mapping.about(_REPEATED, additionalProperties=True),
    parallel_tool_calls=boolean.about(_REPEATED),
    presence_penalty=number(-2, 2).about(_REPEATED, 0),
    frequency_penalty=number(-2, 2).about(_REPEATED, 0),
    prompt_cache_key=nullable(string).about(_REPEATED),
    safety_identifier=nullable(string).about(_REPEATED),
    temperature=number(0, 2).about(_REPEATED, 1),
    tool_choice=anything.about(_REPEATED, "auto"),
    top_logprobs=COUNT.about(_REPEATED),
    top_p=number(0, 1).about(_REPEATED, 1),
    user=nullable(string).about(_REPEATED),
    background=boolean.about("Always false.", False),
    previous_response_id=nullable(string).about("Always null."),
    service_tier=one_of("default"),
    store=boolean.about("Always false.", False),
    truncation=one_of("disabled"),
    reasoning=json_object("ResponseReasoningSettings", effort=nullable(string), summary=nullable(string)),
    text=json_object(
        "ResponseTextSettings",
        format=mapping.about(example={"type": "text"}, additionalProperties=True),
        verbosity=string.optional(),
    ).with_others(),
    tools=list_of(mapping).about("The tools of the request, without hosted ones that do not run here.", []),
)
_EVENT = json_object(
    "ResponseEvent",
    "One event. Its further fields depend on its `type`.",
    type=string.about(example="response.output_text.delta", pattern="^(response\\.|error$)"),
    sequence_number=COUNT,
    response=_RESPONSE.optional(),
    output_index=COUNT.optional(),
    item=_ITEM.optional(),
    part=variants(_TEXT_PART, _REFUSAL_PART, _REASONING_PART, _SUMMARY_PART).optional(),
    **{name: COUNT.optional() for name in ("content_index", "summary_index")},
    **{name: string.optional() for name in ("item_id", "delta", "text", "refusal", "arguments", "input", "name")},
    logprobs=_LOGPROBS.optional(),
    annotation=_CITATION.optional(),
    annotation_index=COUNT.optional(),
    message=string.about("Of an `error`, which ends a repeat of a stream.").optional(),
    **{name: nullable(string).optional() for name in ("code", "param")},
)
_ABOUT_PASSED = "From a model server with `api = responses`, as OpenAI's reference describes it."
_PASSED = json_object("PassedResponse", _ABOUT_PASSED, id=string, object=one_of("response")).with_others()
_PASSED_EVENT = json_object("PassedResponseEvent", _ABOUT_PASSED, type=string).with_others()
_ANY_EVENT = anything.about(anyOf=[_EVENT, _PASSED_EVENT])
_DELTA = (
    '{"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_5n6vC0aYqTtWm3Ld8RkJxZeHgB1uPsFo",'
    '"output_index":0,"content_index":0,"delta":"84","logprobs":[]}'
)
_STREAM_EVENT = json_object(
    "ResponseStreamEvent",
    "One event: a line `event: …`, which `[DONE]` lacks, a line `data: …` and an empty line.",
    data=anything.about(
        "An event. The last one is the text `[DONE]`.",
        _DELTA,
        anyOf=[one_of("[DONE]"), string.about(contentMediaType="application/json", contentSchema=_ANY_EVENT)],
    ),
    event=string.about("The `type` of the data.").optional(),
)
_EVENTS = {
    "delta": ("A part of the text", {"event": "response.output_text.delta", "data": _DELTA}),
    "done": ("The last event", {"data": "[DONE]"}),
}
RESPONSE_ANSWER = Answer(
    "The response: one JSON object, or with `stream: true` server-sent events.",
    contents={
        "application/json": Content(anything.about("", _RESPONSE.example, anyOf=[_RESPONSE, _PASSED])),
        "text/event-stream": Content(_STREAM_EVENT, _EVENTS),
    },
    headers={
        "x-service-cost-micros": COST_HEADER,
        **IGNORED_HEADERS,
    },
)
_CALCULATE = {"type": "function", **CALCULATE}
_QUESTION = {"type": "message", "role": "user", "content": "Calculate 12 * (3 + 4)"}
_CALLED = [
    _QUESTION,
    {"type": "function_call", "call_id": "call_1", "name": "calculate", "arguments": ARGUMENTS},
    {"type": "function_call_output", "call_id": "call_1", "output": "84"},
]
RESPONSE_EXAMPLES = {
    "text": ("A question", {"model": "builtin/assistant", "input": "What is 12 * (3 + 4)?"}),
    "stream": ("A stream", {"model": "builtin/echo", "input": "Hello, stream", "stream": True}),
    "tools": ("With a tool", {"model": "builtin/assistant", "input": [_QUESTION], "tools": [_CALCULATE]}),
    "result": ("With a tool's result", {"model": "builtin/assistant", "input": _CALLED, "tools": [_CALCULATE]}),
}
