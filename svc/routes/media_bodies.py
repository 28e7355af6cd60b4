"""The bodies of requests for images and speech: checked here, and passed on to a model server as they were sent."""

import re
from typing import Any

from svc.builtin.voice import LANGUAGES, VOICES
from svc.errors import ApiError
from svc.inference.image_call import LARGE_SIZES, LEAST_SIDE, MOST_SIDE
from svc.inference.speech_call import DEFAULT_AUDIO_TOKENS
from svc.shapes import Shape, integer, is_blank, matching, number, one_of, passed_on, string, text, whole

SPEECH_LENGTH = 4_096  # of OpenAI's speech route, in characters
_LARGE = ", ".join(f"{width}x{height}" for width, height in LARGE_SIZES)


def said(most: int, description: str) -> Shape[str]:
    """A text that is not blank, of at most `most` characters; a longer one is 413 and not 400."""

    def check(value: Any, param: str) -> str:
        found = string.check(value, param)
        check_length(found, param, most)
        if is_blank(found):
            raise ApiError("invalid_value", f"{param} must not be blank.", param=param)
        return found

    return Shape(check, "a string", {"type": "string", "minLength": 1, "maxLength": most, "description": description})


def check_length(found: str, param: str, most: int) -> None:
    """Raise ApiError `PAYLOAD_TOO_LARGE` for a text of more than `most` characters."""
    if len(found) > most:
        message = f"{param} has {len(found)} characters; at most {most} are taken here."
        raise ApiError("PAYLOAD_TOO_LARGE", message, param=param)


def _check_voice(value: Any, param: str) -> Any:
    name = value.get("id") if isinstance(value, dict) else value  # OpenAI's form for voices of one's own
    if not isinstance(name, str) or not 0 < len(name) <= 200:
        raise ApiError("invalid_value", f"{param} must be the name of a voice, such as alloy.", param=param)
    return value


_VOICE_NAME = text(200, least=1).schema
_VOICE = Shape(
    _check_voice,
    "the name of a voice, such as alloy",
    {
        "description": f"The name of a voice, in any case; null: `alloy`. Built in are {', '.join(VOICES)}, and languages by "
        f"their codes, such as {', '.join(LANGUAGES)}. A model server knows others.",
        "anyOf": [_VOICE_NAME, {"type": "object", "required": ["id"], "properties": {"id": _VOICE_NAME}}],
        "examples": [*VOICES, *LANGUAGES],
    },
)
_FORMAT = matching(re.compile(r"[a-z0-9_-]{1,32}"), "the name of a format, such as wav", 32)
_SPOKEN: dict[str, Shape[Any]] = {
    "model": string.about("A speech model of `GET /v1/models`; null: the operator's first, else the built-in."),
    "voice": _VOICE,
    "speed": number(0.25, 4).about(default=1),
    "tts_max_tokens": whole.about(
        "The most audio tokens of the answer: 4096 are 180 seconds. Clamped to 256..32768.", default=DEFAULT_AUDIO_TOKENS
    ),
}
IMAGE = passed_on(
    {
        "prompt": said(32_000, "What the picture is to show; not blank."),
        "model": string.about("An image model of `GET /v1/models`; null: the operator's first, else the built-in."),
        "n": integer(1, 10).about(default=1),
        "size": matching(
            re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})|auto"), "of the form WIDTHxHEIGHT, such as 512x512, or auto", 11
        ).about(f"`WIDTHxHEIGHT` or `auto`; the built-in painter: {LEAST_SIDE} to {MOST_SIDE} a side, {_LARGE}."),
        "response_format": one_of("b64_json", "url").about(
            "`url` keeps each picture as an artifact and answers with its `content_url`.", default="b64_json"
        ),
        "output_format": string.about("The built-in painter makes `png`."),
    },
    "OpenAI's format. Other fields go to the model server.",
    required=("prompt",),
).named("ImageRequest")
AUDIO = passed_on(
    {
        "input": said(100_000, "What is to be said; not blank. For a provider of the caller's own at most 4,096 characters."),
        **_SPOKEN,
        "format": _FORMAT.about(
            "`wav` if left out; which others there are depends on the model and on the encoders of the server."
        ),
    },
    required=("input",),
).named("AudioRequest")
SPEECH = passed_on(
    {
        "input": said(SPEECH_LENGTH, "What is to be said; not blank."),
        **_SPOKEN,
        "response_format": _FORMAT.about("If left out mp3, and where the voice has no encoder for it WAV, labelled as such."),
        "stream_format": one_of("audio", "sse").about(default="audio"),
    },
    "OpenAI's format.",
    required=("input",),
).named("SpeechRequest")
IMAGE_EXAMPLES = {"example": {"prompt": "A lighthouse in a storm", "size": "512x512"}}
AUDIO_EXAMPLES = {"example": {"input": "The train leaves at ten past seven.", "voice": "alloy", "format": "wav"}}
SPEECH_EXAMPLES = {
    "example": {
        "model": "builtin/voice",
        "input": "The train leaves at ten past seven.",
        "voice": "alloy",
        "response_format": "wav",
    }
}
