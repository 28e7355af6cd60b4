"""The built-in models: which there are, at what price, and the chat models' answers.

The chat models run here; `paint` and `voice` run in helper processes (processes.py, voice.py).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, NamedTuple

from svc.builtin import script, voice
from svc.builtin.answer import Part, answer
from svc.builtin.request import BYTES_PER_TOKEN, BuiltinRequest, is_big, read_request
from svc.builtin.structured import in_format
from svc.errors import ApiError

_REQUEST_BYTES = 16 * 1024 * 1024


class BuiltinModel(NamedTuple):
    """A model; `prices` are micros of a dollar, named as in the catalog."""

    kind: str
    prices: Mapping[str, int]
    description: str
    context_length: int | None = None
    capabilities: tuple[str, ...] = ()


def _chat_model(description: str, *capabilities: str, input_price: int = 0, output_price: int = 0) -> BuiltinModel:
    prices = {"input_micros_per_million_tokens": input_price, "output_micros_per_million_tokens": output_price}
    return BuiltinModel("chat", prices, description, _REQUEST_BYTES // BYTES_PER_TOKEN, capabilities)


# By the name after `builtin/`.
MODELS: dict[str, BuiltinModel] = {
    "echo": _chat_model("Answers with the last user message."),
    "assistant": _chat_model(
        "A small deterministic assistant, not a language model: arithmetic, dates, recall and tool calls.", "tools"
    ),
    "assistant-paid": _chat_model(
        "The same assistant at a price, for trying the wallet.", "tools", input_price=500_000, output_price=1_500_000
    ),
    "script": _chat_model("Plays the directives in the last user message, for rehearsing a client.", "tools"),
    "paint": BuiltinModel("image", {"micros_per_image": 20_000}, "Draws a picture from the words of the prompt."),
    "voice": BuiltinModel("speech", {"micros_per_thousand_audio_tokens": 10_000}, "Speaks, with eSpeak NG."),
}


def offered() -> dict[str, BuiltinModel]:
    """Return the models that this machine can run: `voice` needs eSpeak NG."""
    return {name: model for name, model in MODELS.items() if name != "voice" or voice.engine()}


async def chat(
    model: str, body: dict[str, Any], now_seconds: Callable[[], float] = time.time
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield raw chunks for a checked body, word by word if `body["stream"]` is true, and always the usage.

    Raises ApiError `model_not_found` for another name than a chat model's, and UpstreamFault: 400 for a body that the
    models do not support, and the faults of a script.
    """
    if model not in MODELS or MODELS[model].kind != "chat":
        raise ApiError("model_not_found", param="model")
    if is_big(body):
        request, parts = await asyncio.to_thread(_planned, model, body, now_seconds)
    else:
        request, parts = _planned(model, body, now_seconds)
    async with aclosing(answer(request, parts)) as chunks:
        async for chunk in chunks:
            yield chunk


def _planned(model: str, body: dict[str, Any], now_seconds: Callable[[], float]) -> tuple[BuiltinRequest, list[Part]]:
    request = read_request(body)
    if model == "script":
        return request, script.parts(request)
    if model == "echo":
        return request, [in_format(request.goal, request.response_format)]
    from svc.builtin import assistant  # late: the start would wait 30 ms for its patterns

    return request, assistant.parts(request, now_seconds())
