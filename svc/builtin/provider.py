"""The built-in models: which there are, at what price, and the chat models' answers.

The chat models run here, the others in helper processes (processes.py, voice.py, hearing.py).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from svc.builtin import hearing, script, voice
from svc.builtin.answer import Part, answer
from svc.builtin.request import BYTES_PER_TOKEN, BuiltinRequest, is_big, read_request
from svc.builtin.structured import in_format

_REQUEST_BYTES = 16 * 1024 * 1024
_STEPS_BETWEEN_RESTS = 100  # chunks and parts, so that other requests get their turn


class BuiltinModel(NamedTuple):
    """A model; `prices` are micros of a dollar, named as in the catalog."""

    kind: str
    prices: Mapping[str, int]
    context_length: int | None = None
    capabilities: tuple[str, ...] = ()


def _chat_model(*capabilities: str, input_price: int = 0, output_price: int = 0) -> BuiltinModel:
    prices = {"input_micros_per_million_tokens": input_price, "output_micros_per_million_tokens": output_price}
    return BuiltinModel("chat", prices, _REQUEST_BYTES // BYTES_PER_TOKEN, capabilities)


# By the name after `builtin/`.
MODELS: dict[str, BuiltinModel] = {
    "echo": _chat_model(),
    "assistant": _chat_model("tools"),
    "assistant-paid": _chat_model("tools", input_price=500_000, output_price=1_500_000),
    "script": _chat_model("tools"),
    "paint": BuiltinModel("image", {"micros_per_image": 20_000}),
    "voice": BuiltinModel("speech", {"micros_per_thousand_audio_tokens": 10_000}),
    "whisper-tiny": BuiltinModel("transcription", {"micros_per_audio_minute": 0}),
}


def offered(hearing_folder: Path | None = None) -> dict[str, BuiltinModel]:
    """Return the models that this machine can run: `voice` needs eSpeak NG, and `whisper-tiny` the extra `hearing`.

    `hearing_folder` has another model for speech recognition.
    """
    missing = {
        "voice": not voice.engine(),
        "whisper-tiny": not (hearing.is_installed() and (hearing_folder or hearing.weights())),
    }
    return {name: model for name, model in MODELS.items() if not missing.get(name)}


async def chat(
    model: str, body: dict[str, Any], now_seconds: Callable[[], float] = time.time
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield raw chunks for a checked body, word by word if `body["stream"]` is true, and always the usage.

    Raises UpstreamFault: 400 for a body that the models do not support, and the faults of a script.
    """
    plan = partial(_planned, model, body, now_seconds)
    request, parts = await asyncio.to_thread(plan) if is_big(body) else plan()
    for number, step in enumerate(answer(request, parts), 1):
        if isinstance(step, dict):
            yield step
        elif step:
            await asyncio.sleep(step)
        if number % _STEPS_BETWEEN_RESTS == 0:
            await asyncio.sleep(0)


def _planned(model: str, body: dict[str, Any], now_seconds: Callable[[], float]) -> tuple[BuiltinRequest, list[Part]]:
    request = read_request(body)
    if model == "script":
        return request, script.parts(request)
    if model == "echo":
        return request, [in_format(request.goal, request.response_format)]
    from svc.builtin import assistant  # late: the start would wait 30 ms for its patterns

    return request, assistant.parts(request, now_seconds())
