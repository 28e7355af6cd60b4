"""What model servers and vendors say when a prompt is too long for the context of the model."""

from typing import Any

_VLLM = "This model's maximum context length is 8192 tokens. However, "
# The status, the error, and the tokens of the prompt, of the output limit and of the context that it names. Those with
# status 200 are the first event of a stream.
TOO_LONG: dict[str, tuple[int, Any, tuple[int | None, int | None, int | None]]] = {
    "llamacpp": (
        400,
        {
            "error": {
                "code": 400,
                "message": "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 9412,
                "n_ctx": 8192,
            }
        },
        (9412, None, 8192),
    ),
    "llamacpp-older": (
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size. try increasing the context size",
                "type": "invalid_request_error",
            }
        },
        (None, None, None),
    ),
    "llamacpp-stream": (
        200,
        {"error": {"code": 400, "message": "Context size has been exceeded.", "type": "exceed_context_size_error"}},
        (None, None, None),
    ),
    "vllm": (
        400,
        {
            "object": "error",
            "message": f"{_VLLM}you requested 9500 tokens (8412 in the messages, 1088 in the completion). Please reduce "
            "the length of the messages or completion.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        (8412, 1088, 8192),
    ),
    "vllm-input": (
        400,
        {
            "error": {
                "message": f"{_VLLM}your request has 9412 input tokens. Please reduce the length of the input messages.",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            }
        },
        (9412, None, 8192),
    ),
    "vllm-output": (
        400,
        {
            "error": {
                "message": f"{_VLLM}you requested 5000 output tokens and your prompt contains at least 4000 input tokens, "
                "for a total of at least 9000 tokens.",
                "type": "BadRequestError",
                "param": "input_tokens",
                "code": 400,
            }
        },
        (4000, 5000, 8192),
    ),
    "vllm-limit": (
        400,
        {
            "error": {
                "message": "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context "
                "length is 8192 tokens and your request has 4000 input tokens (5000 > 8192 - 4000).",
                "type": "BadRequestError",
                "code": 400,
            }
        },
        (4000, 5000, 8192),
    ),
    "openai": (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 "
                "tokens. Please reduce the length of the messages.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        },
        (130000, None, 128000),
    ),
    "openai-newer": (
        400,
        {
            "error": {
                "message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
                "type": "invalid_request_error",
                "param": "input",
                "code": "context_length_exceeded",
            }
        },
        (None, None, None),
    ),
    "ollama": (400, {"error": "the input length exceeds the context length"}, (None, None, None)),
    "lmstudio": (
        400,
        {
            "error": "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with "
            "context length of only 4096 tokens, which is not enough."
        },
        (5000, None, 4096),
    ),
    "lmstudio-stream": (
        200,
        {
            "error": {
                "message": "The number of tokens to keep from the initial prompt is greater than the context length. Try to "
                "load the model with a larger context length, or provide a shorter input"
            }
        },
        (None, None, None),
    ),
    "sglang": (
        400,
        {
            "object": "error",
            "message": "The input (9412 tokens) is longer than the model's context length (8192 tokens).",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        (9412, None, 8192),
    ),
    "sglang-total": (
        400,
        {
            "object": "error",
            "message": "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a "
            "total of 9412 tokens: 8300 tokens from the input messages and 1112 tokens for the completion.",
            "type": "BadRequestError",
            "code": 400,
        },
        (8300, 1112, 8192),
    ),
    "anthropic": (
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 210000 tokens > 200000 maximum",
            },
        },
        (210000, None, 200000),
    ),
    "anthropic-output": (
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input "
                "length or `max_tokens` and try again",
            },
        },
        (188240, 21333, 200000),
    ),
    "gemini": (
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
        (1048577, None, 1048576),
    ),
    "tgi": (
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` "
            "tokens and 200 `max_new_tokens`",
            "error_type": "validation",
        },
        (5000, 200, 4096),
    ),
    "mistral": (
        400,
        {
            "object": "error",
            "message": "Prompt contains 33000 tokens and 0 draft tokens, too large for model with 32768 maximum context "
            "length",
            "type": "invalid_request_prompt",
            "code": 3051,
        },
        (33000, None, 32768),
    ),
    "xai": (
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        },
        (537812, None, 131072),
    ),
    "groq": (
        413,
        {
            "error": {
                "message": "Please reduce the length of the messages or completion.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        },
        (None, None, None),
    ),
    "openrouter": (
        400,
        {
            "error": {
                "message": "This endpoint's maximum context length is 8192 tokens. However, you requested about 9612 tokens "
                "(8500 of text input, 1112 in the output). Please reduce the length of either one.",
                "code": 400,
            }
        },
        (8500, 1112, 8192),
    ),
    "litellm": (
        400,
        {
            "error": {
                "message": "litellm.ContextWindowExceededError: litellm.BadRequestError: This model's maximum context "
                "length is 8,192 tokens. However, you requested 9,412 tokens.",
                "type": None,
                "param": None,
                "code": "400",
            }
        },
        (9412, None, 8192),
    ),
    "cohere": (
        400,
        {
            "message": "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try "
            "using a shorter prompt"
        },
        (4292, None, 4081),
    ),
    "fireworks": (
        400,
        {"error": {"message": "The prompt is too long: 200020, model maximum context length: 131071"}},
        (200020, None, 131071),
    ),
    "bedrock": (400, {"message": "Input is too long for requested model."}, (None, None, None)),
    "dashscope": (
        400,
        {"error": {"code": "invalid_parameter_error", "message": "Range of input length should be [1, 30720]"}},
        (None, None, 30720),
    ),
    "moonshot": (
        400,
        {"error": {"message": "Invalid request: Your request exceeded model token limit: 8192"}},
        (None, None, 8192),
    ),
    "exllama": (
        422,
        {"detail": "Prompt length 9000 is greater than max_seq_len 8192"},
        (9000, None, 8192),
    ),
}
