"""The shape of a request of `POST /v1/responses`: what is checked, and how the interface document shows it."""

import re
from typing import Any

from svc.errors import invalid_value
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
    text,
    typed,
)

_PAIRS = 16
_KEY, _VALUE = text(64), text(512)


def _typed(kind: str, *about: Any, **fields: Shape[Any]) -> Object:
    return typed(f"Response{kind.title().replace('_', '')}Request", kind, *about, **fields)


# --- input

_PARTS = {
    "input_text": _typed("input_text", text=string),
    "output_text": _typed("output_text", text=string),
    "refusal": _typed("refusal", refusal=string),
    "input_image": _typed(
        "input_image",
        "",
        {"detail": string.about("`auto`, `low`, `high` or another value that the model knows.")},
        image_url=string.about("An https or `data:` address."),
    ),
    "input_file": _typed(
        "input_file",
        "A plain text, or a PDF. Chat model servers get the text of the PDF, so that they need its data in base64.",
        {
            "filename": string,
            "file_data": string.about("A `data:text/...;base64,` or `data:application/pdf;base64,` address."),
            "file_url": string.about("The https address of a PDF instead, for a server of Responses or Messages."),
            "file_id": only(None, "invalid_value", "No files are stored here: send file_data or file_url."),
        },
    ),
}
_CONTENT = by_type("a string or a list of parts", {str: string, list: list_of(tagged("type", _PARTS))})
_RESULT = {"call_id": filled, "output": _CONTENT}
_CALL = {"call_id": filled, "name": filled}
_NAMESPACE = {"namespace": string}
_REASONING_TEXTS = list_of(sent("ResponseReasoningPart", type=string, text=string))
_MESSAGE = passed_on(
    {"type": one_of("message"), "role": one_of("user", "assistant", "system", "developer"), "content": _CONTENT},
    "A message. Its `type` may be missing.",
    required=("role", "content"),
).named("ResponseMessageRequest")
_REFERENCE = passed_on(
    {"type": one_of("item_reference"), "id": filled}, "An output item of the last hour, by its id.", required=("id",)
).named("ResponseItemReference")

# --- tools

_DESCRIPTION = {"description": string}
_FUNCTION_TOOL = _typed(
    "function",
    "",
    {**_DESCRIPTION, "parameters": mapping.about("The arguments, as a JSON Schema."), "strict": boolean},
    name=filled,
)
_GRAMMAR = passed_on({"type": string, "syntax": string, "definition": string}).about(
    "The grammar's definition is added to the description. The model is not forced to follow it."
)
_CUSTOM_TOOL = _typed("custom", "A tool with one text as its input.", {**_DESCRIPTION, "format": _GRAMMAR}, name=filled)
_NAMESPACE_TOOL = _typed(
    "namespace",
    "A group of tools, which are offered one by one. Their calls name the `namespace`.",
    _DESCRIPTION,
    name=filled,
    tools=list_of(tagged("type", {"function": _FUNCTION_TOOL, "custom": _CUSTOM_TOOL})),
)
OWN_TOOLS = {"function": _FUNCTION_TOOL, "custom": _CUSTOM_TOOL, "namespace": _NAMESPACE_TOOL}
_HOSTED_TOOL = sent(
    "ResponseHostedTool",
    "A hosted tool. It does not exist here, is left out and named in `x-service-ignored-tools`.",
    type=string.about("", **{"not": {"enum": [*OWN_TOOLS]}}),
)
_TOOLS = list_of(tagged("type", OWN_TOOLS, _HOSTED_TOOL))
_ANY_TOOL = sent("ResponseToolName", "", {"name": string, **_NAMESPACE}, type=string)
_ALLOWED_TOOLS = _typed("allowed_tools", mode=one_of("auto", "required"), tools=list_of(_ANY_TOOL))
_TOOL_CHOICE = by_type(
    "none, auto, required or an object that names a tool",
    {str: one_of("none", "auto", "required"), dict: tagged("type", {"allowed_tools": _ALLOWED_TOOLS}, _ANY_TOOL)},
)

_ITEMS = {
    "message": _MESSAGE,
    "function_call": _typed("function_call", "", _NAMESPACE, **_CALL, arguments=string),
    "function_call_output": _typed("function_call_output", **_RESULT),
    "custom_tool_call": _typed("custom_tool_call", "", _NAMESPACE, **_CALL, input=string),
    "custom_tool_call_output": _typed("custom_tool_call_output", **_RESULT),
    "reasoning": _typed("reasoning", "", {"content": _REASONING_TEXTS, "summary": _REASONING_TEXTS}),
    "item_reference": _REFERENCE,
    "additional_tools": _typed("additional_tools", "More tools, which Codex sends as an item.", tools=_TOOLS),
}


def _check_untyped(item: dict[str, Any], param: str) -> dict[str, Any]:
    return (_MESSAGE if "role" in item else _REFERENCE).check(item, param)


_UNTYPED = Shape(_check_untyped, "an object", {})
_HOSTED_ITEM = sent(
    "ResponseHostedItem",
    "A call of a vendor's own tool, or its result. Only a server of this format gets it.",
    type=matching(re.compile("[a-z_]+_call(?:_output)?"), "a type of items", 64),
)
_ITEM = tagged("type", _ITEMS, _HOSTED_ITEM, _UNTYPED).named("ResponseInputItem")

# --- the request

_FORMATS = {
    "text": _typed("text"),
    "json_object": _typed("json_object"),
    "json_schema": _typed("json_schema", "", {**_DESCRIPTION, "strict": boolean}, name=filled, schema=mapping),
}


def _check_metadata(value: Any, param: str) -> Any:
    pairs = mapping.check(value, param)
    if len(pairs) > _PAIRS:
        raise invalid_value(f"{param} may have at most {_PAIRS} pairs.", param)
    for key, item in pairs.items():
        _KEY.check(key, f"a key of {param}")
        _VALUE.check(item, f"{param}.{key}")
    return pairs


_METADATA = Shape(
    _check_metadata,
    "an object",
    {"type": "object", "maxProperties": _PAIRS, "propertyNames": _KEY.schema, "additionalProperties": _VALUE.schema},
)


RESPONSE_REQUEST = passed_on(
    {
        "model": filled.about("As in chat completions."),
        "input": by_type("a string or a list of items", {str: string, list: list_of(_ITEM, least=1)}).about(
            "A text, or the whole conversation as items: nothing is stored between requests."
        ),
        "instructions": string.about("A system text, before those of the input."),
        "stream": boolean.about("Answer with server-sent events."),
        "max_output_tokens": integer(1, 2**31 - 1),
        "temperature": number(0, 2),
        "top_p": number(0, 1),
        "presence_penalty": number(-2, 2),
        "frequency_penalty": number(-2, 2),
        "top_logprobs": integer(0, 20),
        "tools": _TOOLS,
        "tool_choice": _TOOL_CHOICE,
        "parallel_tool_calls": boolean,
        "max_tool_calls": integer(1, 2**31 - 1).about("Limits hosted web search."),
        "text": passed_on({"format": tagged("type", _FORMATS), "verbosity": string}),
        "reasoning": passed_on(
            {
                "effort": string.about("Passed on as `reasoning_effort`."),
                "summary": string.about("If it is given, reasoning is returned as its own summary, too."),
            }
        ),
        "metadata": _METADATA,
        "user": string,
        "store": boolean.about("Nothing is stored: the response says `store: false`."),
        "include": list_of(string).about("`message.output_text.logprobs` is honoured."),
        "truncation": one_of("auto", "disabled").about("Nothing is truncated."),
        "safety_identifier": string,
        "prompt_cache_key": string,
        "service_tier": string,
        "background": only(False, "unsupported_value", "background must be false, because responses are not stored."),
        "previous_response_id": only(
            None, "previous_response_not_found", "Responses are not stored here. Send the whole conversation in input."
        ),
        "conversation": only(
            None,
            "unsupported_value",
            "conversation is not supported: nothing is stored here. Send the whole conversation in input.",
        ),
        "prompt": only(
            None, "unsupported_value", "prompt is not supported: there are no stored prompts. Send instructions."
        ),
    },
    "OpenAI's Responses request. Fields that are not listed are ignored.",
    required=("input",),
).named("ResponseRequest")
FIELDS = frozenset(field.name for field in RESPONSE_REQUEST.fields)
