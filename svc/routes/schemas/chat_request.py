"""Schemas of chat completions, in OpenAI's wire format: what is sent."""

from svc.server.body_budget import MIB
from svc.server.interface import Body, array, boolean, choice, integer, or_null, record, schema, string, tagged

TEXT_PART = record("TextPart", {"type": choice("text"), "text": string()}, additionalProperties=True)
IMAGE_PART = record(
    "ImagePart",
    {
        "type": choice("image_url"),
        "image_url": {
            "anyOf": [
                {
                    "type": "object",
                    "required": ["url"],
                    "properties": {
                        "url": string("An https or `data:` address."),
                        "detail": or_null(string("How closely to look: `auto`, `low`, `high`.")),
                    },
                    "additionalProperties": True,
                },
                string("The address alone, as some clients send it."),
            ]
        },
    },
    additionalProperties=True,
)
OTHER_PART = record(
    "OtherPart",
    {
        "type": {
            "type": "string",
            "description": "`input_audio`, `file` or what else the model server knows.",
            "not": {"enum": ["text", "image_url"]},
        }
    },
    description="A part that goes to the model server as it was sent.",
    additionalProperties=True,
)
MESSAGE_CONTENT = schema(
    "MessageContent",
    {
        "description": "Text, or a list of parts.",
        "anyOf": [string(), array({"anyOf": [TEXT_PART, IMAGE_PART, OTHER_PART]}), {"type": "null"}],
    },
)
SYSTEM_MESSAGE = record(
    "SystemMessage",
    {"role": choice("system"), "content": MESSAGE_CONTENT, "name": or_null(string("Who speaks, where several share a role."))},
    required=("role", "content"),
    description="Instructions for the model.",
    additionalProperties=True,
)
DEVELOPER_MESSAGE = record(
    "DeveloperMessage",
    {"role": choice("developer"), "content": MESSAGE_CONTENT, "name": or_null(string("Who speaks, where several share a role."))},
    required=("role", "content"),
    description="Instructions for the model, by their newer name.",
    additionalProperties=True,
)
USER_MESSAGE = record(
    "UserMessage",
    {"role": choice("user"), "content": MESSAGE_CONTENT, "name": or_null(string("Who speaks, where several share a role."))},
    required=("role", "content"),
    description="What the person says.",
    additionalProperties=True,
)
TOOL_CALL_REQUEST = record(
    "ToolCallRequest",
    {
        "id": or_null(string()),
        "type": or_null(string()),
        "index": or_null(integer()),
        "function": {
            "anyOf": [
                {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": string(), "arguments": or_null(string("JSON."))},
                    "additionalProperties": True,
                },
                {"type": "null"},
            ]
        },
    },
    required=(),
    description="A tool call of an earlier answer, sent back as it came.",
    additionalProperties=True,
)
ASSISTANT_MESSAGE = record(
    "AssistantMessage",
    {
        "role": choice("assistant"),
        "content": MESSAGE_CONTENT,
        "refusal": or_null(string()),
        "tool_calls": or_null(array(TOOL_CALL_REQUEST)),
        "name": or_null(string("Who speaks, where several share a role.")),
    },
    required=("role",),
    description="An earlier answer. Its content may be absent where it called tools.",
    additionalProperties=True,
)
TOOL_MESSAGE = record(
    "ToolMessage",
    {
        "role": choice("tool"),
        "content": MESSAGE_CONTENT,
        "tool_call_id": string("The id of the call that this answers."),
        "name": or_null(string("Who speaks, where several share a role.")),
    },
    required=("role", "content", "tool_call_id"),
    description="What a tool answered.",
    additionalProperties=True,
)
FUNCTION_MESSAGE = record(
    "FunctionMessage",
    {"role": choice("function"), "content": MESSAGE_CONTENT, "name": or_null(string("Who speaks, where several share a role."))},
    required=("role",),
    description="What a function answered, in the older form.",
    additionalProperties=True,
    deprecated=True,
)
CHAT_MESSAGE = tagged(
    "ChatMessage", "role", SYSTEM_MESSAGE, DEVELOPER_MESSAGE, USER_MESSAGE, ASSISTANT_MESSAGE, TOOL_MESSAGE, FUNCTION_MESSAGE
)
FUNCTION_DEFINITION = record(
    "FunctionDefinition",
    {
        "name": string(pattern="\\S"),
        "description": or_null(string("When and how to use it.")),
        "parameters": {"type": ["object", "null"], "description": "The arguments, as a JSON Schema."},
        "strict": or_null(boolean("Whether the arguments must follow the schema exactly.")),
    },
    required=("name",),
    additionalProperties=True,
)
FUNCTION_TOOL = record("FunctionTool", {"type": choice("function"), "function": FUNCTION_DEFINITION}, additionalProperties=True)
OTHER_TOOL = record(
    "OtherTool",
    {"type": {"type": "string", "not": {"const": "function"}}},
    description="A tool of another type, such as `custom`: for the model server to take or refuse.",
    additionalProperties=True,
)
FUNCTION_NAME = record("FunctionName", {"name": string(pattern="\\S")}, additionalProperties=True)
NAMED_TOOL = record(
    "NamedTool",
    {"type": choice("function"), "function": FUNCTION_NAME},
    description="The one function to call.",
    additionalProperties=True,
)
TOOL_CHOICE = schema(
    "ToolChoice",
    {
        "description": "Whether and which tool the model must call.",
        "anyOf": [choice("none", "auto", "required"), NAMED_TOOL, OTHER_TOOL, {"type": "null"}],
    },
)
PLAIN_FORMAT = record(
    "PlainFormat", {"type": choice("text", "json_object")}, description="Text, or any JSON object.", additionalProperties=True
)
NAMED_SCHEMA = record(
    "NamedSchema",
    {
        "name": string(pattern="\\S"),
        "description": or_null(string()),
        "schema": {"type": ["object", "null"], "description": "A JSON Schema.", "additionalProperties": True},
        "strict": or_null(boolean()),
    },
    required=("name",),
    additionalProperties=True,
)
JSON_SCHEMA_FORMAT = record(
    "JsonSchemaFormat",
    {"type": choice("json_schema"), "json_schema": NAMED_SCHEMA},
    description="JSON that follows a schema.",
    additionalProperties=True,
)
RESPONSE_FORMAT = schema(
    "ResponseFormat",
    {"description": "What the answer's text must be.", "anyOf": [PLAIN_FORMAT, JSON_SCHEMA_FORMAT, {"type": "null"}]},
)
STREAM_OPTIONS = schema(
    "StreamOptions",
    {
        "type": ["object", "null"],
        "properties": {
            "include_usage": or_null(boolean("Send one more chunk with the usage, before `[DONE]`.")),
            "include_obfuscation": or_null(boolean()),
        },
        "additionalProperties": True,
    },
)
CHAT_COMPLETION_REQUEST = record(
    "ChatCompletionRequest",
    {
        "model": or_null(
            string(
                "An id out of `GET /v1/models`. Without one: the account's `default_model`, else the operator's, else "
                "`builtin/assistant`.",
                pattern="\\S",
            )
        ),
        "messages": array(CHAT_MESSAGE, "The conversation so far.", minItems=1),
        "stream": or_null(boolean("Answer with server-sent events.")),
        "stream_options": STREAM_OPTIONS,
        "temperature": {"type": ["number", "null"], "minimum": 0, "maximum": 2},
        "top_p": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "max_completion_tokens": or_null(integer("The most tokens of output.", minimum=1, maximum=2147483647)),
        "max_tokens": or_null(integer("The same, by its older name.", minimum=1, maximum=2147483647, deprecated=True)),
        "stop": {
            "description": "Where to stop: one text, or up to 4.",
            "anyOf": [string(), array(string(), minItems=1, maxItems=4), {"type": "null"}],
        },
        "n": or_null(integer("How many answers.", minimum=1, maximum=128)),
        "seed": or_null(integer(format="int64", minimum=-9223372036854775808, maximum=9223372036854775807)),
        "presence_penalty": {"type": ["number", "null"], "minimum": -2, "maximum": 2},
        "frequency_penalty": {"type": ["number", "null"], "minimum": -2, "maximum": 2},
        "tools": or_null(array({"anyOf": [FUNCTION_TOOL, OTHER_TOOL]}, "What the model may call.")),
        "tool_choice": TOOL_CHOICE,
        "parallel_tool_calls": or_null(boolean("Whether one answer may hold several calls.")),
        "response_format": RESPONSE_FORMAT,
        "reasoning_effort": or_null(string("`none`, `minimal`, `low`, `medium`, `high` or what else the model knows.")),
        "logprobs": or_null(boolean()),
        "top_logprobs": or_null(integer(minimum=0, maximum=20)),
        "logit_bias": {"type": ["object", "null"]},
        "user": or_null(string(deprecated=True)),
        "safety_identifier": or_null(string()),
        "metadata": {"type": ["object", "null"]},
        "store": or_null(boolean()),
        "service_tier": or_null(string()),
        "verbosity": or_null(string()),
        "prompt_cache_key": or_null(string()),
        "prompt_cache_retention": or_null(string()),
        "prompt_cache_options": {"type": ["object", "null"]},
        "prediction": {"type": ["object", "null"]},
        "modalities": or_null(array(string())),
        "audio": {"type": ["object", "null"]},
        "web_search_options": {"type": ["object", "null"]},
        "functions": or_null(array(FUNCTION_DEFINITION, "The older form of `tools`.", deprecated=True)),
        "function_call": {
            "description": "The older form of `tool_choice`.",
            "deprecated": True,
            "anyOf": [choice("none", "auto"), FUNCTION_NAME, {"type": "null"}],
        },
    },
    required=("messages",),
    description="OpenAI's request. Every field but `messages` may be absent or null; fields that are not listed here go "
    "to the model server as they were sent.",
    additionalProperties=True,
    example={"model": "builtin/assistant", "messages": [{"role": "user", "content": "What is 12 * (3 + 4)?"}]},
)
CHAT_BODY = Body(
    CHAT_COMPLETION_REQUEST,
    {
        "text": (
            "A question",
            {"model": "builtin/assistant", "messages": [{"role": "user", "content": "What is 12 * (3 + 4)?"}]},
        ),
        "stream": (
            "As a stream, with its usage",
            {
                "model": "builtin/echo",
                "stream": True,
                "stream_options": {"include_usage": True},
                "messages": [{"role": "user", "content": "Hello, stream"}],
            },
        ),
        "tools": (
            "With a tool",
            {
                "model": "builtin/assistant",
                "messages": [{"role": "user", "content": "Calculate 12 * (3 + 4)"}],
                "tools": [
                    {
                        "type": "function",
                        "function": {
                            "name": "calculate",
                            "description": "Exact arithmetic",
                            "parameters": {
                                "type": "object",
                                "properties": {"expression": {"type": "string"}},
                                "required": ["expression"],
                            },
                        },
                    }
                ],
            },
        ),
    },
    most_bytes=16 * MIB,
)
