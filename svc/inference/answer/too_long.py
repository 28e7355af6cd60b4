"""Refusals of model servers because the prompt, or the prompt and the output limit, exceed the model's context.

Each server has its own words and codes. Coding agents shorten their conversation only if they know the error: Codex by
the code `context_length_exceeded`, Claude Code by the sentences of Anthropic's API.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from svc.errors import ApiError

CODE = "context_length_exceeded"
# Servers also answer with these statuses: TGI with 422, and some send the error in a stream or with status 200.
STATUSES = frozenset({400, 413, 422, 500, 502})
_CODES = frozenset({CODE, "context_window_exceeded", "exceed_context_size_error", "model_context_window_exceeded"})
# Patterns are compiled at the first refusal, and cached by `re`: compiling them here would delay a start.
_LIMIT = (
    r"context (?:length|size|window|limit)|context_length|n_ctx|max_seq_len|maximum (?:prompt|input|sequence) length"
)
_EXCEEDED = (
    r"exceed|too (?:long|large)|longer than|greater than|overflow|reduce the length|requested|resulted in|not enough"
    r"|but the request|(?:request|prompt) (?:has|contains)"
)
_PLAIN = (
    r"(?s)(?:prompt|input) is too long|prompt too long|input token count .*exceeds|prompt token count .*exceeds"
    r"|exceeded model token limit|input length should be \[|too many tokens: "
    r"|`inputs` (?:tokens \+|must have less than)"
    r"|(?:reduce|shorten) (?:the length of )?(?:the|your) (?:messages|prompt|input)"
)
_NUMBER = r"(\d{1,3}(?:,\d{3})+|\d{1,10})\b"
# The first one that is found counts. Sources: llama.cpp, vLLM, SGLang, OpenAI, OpenRouter, Anthropic, Gemini, xAI, TGI,
# Mistral, Cohere, LM Studio, ExLlama.
_INPUT = tuple(
    before + _NUMBER + after
    for before, after in (
        (r"", r" (?:tokens )?in the messages"),
        (r"", r" tokens from the input"),
        (r"\(", r" of text input"),
        (r"limit: ", r" \+ "),
        (r"(?:contains|has|with) (?:at least )?", r" (?:input )?tokens"),
        (r"(?:request|input|prompt) \(", r" tokens\)"),
        (r"(?:resulted in|received|keep the first|requested(?: about)?(?: a total of)?) ", r" tokens"),
        (r"(?:input token count|given:|prompt length|prompt token count of) \(?", r""),
        (r"too long: ", r""),
        (r"received ", r""),
    )
)
_OUTPUT = tuple(
    before + _NUMBER + after
    for before, after in (
        (r"", r" (?:tokens )?(?:in|for) the (?:completion|output)"),
        (r"requested ", r" output tokens"),
        (r"and ", r" `max_new_tokens`"),
        (r"tokens' is too large: ", r""),
        (r"limit: \d+ \+ ", r" >"),
    )
)
_MOST = tuple(
    before + _NUMBER + after
    for before, after in (
        (r"limit: \d+ \+ \d+ > ", r""),
        (r"> ", r" maximum"),
        (r"with ", r" maximum context"),
        (
            r"(?:context (?:length|size|window|limit)|max_seq_len|n_ctx)(?: of only| is only| of| is| limit)?[ :(=]+",
            r"",
        ),
        (r"(?:tokens allowed|maximum prompt length is|must be <=|less than|the limit of|token limit:) \(?", r""),
        (r"cannot exceed ", r""),
        (r"\[\d+, ", r"\]"),
    )
)


class TooLong(NamedTuple):
    """The tokens of the prompt, of the output limit, and of the model's context, where the server names them."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    most_tokens: int | None = None

    @property
    def prompt_is_too_long(self) -> bool:
        """Whether the prompt is known to be too long without any output."""
        given, most = self.input_tokens, self.most_tokens
        return given is not None and most is not None and given >= most


def found_in(message: str, fields: Mapping[str, Any]) -> TooLong | None:
    """Return the sizes if an error with this message is about the context's length, or None.

    `fields` are those of the error, by their names in lower case.
    """
    text = message.lower()
    coded = not _CODES.isdisjoint(value for value in (fields.get("code"), fields.get("type")) if isinstance(value, str))
    if not (coded or re.search(_PLAIN, text) or (re.search(_LIMIT, text) and re.search(_EXCEEDED, text))):
        return None
    return TooLong(
        _count(fields.get("n_prompt_tokens")) or _number(_INPUT, text),
        _number(_OUTPUT, text),
        _count(fields.get("n_ctx")) or _number(_MOST, text),
    )


def _number(patterns: tuple[str, ...], text: str) -> int | None:
    found = next(filter(None, (re.search(pattern, text) for pattern in patterns)), None)
    return int(found[1].replace(",", "")) if found else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


def callers_error(
    error: ApiError, sizes: TooLong, estimated_tokens: int, context_length: int | None, for_person: bool
) -> ApiError:
    """Return the error of a refusal. It is in plain words `for_person`, whose earlier messages were left out before."""
    message = anthropic_message(sizes, estimated_tokens, context_length)
    shown = _plain_message(sizes, context_length) if for_person else str(error)
    own = ApiError(CODE, shown, param="messages", anthropic={"message": message})
    own.byok = error.byok
    return own


def _plain_message(sizes: TooLong, context_length: int | None) -> str:
    most = sizes.most_tokens or context_length
    if sizes.input_tokens and sizes.output_tokens and most and sizes.input_tokens < most:
        return (
            f"The output limit of {sizes.output_tokens:,} tokens is too high: the model has {most:,} for the messages "
            "and the answer. Lower the limit."
        )
    reads = f", which reads {most:,} tokens with its answer" if most else ""
    return f"This message is too long for the model{reads}. Shorten it, or choose a model with a longer context."


def anthropic_message(sizes: TooLong, estimated_tokens: int, context_length: int | None) -> str:
    """Return the error in the words of Anthropic's API, which its clients parse.

    The estimate and the model's `context_length` stand for the numbers that the model server does not name.
    """
    given, output, most = sizes.input_tokens, sizes.output_tokens, sizes.most_tokens or context_length
    if most is None:
        return "prompt is too long"
    if given is not None and output is not None and given < most:
        sizes_text = f"{given} + {output} > {most}"
        advice = "decrease input length or `max_tokens` and try again"
        return f"input length and `max_tokens` exceed context limit: {sizes_text}, {advice}"
    return f"prompt is too long: {max(given or estimated_tokens, most + 1)} tokens > {most} maximum"
