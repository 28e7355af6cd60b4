"""Schemas of chat completions, in OpenAI's wire format: what is answered."""

from svc.routes.schemas.headers import CONVERSATION_HEADER, MEMORY_HEADER
from svc.server.error_schemas import ERROR
from svc.server.interface import Answer, Content, array, as_event, choice, header, integer, or_null, record, refined, string

COMPLETION_USAGE = record(
    "CompletionUsage",
    {
        "prompt_tokens": integer(minimum=0),
        "completion_tokens": integer(minimum=0),
        "total_tokens": integer("The sum of the two.", minimum=0),
        "prompt_tokens_details": {"type": "object", "additionalProperties": True},
        "completion_tokens_details": {"type": "object", "additionalProperties": True},
    },
    required=("prompt_tokens", "completion_tokens", "total_tokens"),
    description="Counted by the model server; estimated where it counts none.",
    additionalProperties=True,
)
FUNCTION_CALL = record("FunctionCall", {"name": string(), "arguments": string("JSON.")}, additionalProperties=True)
TOOL_CALL = record(
    "ToolCall",
    {
        "id": string(),
        "type": string("`function`, or `custom` with `custom` in the place of `function`."),
        "function": FUNCTION_CALL,
    },
    required=("id", "type"),
    additionalProperties=True,
)
CHAT_COMPLETION_MESSAGE = record(
    "ChatCompletionMessage",
    {
        "role": choice("assistant"),
        "content": or_null(string("The text; null where there are only tool calls.")),
        "refusal": or_null(string()),
        "tool_calls": array(TOOL_CALL, minItems=1),
        "function_call": refined(FUNCTION_CALL, deprecated=True),
    },
    required=("role", "content", "refusal"),
    additionalProperties=True,
)
CHAT_COMPLETION_CHOICE = record(
    "ChatCompletionChoice",
    {
        "index": integer(minimum=0),
        "message": CHAT_COMPLETION_MESSAGE,
        "logprobs": {"type": ["object", "null"]},
        "finish_reason": choice(
            "stop", "length", "tool_calls", "content_filter", "function_call", description="`stop` is the normal end."
        ),
    },
    additionalProperties=True,
)
CHAT_COMPLETION = record(
    "ChatCompletion",
    {
        "id": string(pattern="^chatcmpl-"),
        "object": choice("chat.completion"),
        "created": integer("Unix seconds."),
        "model": string("The model that was asked for."),
        "choices": array(CHAT_COMPLETION_CHOICE, minItems=1),
        "usage": COMPLETION_USAGE,
    },
    additionalProperties=True,
    example={
        "id": "chatcmpl-Qm4sT0kX8dWb2hLzYv6cNfRjPa1eG",
        "object": "chat.completion",
        "created": 1790000000,
        "model": "builtin/assistant",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "12 * (3 + 4) = 84", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 6, "completion_tokens": 5, "total_tokens": 11},
    },
)
TOOL_CALL_DELTA = record(
    "ToolCallDelta",
    {
        "index": integer(minimum=0),
        "id": string(),
        "type": string(),
        "function": {
            "type": "object",
            "properties": {"name": string(), "arguments": string("A piece of the JSON.")},
            "additionalProperties": True,
        },
    },
    required=("index",),
    description="A call's first delta holds its id, type and name; later ones pieces of its arguments.",
    additionalProperties=True,
)
CHAT_COMPLETION_DELTA = record(
    "ChatCompletionDelta",
    {
        "role": choice("assistant"),
        "content": or_null(string()),
        "refusal": or_null(string()),
        "tool_calls": array(TOOL_CALL_DELTA, minItems=1),
        "function_call": {
            "type": "object",
            "properties": {"name": string(), "arguments": string()},
            "additionalProperties": True,
            "deprecated": True,
        },
    },
    required=(),
    description="Only what is new; the role once, first.",
    additionalProperties=True,
)
CHAT_COMPLETION_CHUNK_CHOICE = record(
    "ChatCompletionChunkChoice",
    {
        "index": integer(minimum=0),
        "delta": CHAT_COMPLETION_DELTA,
        "logprobs": {"type": ["object", "null"]},
        "finish_reason": or_null(
            choice(
                "stop",
                "length",
                "tool_calls",
                "content_filter",
                "function_call",
                description="Null until the choice's last chunk.",
            )
        ),
    },
    required=("index", "delta", "finish_reason"),
    additionalProperties=True,
)
CHAT_COMPLETION_CHUNK = record(
    "ChatCompletionChunk",
    {
        "id": string(pattern="^chatcmpl-"),
        "object": choice("chat.completion.chunk"),
        "created": integer("Unix seconds."),
        "model": string("The model that was asked for."),
        "choices": array(CHAT_COMPLETION_CHUNK_CHOICE, "Empty in the usage chunk alone."),
        "usage": or_null(COMPLETION_USAGE, "Only with `include_usage`: null on every chunk but the last."),
    },
    required=("id", "object", "created", "model", "choices"),
    description="One event of a stream; `id`, `created` and `model` are the same in all of them.",
    additionalProperties=True,
)
CHAT_STREAM_EVENT = record(
    "ChatStreamEvent",
    {
        "data": {
            "description": "A chunk, or the error that ends the stream; in the last event of all the text `[DONE]`.",
            "anyOf": [
                choice("[DONE]"),
                string(contentMediaType="application/json", contentSchema={"anyOf": [CHAT_COMPLETION_CHUNK, ERROR]}),
            ],
        }
    },
    description="One event: a line `data: …` and an empty line.",
    example=as_event(
        {
            "id": "chatcmpl-Qm4sT0kX8dWb2hLzYv6cNfRjPa1eG",
            "object": "chat.completion.chunk",
            "created": 1790000000,
            "model": "builtin/echo",
            "choices": [{"index": 0, "delta": {"content": "Hello, "}, "logprobs": None, "finish_reason": None}],
            "usage": None,
        }
    ),
)
CHAT_TEXT = (
    "OpenAI's chat completions: clients of that format work with the base address `{server}/v1` and an API "
    "key.\n\n"
    "Limits: 20 requests a minute for a free account, 120 for a pro one, shared by all its keys and sessions."
    " Each request with a valid token counts, right or wrong. The body may have 16 MiB. A model with a price "
    "is paid from the wallet: the worst case is held, the real cost is settled; `max_tokens` is lowered to "
    "what the wallet affords.\n\n"
    "Refusals come in this order: 401, 429, then 413, 415, 400 and 404, then 402, then the model server's. "
    "All that can be checked is checked before the 200.\n\n"
    "A model server's own refusal (4xx) keeps its status and error object; if it refuses this service's own "
    "key, that is a 502. Of a provider of the caller's own, a 401, 403 or 429 comes through with its name in "
    "front. A refused connection, a timeout, 429 or 502 to 504 before the first byte is tried once more, then"
    " on the model's fallback. A client that goes away cancels the request at the model server.\n\n"
    "**A stream** is `text/event-stream`: each event one line `data: {json}` and an empty line, without "
    "`event:` and `id:`. The last one is `data: [DONE]`. After 15 s of silence comes a comment block, `: "
    'ping`. A fault before the first event is an ordinary error answer; after it, one event `data: {"error": '
    "…}` and then `[DONE]` end the stream. With `include_usage` one more chunk, without choices, tells the "
    "usage.\n\n"
    "```\n"
    'data: {"id":"chatcmpl-Qm4s…","object":"chat.completion.chunk",…,"choices":[{"index":0,'
    '"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}\n\n'
    'data: {"id":"chatcmpl-Qm4s…",…,"choices":[{"index":0,"delta":{"content":"Hello, '
    'stream"},"logprobs":null,"finish_reason":null}]}\n\n'
    "data: "
    '{"id":"chatcmpl-Qm4s…",…,"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}\n\n'
    "data: [DONE]\n"
    "```\n"
    "\n"
    "Fields that this service does not know go to the model server, except those by which a proxy there would"
    " send the request elsewhere or under another key (`api_base`, `base_url`, `api_key`, `extra_headers` and"
    " their kin), which are dropped. A provider of the caller's own gets them all.\n\n"
    "With a session the exchange (the last user message and the answer) is kept in a conversation, and the "
    "model is reminded of up to 5 matching passages of earlier messages where `memory_enabled`. With an API "
    "key nothing is kept."
)
CHAT_ANSWER = Answer(
    "The answer: one JSON object, or with `stream: true` server-sent events.",
    contents={
        "application/json": Content(
            CHAT_COMPLETION,
            {
                "text": (
                    "Text",
                    {
                        "id": "chatcmpl-Qm4sT0kX8dWb2hLzYv6cNfRjPa1eG",
                        "object": "chat.completion",
                        "created": 1790000000,
                        "model": "builtin/assistant",
                        "choices": [
                            {
                                "index": 0,
                                "message": {"role": "assistant", "content": "12 * (3 + 4) = 84", "refusal": None},
                                "logprobs": None,
                                "finish_reason": "stop",
                            }
                        ],
                        "usage": {"prompt_tokens": 6, "completion_tokens": 5, "total_tokens": 11},
                    },
                ),
                "tool_call": (
                    "A tool call",
                    {
                        "id": "chatcmpl-Zt7uB3nK5pVx1gMwQy9aHcEsLd0fJ",
                        "object": "chat.completion",
                        "created": 1790000000,
                        "model": "builtin/assistant",
                        "choices": [
                            {
                                "index": 0,
                                "message": {
                                    "role": "assistant",
                                    "content": None,
                                    "refusal": None,
                                    "tool_calls": [
                                        {
                                            "id": "call_01m3250v3vfsgzezy8ak224fj9",
                                            "type": "function",
                                            "function": {"name": "calculate", "arguments": '{"expression": "12 * (3 + 4)"}'},
                                        }
                                    ],
                                },
                                "logprobs": None,
                                "finish_reason": "tool_calls",
                            }
                        ],
                        "usage": {"prompt_tokens": 53, "completion_tokens": 10, "total_tokens": 63},
                    },
                ),
            },
        ),
        "text/event-stream": Content(
            CHAT_STREAM_EVENT,
            {
                "chunk": (
                    "A chunk",
                    as_event(
                        {
                            "id": "chatcmpl-Qm4sT0kX8dWb2hLzYv6cNfRjPa1eG",
                            "object": "chat.completion.chunk",
                            "created": 1790000000,
                            "model": "builtin/echo",
                            "choices": [{"index": 0, "delta": {"content": "Hello, "}, "logprobs": None, "finish_reason": None}],
                            "usage": None,
                        }
                    ),
                ),
                "usage": (
                    "The usage",
                    as_event(
                        {
                            "id": "chatcmpl-Qm4sT0kX8dWb2hLzYv6cNfRjPa1eG",
                            "object": "chat.completion.chunk",
                            "created": 1790000000,
                            "model": "builtin/echo",
                            "choices": [],
                            "usage": {"prompt_tokens": 4, "completion_tokens": 4, "total_tokens": 8},
                        }
                    ),
                ),
                "fault": (
                    "A model server that breaks off",
                    as_event(
                        {
                            "error": {
                                "message": "The model server failed. Try again later.",
                                "type": "upstream_error",
                                "code": "upstream_error",
                                "param": None,
                            }
                        }
                    ),
                ),
                "done": ("The last event", {"data": "[DONE]"}),
            },
        ),
    },
    headers={
        "x-service-cost-micros": header(
            "What the answer cost, in millionths of a US dollar: on JSON answers of models with a price.",
            integer(minimum=0),
            11,
            required=False,
        ),
        "x-service-conversation": CONVERSATION_HEADER,
        "x-service-memory": MEMORY_HEADER,
    },
)
CHAT_EXAMPLES = {
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
}
