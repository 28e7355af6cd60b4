"""The shape of a request in Anthropic's Messages format: what is checked before it is translated, and how the document
shows it.

Fields that have no meaning here (`metadata`, `service_tier`) are accepted and ignored. `cache_control` is passed on
where the catalog says so (svc/inference/cache_marks.py).
"""

import re
from typing import Any

from svc.inference.formats.request import only
from svc.shapes import (
    Object,
    Shape,
    boolean,
    by_type,
    filled,
    integer,
    list_of,
    mapping,
    matching,
    number,
    one_of,
    passed_on,
    sent,
    string,
    tagged,
    typed,
    whole,
)


def _tagged(**variants: Object) -> Shape[Any]:
    return tagged("type", variants)


def _text_or(blocks: Shape[Any]) -> Shape[Any]:
    return by_type("a string or a list of blocks", {str: string, list: list_of(blocks)})


# --- blocks

_TEXT = typed("MessagesText", "text", text=string)
_IMAGE_TYPE = one_of("image/jpeg", "image/png", "image/gif", "image/webp")
_IMAGE_SOURCE = _tagged(
    base64=typed("MessagesBase64Image", "base64", media_type=_IMAGE_TYPE, data=string),
    url=typed("MessagesImageAddress", "url", url=string.about("An https or `data:` address.")),
)
_IMAGE = typed("MessagesImage", "image", source=_IMAGE_SOURCE)
_PLAIN = {"text": _TEXT, "image": _IMAGE}
_DOCUMENT_SOURCE = _tagged(
    text=typed("MessagesTextSource", "text", data=string),
    content=typed("MessagesContentSource", "content", content=_text_or(_tagged(**_PLAIN))),
    base64=typed("MessagesBase64Document", "base64", media_type=one_of("application/pdf"), data=string),
    url=typed(
        "MessagesDocumentAddress",
        "url",
        url=string.about("An https address, for a server of Messages or Responses."),
    ),
)


_DOCUMENT = typed(
    "MessagesDocument",
    "document",
    "A plain text, or a PDF. Chat model servers get the text of the PDF, so that they need its data in base64.",
    {"title": string, "context": string},
    source=_DOCUMENT_SOURCE,
)
_TOOL_REFERENCE = typed(
    "MessagesToolReference",
    "tool_reference",
    "A tool that a search has found. If it has `defer_loading`, the model is offered it from here on.",
    tool_name=filled,
)
_TOOL_RESULT = typed(
    "MessagesToolResult",
    "tool_result",
    "The result of a tool call in the assistant's turn before.",
    {"content": _text_or(_tagged(**_PLAIN, document=_DOCUMENT, tool_reference=_TOOL_REFERENCE)), "is_error": boolean},
    tool_use_id=filled,
)
_TOOL_USE = typed("MessagesToolUse", "tool_use", id=filled, name=filled, input=mapping)
_THINKING = typed(
    "MessagesThinking",
    "thinking",
    "Goes back to the model server, if it can with its signature.",
    thinking=string,
)
_REDACTED = typed("MessagesRedactedThinking", "redacted_thinking", "Goes back to the model server that has sealed it.")


_HOSTED_BLOCK = sent(
    "MessagesHostedBlock",
    "A call of a tool that Anthropic's servers run, or its result. Only a server of this format gets it.",
    type=matching(re.compile("server_tool_use|mcp_tool_use|[a-z_]+_tool_result"), "a type of blocks", 64),
)


def _message(role: str, description: str, other: Object | None = None, **blocks: Object) -> Object:
    found = {"role": one_of(role), "content": _text_or(tagged("type", blocks, other))}
    return passed_on(found, description, required=("role", "content")).named(f"Messages{role.title()}Message")


_ASSISTANT = {"text": _TEXT, "tool_use": _TOOL_USE, "thinking": _THINKING, "redacted_thinking": _REDACTED}
_MESSAGE = tagged(
    "role",
    {
        "user": _message("user", "A message of the person.", **_PLAIN, document=_DOCUMENT, tool_result=_TOOL_RESULT),
        "assistant": _message(
            "assistant",
            "An earlier answer. At the end, the beginning of the new answer.",
            _HOSTED_BLOCK,
            **_ASSISTANT,
        ),
        "system": _message(
            "system", "Instructions. They are moved into the first message of the chat request.", text=_TEXT
        ),
    },
)

# --- tools

_TOOL = passed_on(
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
_SERVER_TOOL = sent(
    "MessagesServerTool",
    "A tool that Anthropic's servers run. With `[search]` in the catalog, the service runs `web_search_20250305` and "
    "later. Others are left out, and named in `x-service-ignored-tools`.",
    {"name": filled},
    type=string.about("", **{"not": {"const": "custom"}}),
)
_ALONE = {"disable_parallel_tool_use": boolean}
_TOOL_CHOICE = _tagged(
    auto=typed("MessagesAutoChoice", "auto", "", _ALONE),
    any=typed("MessagesAnyChoice", "any", "", _ALONE),
    tool=typed("MessagesToolChoice", "tool", "", _ALONE, name=filled),
    none=typed("MessagesNoChoice", "none"),
)

# --- the request

_FORMAT = typed("MessagesFormat", "json_schema", schema=mapping)
_COUNTED: dict[str, Shape[Any]] = {
    "model": filled.about("An id or an alias out of `GET /v1/models`. Without one: as in chat completions."),
    "messages": list_of(_MESSAGE, least=1).about("The conversation so far."),
    "system": _text_or(_TEXT).about(
        "Instructions. A block that begins with `x-anthropic-billing-header:` is left out."
    ),
    "tools": list_of(tagged("type", {"custom": _TOOL}, _SERVER_TOOL, _TOOL)).about("What the model may call."),
    "tool_choice": _TOOL_CHOICE,
    "thinking": passed_on(
        {"type": one_of("enabled", "adaptive", "disabled"), "budget_tokens": whole},
        "Whether the answer has `thinking` blocks. Without an effort in `output_config`, `budget_tokens` is sent as "
        "`reasoning_effort`. Up to 1,024 is minimal, 2,048 low, 8,192 medium, 16,384 high, 32,768 xhigh, "
        "and more is max. `display` changes nothing.",
        required=("type",),
    ),
    "output_config": passed_on(
        {"effort": string.about("Sent to the model server as `reasoning_effort`."), "format": _FORMAT}
    ),
    "output_format": _FORMAT,
    "mcp_servers": list_of(mapping, most=0).about("Tools of MCP servers cannot be called here."),
}
# The SDKs of Anthropic continue without a thread after this error.
_NO_THREADS = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
_FIELDS: dict[str, Shape[Any]] = {
    **_COUNTED,
    "thread": only(
        None,
        "unsupported_value",
        "thread is not supported: nothing is stored here. Send the whole conversation in messages, without thread.",
        anthropic={"details": _NO_THREADS},
    ),
    "compaction": only(
        None, "unsupported_value", "compaction is not supported. Ask the model for a summary with a message."
    ),
    "max_tokens": integer(1, 2**31 - 1).about("The most tokens of output."),
    "stop_sequences": list_of(string),
    "temperature": number(0, 1),
    "top_p": number(0, 1),
    "top_k": whole,
    "stream": boolean.about("Answer with server-sent events."),
}
FIELDS = frozenset(_FIELDS)
_ABOUT = "Anthropic's format. Fields that are not listed here are ignored."
MESSAGES_REQUEST = passed_on(_FIELDS, _ABOUT, required=("max_tokens", "messages")).named("MessagesRequest")
COUNT_REQUEST = passed_on(_COUNTED, _ABOUT, required=("messages",)).named("MessagesCountRequest")
