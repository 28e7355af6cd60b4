"""The shape of a chat request in OpenAI's format: what is checked before the 200, and how the interface document shows
it.

A request is passed on as it was sent. Every field except `messages` may be null, and unknown fields are accepted. Some
values are only understood by model servers: `reasoning_effort`, kinds of `tool_choice` and `response_format`,
`max_tokens: -1`. Only the type of these is checked. The built-in models refuse what OpenAI would refuse, and the
document shows that.
"""

from collections.abc import Mapping
from typing import Any

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
    sent,
    string,
    tagged,
    typed,
    whole,
)

_TOKENS = integer(1, 2**31 - 1)
_INT64_MAX = 2**63 - 1
_NONE: Shape[None] = Shape(lambda value, param: None, "null", {"type": "null"}, kinds=frozenset({type(None)}))

# --- messages

_TEXT_PART = typed("TextPart", "text", text=string)
_IMAGE_URL = {
    "url": string.about("An https or `data:` address."),
    "detail": string.about("The detail to read: `auto`, `low`, `high`."),
}
_ADDRESS = string.about("Only the address, which some clients send.")
_IMAGE_PART = typed(
    "ImagePart",
    "image_url",
    image_url=by_type(
        "a string or an object with a url", {dict: passed_on(_IMAGE_URL, required=("url",)), str: _ADDRESS}
    ),
)
_OTHER_PART = sent(
    "OtherPart",
    "A part that is passed on as it was sent.",
    type=string.about(
        "`input_audio`, `file` or another type that the model server knows.",
        **{"not": {"enum": ["text", "image_url"]}},
    ),
)
_PART = tagged("type", {"text": _TEXT_PART, "image_url": _IMAGE_PART}, _OTHER_PART)
_CONTENT = (
    by_type("a string, a list of parts or null", {str: string, list: list_of(_PART), type(None): _NONE})
    .about("Text, or a list of parts.")
    .named("MessageContent")
)
_NAME = string.about("The name of the speaker, if several have the same role.")
_CALLED = passed_on({"name": string, "arguments": string.about("JSON.")}, required=("name",))
_TOOL_CALL = sent(
    "ToolCallRequest",
    "A tool call of an earlier answer, unchanged.",
    {"id": string, "type": string, "index": whole, "function": _CALLED},
)


def _message(role: str, description: str, *required: str, **fields: Shape[Any]) -> Shape[dict[str, Any]]:
    found = {"role": one_of(role), "content": _CONTENT, "name": _NAME, **fields}
    deprecated = {"deprecated": True} if role == "function" else {}
    return passed_on(found, description, required=("role", *required), tag="role", **deprecated).named(
        f"{role.title()}Message"
    )


_MESSAGE = tagged(
    "role",
    {
        "developer": _message("developer", "Instructions for the model, under their newer name.", "content"),
        "system": _message("system", "Instructions for the model.", "content"),
        "user": _message("user", "A message of the user.", "content"),
        # Some clients (litellm) send an assistant message without `content`.
        "assistant": _message(
            "assistant",
            "An earlier answer. Its content may be missing if it called tools.",
            refusal=string,
            tool_calls=list_of(_TOOL_CALL),
        ),
        "tool": _message(
            "tool",
            "The result of a tool.",
            "tool_call_id",
            "content",
            tool_call_id=string.about("The id of the tool call."),
        ),
        "function": _message("function", "The result of a function, in the older form."),
    },
).named("ChatMessage")

# --- tools and formats

_FUNCTION = sent(
    "FunctionDefinition",
    "",
    {
        "description": string.about("When and how to use it."),
        "parameters": mapping.about("The arguments, as a JSON Schema."),
        "strict": boolean.about("Whether the arguments must follow the schema exactly."),
    },
    name=filled,
)
_OTHER_TOOL = sent(
    "OtherTool",
    "A tool of another type, such as `custom`, for the model server.",
    type=string.about("", **{"not": {"const": "function"}}),
)
_TOOL = tagged("type", {"function": typed("FunctionTool", "function", function=_FUNCTION)}, _OTHER_TOOL)
_FUNCTION_NAME = sent("FunctionName", name=filled)
_NAMED_TOOL = typed("NamedTool", "function", "The one function to call.", function=_FUNCTION_NAME)
_TOOL_CHOICE = (
    by_type(
        "none, auto, required or an object that names a function",
        {str: one_of("none", "auto", "required"), dict: tagged("type", {"function": _NAMED_TOOL}, _OTHER_TOOL)},
    )
    .about("Whether and which tool the model must call.")
    .named("ToolChoice")
)
_FUNCTION_CALL = by_type(
    "none, auto or an object that names a function", {str: one_of("none", "auto"), dict: _FUNCTION_NAME}
).about("The older form of `tool_choice`.", deprecated=True)
_PLAIN_FORMAT = sent("PlainFormat", "Text, or any JSON object.", type=one_of("text", "json_object"))
_SCHEMA = mapping.about("A JSON Schema.", additionalProperties=True)
_NAMED_SCHEMA = sent("NamedSchema", "", {"description": string, "schema": _SCHEMA, "strict": boolean}, name=filled)
_SCHEMA_FORMAT = typed("JsonSchemaFormat", "json_schema", "JSON that follows a schema.", json_schema=_NAMED_SCHEMA)
_RESPONSE_FORMAT = (
    tagged("type", {"text": _PLAIN_FORMAT, "json_object": _PLAIN_FORMAT, "json_schema": _SCHEMA_FORMAT})
    .about("The format of the answer's text.")
    .named("ResponseFormat")
)
_WITH_USAGE = boolean.about("Send one more chunk with the usage, before `[DONE]`.")
_STREAM_OPTIONS = sent("StreamOptions", "", {"include_usage": _WITH_USAGE, "include_obfuscation": boolean})

# --- the request

_LOOSE_STOP = by_type("a string or a list of strings", {str: string, list: list_of(string)})
_FIELDS: dict[str, Shape[Any]] = {
    "model": filled.about(
        "An id or alias from `GET /v1/models`. Without one: the account's `default_model`, else the operator's, else "
        "`builtin/assistant`."
    ),
    "messages": list_of(_MESSAGE, least=1).about("The conversation so far."),
    "stream": boolean.about("Answer with server-sent events."),
    "stream_options": _STREAM_OPTIONS,
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "max_completion_tokens": whole,  # -1 and 0 mean "no limit" to some servers
    "max_tokens": whole,
    "stop": _LOOSE_STOP,
    "n": integer(1, 128).about("The number of answers."),
    "seed": whole,
    "presence_penalty": number(-2, 2),
    "frequency_penalty": number(-2, 2),
    "tools": list_of(_TOOL).about("The tools that the model may call."),
    "tool_choice": by_type("a string or an object", {str: string, dict: mapping}),
    "parallel_tool_calls": boolean.about("Whether one answer may hold several calls."),
    "response_format": mapping,
    "reasoning_effort": string.about(
        "`none`, `minimal`, `low`, `medium`, `high` or another value that the model knows."
    ),
    "top_logprobs": integer(0, 20),
    "n_probs": integer(0, 20).about("The name of `top_logprobs` in llama.cpp."),
    "user": string.about(deprecated=True),
    "modalities": list_of(string),
    **dict.fromkeys(("logprobs", "store"), boolean),
    **dict.fromkeys(
        ("safety_identifier", "service_tier", "verbosity", "prompt_cache_key", "prompt_cache_retention"), string
    ),
    **dict.fromkeys(
        ("logit_bias", "metadata", "prompt_cache_options", "prediction", "audio", "web_search_options"), mapping
    ),
    "functions": list_of(_FUNCTION).about("The older form of `tools`.", deprecated=True),
    "function_call": _FUNCTION_CALL,
}
_BUILTIN_FIELDS: dict[str, Shape[Any]] = {
    "max_completion_tokens": _TOKENS.about("The most tokens of output."),
    "max_tokens": _TOKENS.about("The same, by its older name.", deprecated=True),
    "stop": by_type(
        "a string or a list of 1 to 4 strings", {str: string, list: list_of(string, least=1, most=4)}
    ).about("One text, or up to 4, at which the answer ends."),
    "seed": integer(-_INT64_MAX - 1, _INT64_MAX).about(format="int64"),
    "tool_choice": _TOOL_CHOICE,
    "response_format": _RESPONSE_FORMAT,
}
DOCUMENTED_FIELDS = frozenset(_FIELDS)
_ANY_CHAT = passed_on(_FIELDS, required=("messages",))
_SHOWN = passed_on(
    {**_FIELDS, **_BUILTIN_FIELDS},
    "OpenAI's request. Every field except `messages` may be missing or null. Unlisted fields are passed on as they "
    "were sent. A model with a price gets only those whose cost is known: `x-service-ignored-fields` names the others.",
    required=("messages",),
).named("ChatCompletionRequest")
CHAT_REQUEST = Shape(_ANY_CHAT.check, _ANY_CHAT.expected, _SHOWN.schema, _ANY_CHAT.fields[1:])


def check_for_builtin(body: dict[str, Any], names: Mapping[str, str] | None = None) -> None:
    """Raise ApiError for values of a checked `body` that OpenAI would refuse, too. `names` has the caller's names of
    fields.
    """
    for field, shape in _BUILTIN_FIELDS.items():
        if body.get(field) is not None:
            shape.check(body[field], (names or {}).get(field, field))
