"""Shapes of chat completions, in OpenAI's wire format."""

from typing import Any

from svc.errors import ApiError
from svc.routes.schemas.common import ARGUMENTS, CALCULATE, COUNT, ID, IGNORED_HEADERS, SECONDS, example_id
from svc.server.interface import ERROR, Answer, Content, as_event, header, named_header
from svc.shapes import anything, boolean, json_object, list_of, mapping, nullable, one_of, string

COMPLETION_USAGE = json_object(
    "CompletionUsage",
    "The model server's count, or an estimate if it sends none.",
    prompt_tokens=6,
    completion_tokens=5,
    total_tokens=COUNT.about("The sum of the two.", 11),
    prompt_tokens_details=mapping.optional(),
    completion_tokens_details=mapping.optional(),
).with_others()
_STEP_ID = "call_01m3250v3vfsgzezy8ak224fj9"
_WITHIN = string.about("The id of the call whose code has made this one.").optional()
STEP = json_object(
    "ToolStep",
    "What the service did for an answer: one of the two.",
    tool_call=json_object(
        "StepCall",
        id=string.about(example=_STEP_ID),
        name="calculate",
        arguments=string.about("As the model wrote them.", ARGUMENTS),
        within=_WITHIN,
    ).optional(),
    tool_result=json_object(
        "StepResult",
        id=string.about(example=_STEP_ID),
        name="calculate",
        ok=boolean.about("Whether the tool succeeded.", True),
        result=anything.about("Any JSON, or the reason of the failure.", "84"),
        within=_WITHIN,
    ).optional(),
)
SOURCE = json_object(
    "Source",
    number=COUNT.about("As the text cites it: `[1]`.", 1),
    kind=one_of("web", "file"),
    url=string.about("Of a page.", "https://example.com/").optional(),
    title=nullable(string).about("Of a page.", "Example").optional(),
    file=string.about("Of a passage: the artifact's id.").optional(),
    name=string.about("Of a passage: the name of its file.").optional(),
    page=nullable(COUNT).about("Of a passage: its page or slide.").optional(),
    from_line=COUNT.about("Of a passage: its first line in the file's text.").optional(),
    to_line=COUNT.about("Of a passage: its last line.").optional(),
    text=string.about("Of a passage: its text.").optional(),
)
CITATION = json_object(
    "Citation",
    number=COUNT.about("The passage that the text cites as `[1]`.", 1),
    quotation=nullable(string).about("What the sentence quotes: eight words or more."),
    verified=nullable(boolean).about("Whether the passage has the quotation literally. Null: nothing is quoted.", True),
)
_FUNCTION_CALL = json_object("FunctionCall", name="calculate", arguments=string.about("JSON.", ARGUMENTS)).with_others()
_TOOL_CALL = json_object(
    "ToolCall",
    id="call_01m3250v3vfsgzezy8ak224fj9",
    type=string.about("`function`, or `custom` with `custom` in the place of `function`.", "function"),
    function=_FUNCTION_CALL.optional(),
).with_others()
_MESSAGE = json_object(
    "ChatCompletionMessage",
    role=one_of("assistant"),
    content=nullable(string).about("The text. Null if there are only tool calls.", "12 * (3 + 4) = 84"),
    refusal=nullable(string),
    tool_calls=list_of(_TOOL_CALL, least=1).optional(),
    function_call=_FUNCTION_CALL.about(deprecated=True).optional(),
).with_others()
_FINISH_REASON = one_of("stop", "length", "tool_calls", "content_filter", "function_call")
_CHOICE = json_object(
    "ChatCompletionChoice",
    index=COUNT,
    message=_MESSAGE,
    logprobs=nullable(mapping),
    finish_reason=_FINISH_REASON.about("`stop` is the normal end."),
).with_others()
_COMPLETION_ID = string.about(example="chatcmpl-Qm4sT0kX8dWb2hLzYv6cNfRjPa1eG", pattern="^chatcmpl-")
_CHAT_COMPLETION = json_object(
    "ChatCompletion",
    id=_COMPLETION_ID,
    object=one_of("chat.completion"),
    created=SECONDS,
    model=string.about("The requested model.", "builtin/assistant"),
    choices=list_of(_CHOICE, least=1),
    usage=COMPLETION_USAGE,
    status=one_of("stopped").about("In a session: the answer was stopped.").optional(),
    service=json_object("AnswerSteps", steps=list_of(STEP)).about("In a session with `x-service-tools`.").optional(),
).with_others()
_FUNCTION_DELTA = json_object(
    "FunctionCallDelta", name=string.optional(), arguments=string.about("A part of the JSON.").optional()
).with_others()
_TOOL_CALL_DELTA = json_object(
    "ToolCallDelta",
    "The first delta of a call has its id, type and name. Later ones have parts of its arguments.",
    index=COUNT,
    id=string.optional(),
    type=string.optional(),
    function=_FUNCTION_DELTA.optional(),
).with_others()
_DELTA = json_object(
    "ChatCompletionDelta",
    "Only new content. The role is sent once, first.",
    role=one_of("assistant").optional(),
    content=nullable(string).optional(),
    refusal=nullable(string).optional(),
    tool_calls=list_of(_TOOL_CALL_DELTA, least=1).optional(),
    function_call=_FUNCTION_DELTA.about(deprecated=True).optional(),
).with_others()
_CHUNK_CHOICE = json_object(
    "ChatCompletionChunkChoice",
    index=COUNT,
    delta=_DELTA.about(example={"content": "Hello, "}),
    finish_reason=nullable(_FINISH_REASON).about("Null until the choice's last chunk."),
    logprobs=nullable(mapping).optional(),
).with_others()
_CHAT_COMPLETION_CHUNK = json_object(
    "ChatCompletionChunk",
    "One event of a stream. `id`, `created` and `model` are the same in all of them.",
    id=_COMPLETION_ID,
    object=one_of("chat.completion.chunk"),
    created=SECONDS,
    model=string.about("The requested model.", "builtin/echo"),
    choices=list_of(_CHUNK_CHOICE).about("Empty only in the usage chunk."),
    usage=nullable(COMPLETION_USAGE).about("Only with `include_usage`. Null in every chunk but the last.").optional(),
    status=one_of("stopped").about("In a session, in the last chunk of a stopped answer.").optional(),
    service=STEP.about("In a session with `x-service-tools`: a step. The delta is empty.").optional(),
).with_others()
_CHUNK_JSON = string.about(
    contentMediaType="application/json", contentSchema={"anyOf": [_CHAT_COMPLETION_CHUNK, ERROR]}
)
_STREAM_EVENT = json_object(
    "ChatStreamEvent",
    "One event: a line `data: …` and an empty line.",
    data=anything.about(
        "A chunk, or the error that ends the stream. The last event is the text `[DONE]`.",
        anyOf=[one_of("[DONE]"), _CHUNK_JSON],
    ),
)


_CALL = {**_TOOL_CALL.example, "function": _FUNCTION_CALL.example}
_CALLED = {
    **_CHOICE.example,
    "message": {**_MESSAGE.example, "content": None, "tool_calls": [_CALL]},
    "finish_reason": "tool_calls",
}
_USAGE_CHUNK = {**_CHAT_COMPLETION_CHUNK.example, "choices": [], "usage": COMPLETION_USAGE.example}
_FAULT = {name: ApiError("upstream_error").error[name] for name in ("code", "param", "type", "message")}
FAILED_IN_CONVERSATION = header(
    "In a session, if the model server failed: the conversation with the question.",
    ID,
    example_id("conv"),
    required=False,
)
_STOPPED_CHUNK = {
    **_CHAT_COMPLETION_CHUNK.example,
    "choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}],
    "status": "stopped",
}
_COMPLETIONS = {
    "text": ("Text", _CHAT_COMPLETION.example),
    "tool_call": ("A tool call", {**_CHAT_COMPLETION.example, "choices": [_CALLED]}),
}
_CHUNK = {"chunk": ("A chunk", as_event(_CHAT_COMPLETION_CHUNK.example))}
_STOPPED = {"stopped": ("The end of a stopped answer", as_event(_STOPPED_CHUNK))}
_FURTHER = {
    "usage": ("The usage", as_event(_USAGE_CHUNK)),
    "fault": ("The model server fails during the stream", as_event({"error": _FAULT})),
}
_DONE = {"done": ("The last event", {"data": "[DONE]"})}
FOLLOWED_ANSWER = Answer(
    "The chunks of the answer.",
    contents={"text/event-stream": Content(_STREAM_EVENT, {**_CHUNK, **_STOPPED, **_DONE})},
)
CONVERSATION_HEADER = named_header(
    "Conversation",
    "In a session: the conversation that stores the question and the answer, or the summary.",
    ID,
    example_id("conv"),
    required=False,
)
CHAT_ANSWER = Answer(
    "The answer: one JSON object, or with `stream: true` server-sent events.",
    contents={
        "application/json": Content(_CHAT_COMPLETION, _COMPLETIONS),
        "text/event-stream": Content(_STREAM_EVENT, {**_CHUNK, **_FURTHER, **_DONE}),
    },
    headers={
        "x-service-cost-micros": header(
            "The cost in micros (millionths of a US dollar): on JSON answers of models with a price.",
            COUNT,
            11,
            required=False,
        ),
        "x-service-conversation": CONVERSATION_HEADER,
        "x-service-memory": named_header(
            "Memory", "In a session: the number of recalled passages of earlier messages.", COUNT, 0, required=False
        ),
        **IGNORED_HEADERS,
    },
)


def _request(model: str, question: str, **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": question}], **more}


CHAT_EXAMPLES = {
    "text": ("A question", _request("builtin/assistant", "What is 12 * (3 + 4)?")),
    "stream": (
        "A stream with its usage",
        _request("builtin/echo", "Hello, stream", stream=True, stream_options={"include_usage": True}),
    ),
    "tools": (
        "With a tool",
        _request("builtin/assistant", "Calculate 12 * (3 + 4)", tools=[{"type": "function", "function": CALCULATE}]),
    ),
}
