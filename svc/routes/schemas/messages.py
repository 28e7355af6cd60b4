"""Shapes of the answers in Anthropic's Messages format."""

from typing import Any

from svc.errors import ApiError, anthropic_error
from svc.routes.schemas.common import CALCULATE, COST_HEADER, COUNT, IGNORED_HEADERS
from svc.server.interface import ANTHROPIC_ERROR, Answer, Content, as_event, kind_of, variants
from svc.shapes import anything, json_object, list_of, mapping, nullable, one_of, string

_INDEX = COUNT.about("The place of the block in `content`.", 0)
_CACHE_CREATION = json_object(
    "MessagesCacheCreation",
    "The written input, by the time that it stays in the cache.",
    ephemeral_5m_input_tokens=0,
    ephemeral_1h_input_tokens=0,
)
_USAGE = json_object(
    "MessagesUsage",
    "The settled counts: the model server's, or an estimate if it sends none.",
    input_tokens=COUNT.about("Input that was neither read from the model server's cache nor written to it.", 6),
    output_tokens=5,
    cache_creation_input_tokens=COUNT.about("Input that was written to the model server's cache.", 0),
    cache_read_input_tokens=COUNT.about("Input that came from the model server's cache.", 0),
    cache_creation=nullable(_CACHE_CREATION).about("Null at the begin of a stream.", _CACHE_CREATION.example),
    server_tool_use=json_object(
        "MessagesServerToolUsage",
        web_search_requests=COUNT,
        web_fetch_requests=COUNT.about("Always 0.", 0),
    )
    .about("With hosted web search: the number of searches.")
    .optional(),
)


_CITATION = kind_of(
    "MessagesCitation",
    "web_search_result_location",
    url=string,
    title=nullable(string),
    encrypted_index=string,
    cited_text=string,
)
_TEXT = kind_of(
    "MessagesTextBlock",
    "text",
    text="12 * (3 + 4) = 84",
    citations=list_of(_CITATION).about("The results of hosted web search that the text cites as `[1]`.").optional(),
)
_SEARCH = kind_of(
    "MessagesServerToolUse",
    "server_tool_use",
    "A search that the service has run.",
    id=string.about(pattern="^srvtoolu_", example="srvtoolu_01m3250v3vfsgzezy8ak224fj9"),
    name=one_of("web_search"),
    input=mapping,
)
_SEARCH_RESULT = kind_of(
    "MessagesSearchResult",
    "web_search_result",
    url=string,
    title=string,
    encrypted_content=string,
    page_age=nullable(string),
)
_SEARCH_ERROR = kind_of(
    "MessagesSearchError",
    "web_search_tool_result_error",
    error_code=one_of("unavailable", "max_uses_exceeded"),
)
_SEARCHED = kind_of(
    "MessagesSearchResults",
    "web_search_tool_result",
    tool_use_id=string,
    content=anything.about("The results, or an error.", [], anyOf=[list_of(_SEARCH_RESULT), _SEARCH_ERROR]),
)
_TOOL_USE = kind_of(
    "MessagesToolUseBlock",
    "tool_use",
    id="call_01m3250v3vfsgzezy8ak224fj9",
    name="calculate",
    input=mapping.about("Empty if the model did not write a JSON object.", {"expression": "12 * (3 + 4)"}),
)
_SIGNATURE = string.about("Shows the model server that it wrote this thinking. Empty if it signs nothing.")
_THINKING = kind_of("MessagesThinkingBlock", "thinking", thinking=string, signature=_SIGNATURE)
_REDACTED = kind_of("MessagesRedactedBlock", "redacted_thinking", data=string.about("Only the model server reads it."))
_BLOCK = variants(_TEXT, _TOOL_USE, _THINKING, _REDACTED, _SEARCH, _SEARCHED)
_ENDING = {
    "stop_reason": nullable(one_of("end_turn", "max_tokens", "tool_use", "stop_sequence", "refusal")).about(
        example="end_turn"
    ),
    "stop_sequence": nullable(string).about("The stop sequence that ended the text, if the model server names it."),
}
_MESSAGE = json_object(
    "MessagesMessage",
    id=string.about(example="msg_Qm4sT0kX8dWb2hLzYv6cNfRj", pattern="^msg_"),
    type=one_of("message"),
    role=one_of("assistant"),
    model=string.about("The model that answered.", "builtin/assistant"),
    content=list_of(_BLOCK).about("", [_TEXT.example]),
    **_ENDING,
    usage=_USAGE,
)
_DELTA = variants(
    kind_of("MessagesTextDelta", "text_delta", text="12 * (3"),
    kind_of("MessagesThinkingDelta", "thinking_delta", thinking=string),
    kind_of("MessagesSignatureDelta", "signature_delta", signature=string),
    kind_of("MessagesCitationsDelta", "citations_delta", citation=_CITATION),
    kind_of("MessagesInputDelta", "input_json_delta", partial_json=string.about("A part of the JSON.")),
)
_START = kind_of("MessagesStart", "message_start", message=_MESSAGE)
_TEXT_PIECE = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "12 * (3"}}
_END = kind_of("MessagesDelta", "message_delta", delta=json_object("MessagesEnding", **_ENDING), usage=_USAGE)
_EVENT = variants(
    _START,
    kind_of("MessagesBlockStart", "content_block_start", index=_INDEX, content_block=_BLOCK),
    kind_of("MessagesBlockDelta", "content_block_delta", index=_INDEX, delta=_DELTA),
    kind_of("MessagesBlockStop", "content_block_stop", index=_INDEX),
    _END,
    kind_of("MessagesStop", "message_stop"),
    kind_of("MessagesPing", "ping"),
    ANTHROPIC_ERROR,
)


_ABOUT_PASSED = "From a model server with `api = messages`, as Anthropic's reference describes it."
_PASSED = json_object("PassedMessage", _ABOUT_PASSED, id=string, type=one_of("message")).with_others()
_PASSED_EVENT = json_object("PassedMessageEvent", _ABOUT_PASSED, type=string).with_others()
_ANY_EVENT = anything.about(anyOf=[_EVENT, _PASSED_EVENT])


def _sent(value: dict[str, Any]) -> dict[str, str]:
    return {"event": value["type"], **as_event(value)}


_STREAM_EVENT = json_object(
    "MessagesStreamEvent",
    "One event: the lines `event: …` and `data: …`, and an empty line.",
    event=string.about("The `type` of the data.", "content_block_delta"),
    data=string.about(
        "An event as JSON.",
        as_event(_TEXT_PIECE)["data"],
        contentMediaType="application/json",
        contentSchema=_ANY_EVENT,
    ),
)
_MESSAGES = {
    "text": ("Text", _MESSAGE.example),
    "tool_use": ("A tool call", {**_MESSAGE.example, "content": [_TOOL_USE.example], "stop_reason": "tool_use"}),
}
_BEGUN = {**_MESSAGE.example, "content": [], "stop_reason": None}
_EVENTS = {
    "start": ("The first event", _sent({**_START.example, "message": _BEGUN})),
    "text": ("A piece of text", _STREAM_EVENT.example),
    "end": ("The end", _sent(_END.example)),
    "stop": ("The last event", _sent({"type": "message_stop"})),
    "fault": ("A model server that breaks off", _sent(anthropic_error(ApiError("upstream_error"), "req_4fGk2mXq"))),
}
MESSAGES_ANSWER = Answer(
    "The message: one JSON object, or with `stream: true` server-sent events.",
    contents={
        "application/json": Content(anything.about("", _MESSAGE.example, anyOf=[_MESSAGE, _PASSED]), _MESSAGES),
        "text/event-stream": Content(_STREAM_EVENT, _EVENTS),
    },
    headers={
        "x-service-cost-micros": COST_HEADER,
        **IGNORED_HEADERS,
    },
)
_QUESTION = {"model": "builtin/assistant", "messages": [{"role": "user", "content": "What is 12 * (3 + 4)?"}]}
_TOOLS = [{"name": CALCULATE["name"], "description": CALCULATE["description"], "input_schema": CALCULATE["parameters"]}]
MESSAGES_EXAMPLES = {
    "text": ("A question", {**_QUESTION, "max_tokens": 1024}),
    "stream": ("As a stream", {**_QUESTION, "max_tokens": 1024, "stream": True}),
    "tools": ("With a tool", {**_QUESTION, "max_tokens": 1024, "tools": _TOOLS}),
}
COUNT_EXAMPLES = {"text": ("A question", _QUESTION), "tools": ("With a tool", {**_QUESTION, "tools": _TOOLS})}
TOKEN_COUNT = json_object("MessagesTokenCount", input_tokens=22)
