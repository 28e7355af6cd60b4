"""The shape of a request of `POST /v1/responses`: what is checked, and how the interface document shows it."""

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
    text,
)

_PAIRS = 16
_KEY, _VALUE = text(64), text(512)


def _part(name: str, kinds: tuple[str, ...], field: str, shape: Shape[Any] = string, **more: Shape[Any]) -> Shape[dict[str, Any]]:
    return passed_on({"type": one_of(*kinds), field: shape, **more}, required=("type", field)).named(name)


# --- input

_TEXT_PART = _part("ResponseTextPart", ("input_text", "output_text"), "text")
_PARTS = list_of(
    tagged(
        "type",
        {
            "input_text": _TEXT_PART,
            "output_text": _TEXT_PART,
            "refusal": _part("ResponseRefusalPart", ("refusal",), "refusal"),
            "input_image": _part(
                "ResponseImagePart",
                ("input_image",),
                "image_url",
                string.about("An https or `data:` address."),
                detail=string.about("`auto`, `low`, `high` or what else the model knows."),
            ),
            "input_file": _part(
                "ResponseFilePart",
                ("input_file",),
                "file_data",
                string.about("A plain text as a `data:text/...;base64,` address. Other files are not supported."),
                filename=string,
            ),
        },
    )
)
_CONTENT = by_type("a string or a list of parts", {str: string, list: _PARTS})
_OF_CALL = {"call_id": filled, "name": filled, "namespace": string}
_REASONING_TEXTS = list_of(_part("ResponseReasoningPart", ("reasoning_text", "summary_text", "text"), "text"))


def _item(kind: str, required: tuple[str, ...], **fields: Shape[Any]) -> Shape[dict[str, Any]]:
    name = "Response" + "".join(word.title() for word in kind.split("_")) + "Item"
    return passed_on({"type": one_of(kind), **fields}, required=("type", *required)).named(name)


_MESSAGE = passed_on(
    {"type": one_of("message"), "role": one_of("user", "assistant", "system", "developer"), "content": _CONTENT},
    "A message. Its `type` may be left out.",
    required=("role", "content"),
).named("ResponseMessageItem")
_REFERENCE = passed_on(
    {"type": one_of("item_reference"), "id": filled},
    "An output item of the last hour, by its id.",
    required=("id",),
).named("ResponseItemReference")

# --- tools

_FUNCTION_TOOL = passed_on(
    {
        "type": one_of("function"),
        "name": filled,
        "description": string,
        "parameters": mapping.about("The arguments, as a JSON Schema."),
        "strict": boolean,
    },
    required=("type", "name"),
).named("ResponseFunctionTool")
_CUSTOM_TOOL = passed_on(
    {
        "type": one_of("custom"),
        "name": filled,
        "description": string,
        "format": passed_on({"type": string, "syntax": string, "definition": string}).about(
            "The grammar's definition is added to the description; the model is not forced to follow it."
        ),
    },
    "A tool with one text as its input.",
    required=("type", "name"),
).named("ResponseCustomTool")
_NAMESPACE_TOOL = passed_on(
    {
        "type": one_of("namespace"),
        "name": filled,
        "description": string,
        "tools": list_of(tagged("type", {"function": _FUNCTION_TOOL, "custom": _CUSTOM_TOOL})),
    },
    "A group of tools, which are offered one by one. Their calls name the `namespace`.",
    required=("type", "name", "tools"),
).named("ResponseNamespaceTool")
OWN_TOOLS = {"function": _FUNCTION_TOOL, "custom": _CUSTOM_TOOL, "namespace": _NAMESPACE_TOOL}
_HOSTED_TOOL = passed_on(
    {"type": string.about("", **{"not": {"enum": [*OWN_TOOLS]}})},
    "A hosted tool. There are none here: it is left out and named in `x-service-ignored-tools`.",
    required=("type",),
).named("ResponseHostedTool")
_TOOLS = list_of(tagged("type", OWN_TOOLS, _HOSTED_TOOL))
_NAMED = {"name": filled, "namespace": string}
_TOOL_CHOICE = by_type(
    "none, auto, required or an object that names a tool",
    {
        str: one_of("none", "auto", "required"),
        dict: tagged(
            "type",
            {
                "function": passed_on({"type": one_of("function"), **_NAMED}, required=("type", "name")),
                "custom": passed_on({"type": one_of("custom"), **_NAMED}, required=("type", "name")),
                "allowed_tools": passed_on(
                    {
                        "type": one_of("allowed_tools"),
                        "mode": one_of("auto", "required"),
                        "tools": list_of(passed_on({"type": string, "name": string}, required=("type",))),
                    },
                    required=("type", "mode", "tools"),
                ),
            },
            passed_on({"type": string}, required=("type",)),
        ),
    },
)

_ITEMS = {
    "message": _MESSAGE,
    "function_call": _item("function_call", ("call_id", "name", "arguments"), **_OF_CALL, arguments=string),
    "function_call_output": _item("function_call_output", ("call_id", "output"), call_id=filled, output=_CONTENT),
    "custom_tool_call": _item("custom_tool_call", ("call_id", "name", "input"), **_OF_CALL, input=string),
    "custom_tool_call_output": _item("custom_tool_call_output", ("call_id", "output"), call_id=filled, output=_CONTENT),
    "reasoning": _item("reasoning", (), content=_REASONING_TEXTS, summary=_REASONING_TEXTS),
    "item_reference": _REFERENCE,
    "additional_tools": _item("additional_tools", ("tools",), tools=_TOOLS),
}
_TYPED_ITEM = tagged("type", _ITEMS)


def _check_item(value: Any, param: str) -> Any:
    if isinstance(value, dict) and value.get("type") is None:
        return (_MESSAGE if "role" in value else _REFERENCE).check(value, param)
    return _TYPED_ITEM.check(value, param)


_ITEM = Shape(_check_item, "an object", {"anyOf": [shape.schema for shape in _ITEMS.values()]}).named("ResponseInputItem")

# --- the request

_FORMAT = tagged(
    "type",
    {
        "text": passed_on({"type": one_of("text")}, required=("type",)),
        "json_object": passed_on({"type": one_of("json_object")}, required=("type",)),
        "json_schema": passed_on(
            {"type": one_of("json_schema"), "name": filled, "description": string, "schema": mapping, "strict": boolean},
            required=("type", "name", "schema"),
        ),
    },
)


def _check_metadata(value: Any, param: str) -> Any:
    pairs = mapping.check(value, param)
    if len(pairs) > _PAIRS:
        raise ApiError("invalid_value", f"{param} may have at most {_PAIRS} pairs.", param=param)
    for key, item in pairs.items():
        _KEY.check(key, f"a key of {param}")
        _VALUE.check(item, f"{param}.{key}")
    return pairs


_METADATA = Shape(
    _check_metadata,
    "an object",
    {"type": "object", "maxProperties": _PAIRS, "propertyNames": _KEY.schema, "additionalProperties": _VALUE.schema},
)


def _only(allowed: Any, code: str, message: str) -> Shape[Any]:
    def check(value: Any, param: str) -> Any:
        if value is not allowed:
            raise ApiError(code, message, param=param)
        return value

    return Shape(check, str(allowed), {"const": allowed})


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
        "max_tool_calls": integer(1, 2**31 - 1).about("Limits hosted tools, which do not exist here."),
        "text": passed_on({"format": _FORMAT, "verbosity": string}),
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
        "background": _only(False, "unsupported_value", "background must be false, because responses are not stored."),
        "previous_response_id": _only(
            None, "previous_response_not_found", "Responses are not stored here. Send the whole conversation in input."
        ),
        "conversation": _only(
            None,
            "unsupported_value",
            "conversation is not supported: nothing is stored here. Send the whole conversation in input.",
        ),
        "prompt": _only(None, "unsupported_value", "prompt is not supported: there are no stored prompts. Send instructions."),
    },
    "OpenAI's Responses request. Fields that are not listed are ignored.",
    required=("input",),
).named("ResponseRequest")
