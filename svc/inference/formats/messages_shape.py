"""The shape of a request in Anthropic's Messages format: what is checked before it is translated, and how the document shows it.

Fields that have no meaning here (`cache_control`, `metadata`, `service_tier`) are accepted and ignored.
"""

from typing import Any

from svc.errors import ApiError
from svc.shapes import (
    Shape,
    boolean,
    by_type,
    filled,
    integer,
    list_of,
    mapping,
    number,
    one_of,
    passed_on,
    string,
    tagged,
    whole,
)

_TEXT = passed_on({"type": one_of("text"), "text": string}, required=("type", "text")).named("MessagesText")
_IMAGE_SOURCE = tagged(
    "type",
    {
        "base64": passed_on(
            {
                "type": one_of("base64"),
                "media_type": one_of("image/jpeg", "image/png", "image/gif", "image/webp"),
                "data": string,
            },
            required=("type", "media_type", "data"),
        ).named("MessagesBase64Image"),
        "url": passed_on(
            {"type": one_of("url"), "url": string.about("An https or `data:` address.")}, required=("type", "url")
        ).named("MessagesImageAddress"),
    },
)
_IMAGE = passed_on({"type": one_of("image"), "source": _IMAGE_SOURCE}, required=("type", "source")).named("MessagesImage")
_PLAIN = {"text": _TEXT, "image": _IMAGE}
_TEXT_SOURCES = tagged(
    "type",
    {
        "text": passed_on({"type": one_of("text"), "data": string}, required=("type", "data")).named("MessagesTextSource"),
        "content": passed_on(
            {
                "type": one_of("content"),
                "content": by_type("a string or a list of blocks", {str: string, list: list_of(tagged("type", _PLAIN))}),
            },
            required=("type", "content"),
        ).named("MessagesContentSource"),
    },
)


def _check_document_source(value: Any, param: str) -> Any:
    if isinstance(value, dict) and value.get("type") in ("base64", "url", "file"):
        message = f"{param} must be plain text: PDF documents and stored files cannot be sent to models here."
        raise ApiError("invalid_value", message, param=param)
    return _TEXT_SOURCES.check(value, param)


_DOCUMENT_SOURCE = Shape(_check_document_source, _TEXT_SOURCES.expected, _TEXT_SOURCES.schema)
_DOCUMENT = passed_on(
    {"type": one_of("document"), "source": _DOCUMENT_SOURCE, "title": string, "context": string},
    "Plain text only: a PDF is refused with 400.",
    required=("type", "source"),
).named("MessagesDocument")
_TOOL_REFERENCE = passed_on(
    {"type": one_of("tool_reference"), "tool_name": filled},
    "A tool that a search has found: one with `defer_loading` is offered to the model from here on.",
    required=("type", "tool_name"),
).named("MessagesToolReference")
_RESULT = tagged("type", {**_PLAIN, "document": _DOCUMENT, "tool_reference": _TOOL_REFERENCE})
_TOOL_RESULT = passed_on(
    {
        "type": one_of("tool_result"),
        "tool_use_id": filled,
        "content": by_type("a string or a list of blocks", {str: string, list: list_of(_RESULT)}),
        "is_error": boolean,
    },
    "The result of a tool call of the assistant's turn before.",
    required=("type", "tool_use_id"),
).named("MessagesToolResult")
_TOOL_USE = passed_on(
    {"type": one_of("tool_use"), "id": filled, "name": filled, "input": mapping}, required=("type", "id", "name", "input")
).named("MessagesToolUse")
_THINKING = passed_on(
    {"type": one_of("thinking"), "thinking": string, "signature": string},
    "Goes back to the model server as `reasoning_content`. The signature is not read.",
    required=("type", "thinking"),
).named("MessagesThinking")
_REDACTED = passed_on({"type": one_of("redacted_thinking"), "data": string}, "Ignored.", required=("type",)).named(
    "MessagesRedactedThinking"
)


def _message(role: str, description: str, blocks: dict[str, Shape[Any]]) -> Shape[dict[str, Any]]:
    content = by_type("a string or a list of blocks", {str: string, list: list_of(tagged("type", blocks))})
    found = {"role": one_of(role), "content": content}
    return passed_on(found, description, required=("role", "content")).named(f"Messages{role.title()}Message")


_MESSAGE = tagged(
    "role",
    {
        "user": _message("user", "What the person says.", {**_PLAIN, "document": _DOCUMENT, "tool_result": _TOOL_RESULT}),
        "assistant": _message(
            "assistant",
            "An earlier answer; at the end, the beginning of the answer.",
            {"text": _TEXT, "tool_use": _TOOL_USE, "thinking": _THINKING, "redacted_thinking": _REDACTED},
        ),
        "system": _message("system", "Instructions. They are moved into the first message of the chat request.", {"text": _TEXT}),
    },
)
_CUSTOM_TOOL = passed_on(
    {
        "type": one_of("custom"),
        "name": filled,
        "description": string.about("When and how to use it."),
        "input_schema": mapping.about("The input, as a JSON Schema."),
        "strict": boolean,
        "defer_loading": boolean.about("Offer the tool only after a `tool_reference` to it."),
    },
    required=("name", "input_schema"),
).named("MessagesTool")
_SERVER_TOOL = passed_on(
    {"type": string.about("", **{"not": {"const": "custom"}}), "name": filled},
    "A tool that Anthropic's servers run, such as `web_search_20250305`. It is left out, and named in `x-service-ignored-tools`.",
    required=("type",),
).named("MessagesServerTool")


def _check_tool(value: Any, param: str) -> Any:
    typed = isinstance(value, dict) and value.get("type") not in (None, "custom")
    return (_SERVER_TOOL if typed else _CUSTOM_TOOL).check(value, param)


_TOOL = Shape(_check_tool, "an object", {"anyOf": [_CUSTOM_TOOL.schema, _SERVER_TOOL.schema]})
_PARALLEL = {"disable_parallel_tool_use": boolean}
_TOOL_CHOICE = tagged(
    "type",
    {
        "auto": passed_on({"type": one_of("auto"), **_PARALLEL}, required=("type",)).named("MessagesAutoChoice"),
        "any": passed_on({"type": one_of("any"), **_PARALLEL}, required=("type",)).named("MessagesAnyChoice"),
        "tool": passed_on({"type": one_of("tool"), "name": filled, **_PARALLEL}, required=("type", "name")).named(
            "MessagesToolChoice"
        ),
        "none": passed_on({"type": one_of("none")}, required=("type",)).named("MessagesNoChoice"),
    },
)
_FORMAT = passed_on({"type": one_of("json_schema"), "schema": mapping}, required=("type", "schema")).named("MessagesFormat")
_NO_SERVERS = list_of(mapping, most=0).about("Tools of MCP servers cannot be called here.")
_SYSTEM = by_type("a string or a list of text blocks", {str: string, list: list_of(_TEXT)})

_COUNTED_FIELDS: dict[str, Shape[Any]] = {
    "model": filled.about("An id or an alias out of `GET /v1/models`. Without one: as in chat completions."),
    "messages": list_of(_MESSAGE, least=1).about("The conversation so far."),
    "system": _SYSTEM.about("Instructions. A block that begins with `x-anthropic-billing-header:` is left out."),
    "tools": list_of(_TOOL).about("What the model may call."),
    "tool_choice": _TOOL_CHOICE,
    "thinking": passed_on(
        {"type": one_of("enabled", "adaptive", "disabled"), "budget_tokens": whole},
        "Whether the answer has `thinking` blocks. `budget_tokens` and `display` change nothing.",
        required=("type",),
    ),
    "output_config": passed_on(
        {"effort": string.about("Goes to the model server as `reasoning_effort`."), "format": _FORMAT},
    ),
    "output_format": _FORMAT,
    "mcp_servers": _NO_SERVERS,
}
_FIELDS: dict[str, Shape[Any]] = {
    **_COUNTED_FIELDS,
    "max_tokens": integer(1, 2**31 - 1).about("The most tokens of output."),
    "stop_sequences": list_of(string),
    "temperature": number(0, 1),
    "top_p": number(0, 1),
    "top_k": whole,
    "stream": boolean.about("Answer with server-sent events."),
}
_TEXT_ABOUT = "Anthropic's format. Fields that are not listed here are ignored."
MESSAGES_REQUEST = passed_on(_FIELDS, _TEXT_ABOUT, required=("max_tokens", "messages")).named("MessagesRequest")
COUNT_REQUEST = passed_on(_COUNTED_FIELDS, _TEXT_ABOUT, required=("messages",)).named("MessagesCountRequest")
