"""Shapes of images and speech. Bodies are checked, and sent to model servers unchanged."""

import re
from typing import Any

from svc.builtin.voice import LANGUAGES, VOICES
from svc.errors import ApiError, invalid_value
from svc.inference.image_call import LARGE_SIZES, LEAST_SIDE, MOST_SIDE
from svc.inference.speech_call import DEFAULT_AUDIO_TOKENS
from svc.routes.schemas.common import CONTENT_URL, COST_HEADER, COUNT, SECONDS
from svc.server.interface import ERROR, Answer, Content, as_event, event_of, kind_of, named_header
from svc.shapes import (
    Fields,
    Shape,
    by_type,
    integer,
    is_visible,
    json_object,
    list_of,
    matching,
    number,
    one_of,
    passed_on,
    string,
    text,
    whole,
)

_PROMPT = string.about(
    "The prompt as the model used it. The built-in painter describes the image here.",
    "A lighthouse by the sea under a stormy sky, with clouds and rain.",
)
_IMAGE = json_object(
    "Image",
    b64_json=string.about("The file in base64.").optional(),
    url=string.about("A link to the artifact's content that works for an hour without a token.").optional(),
    revised_prompt=_PROMPT.optional(),
)
_IMAGE_LIST = json_object(
    "ImageList", created=SECONDS, data=list_of(_IMAGE), size=string.optional(), output_format=string.optional()
).with_others()
_SPEECH_USAGE = json_object("SpeechUsage", input_tokens=COUNT, output_tokens=56, total_tokens=56)
_SPEECH_DELTA = kind_of(
    "SpeechDelta", "speech.audio.delta", audio=string.about("A chunk of the audio in base64.", "UklGRg==")
)
_SPEECH_DONE = kind_of("SpeechDone", "speech.audio.done", usage=_SPEECH_USAGE)
_SPEECH_EVENT = event_of(
    "SpeechStreamEvent", "A chunk, the end, or the error that ends the stream.", _SPEECH_DELTA, _SPEECH_DONE, ERROR
)
_AUDIO = Content(string.about("The audio. `Content-Type` names its format.", format="binary"))
_AUDIO_HEADERS = {
    "x-audio-seconds": named_header(
        "AudioSeconds", "The length of the audio.", string.about(pattern="^[0-9]+\\.[0-9]{3}$"), "2.450"
    ),
    "x-audio-truncated": named_header(
        "AudioTruncated", "Whether the audio was cut at `tts_max_tokens`.", one_of("true", "false"), "false"
    ),
    "x-service-cost-micros": COST_HEADER,
}


def _images(field: str, value: str) -> dict[str, object]:
    image = {field: value, "revised_prompt": _PROMPT.example}
    return {"created": SECONDS.example, "data": [image], "output_format": "png", "size": "512x512"}


IMAGES_ANSWER = Answer(
    "The images.",
    contents={
        "application/json": Content(
            _IMAGE_LIST, {"b64_json": _images("b64_json", "iVBORw0KGgo="), "url": _images("url", CONTENT_URL)}
        )
    },
    headers={"x-service-cost-micros": COST_HEADER},
)
AUDIO_ANSWER = Answer("The audio.", contents={"audio/wav": _AUDIO, "*/*": _AUDIO}, headers=_AUDIO_HEADERS)
SPEECH_ANSWER = Answer(
    "The audio, or with `stream_format: sse` events that carry it.",
    contents={
        "audio/mpeg": _AUDIO,
        "text/event-stream": Content(
            _SPEECH_EVENT, {"delta": as_event(_SPEECH_DELTA.example), "done": as_event(_SPEECH_DONE.example)}
        ),
        "*/*": _AUDIO,
    },
    headers=_AUDIO_HEADERS,
)


SPEECH_LENGTH = 4_096  # of OpenAI's speech route, in characters
LARGE = ", ".join(f"{width}x{height}" for width, height in LARGE_SIZES)


def input_text(most: int, description: str) -> Shape[str]:
    """A text that is not blank, of at most `most` characters. A longer one is 413, not 400."""

    def check(value: Any, param: str) -> str:
        found = string.check(value, param)
        check_length(found, param, most)
        if not is_visible(found):
            raise invalid_value(f"{param} must not be blank.", param)
        return found

    return Shape(check, "a string", {"type": "string", "minLength": 1, "maxLength": most, "description": description})


def check_length(found: str, param: str, most: int) -> None:
    if len(found) > most:
        message = f"{param} has {len(found)} characters; at most {most} are allowed."
        raise ApiError("PAYLOAD_TOO_LARGE", message, param=param)


_VOICE_NAME = text(200, least=1)
_OWN_VOICE = passed_on({"id": _VOICE_NAME}, required=("id",))  # OpenAI's form for custom voices
_VOICE = by_type("the name of a voice, such as alloy", {str: _VOICE_NAME, dict: _OWN_VOICE}).about(
    f"The name of a voice, in any case; null means `alloy`. Built-in voices: {', '.join(VOICES)}. Languages by code: "
    f"{', '.join(LANGUAGES)}. Model servers have others.",
    examples=[*VOICES, *LANGUAGES],
)
_FORMAT = matching(re.compile(r"[a-z0-9_-]{1,32}"), "the name of a format, such as wav", 32)
_SENTENCE = "The train leaves at ten past seven."
_SPOKEN: Fields = {
    "model": string.about(
        "A speech model of `GET /v1/models`. Null means the operator's first one, else `builtin/voice`."
    ),
    "voice": _VOICE,
    "speed": number(0.25, 4).about(default=1),
    "tts_max_tokens": whole.about(
        "The most audio tokens; 4096 are 180 seconds. Values are clamped to 256..32768.", default=DEFAULT_AUDIO_TOKENS
    ),
}
_IMAGE_FIELDS: Fields = {
    "prompt": input_text(32_000, "The description of the image; not blank."),
    "model": string.about(
        "An image model of `GET /v1/models`. Null means the operator's first one, else `builtin/paint`."
    ),
    "n": integer(1, 10).about(default=1),
    "size": matching(
        re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})|auto"),
        "of the form WIDTHxHEIGHT, such as 512x512, or auto",
        11,
    ).about(
        f"`WIDTHxHEIGHT` or `auto`. The built-in painter supports sides of {LEAST_SIDE} to {MOST_SIDE}, and {LARGE}."
    ),
    "response_format": one_of("b64_json", "url").about(
        "`url` stores each image as an artifact and returns its `content_url`.", default="b64_json"
    ),
    "output_format": string.about("The built-in painter supports `png`."),
}
IMAGE = (
    passed_on(_IMAGE_FIELDS, "OpenAI's format. Other fields are sent to the model server.", required=("prompt",))
    .about(example={"prompt": "A lighthouse in a storm", "size": "512x512"})
    .named("ImageRequest")
)
_AUDIO_FIELDS: Fields = {
    "input": input_text(
        100_000, "The text to speak; not blank. For the caller's own providers at most 4,096 characters."
    ),
    **_SPOKEN,
    "format": _FORMAT.about("`wav` by default. Other formats depend on the model and on the server's encoders."),
}
AUDIO = (
    passed_on(_AUDIO_FIELDS, required=("input",))
    .about(example={"input": _SENTENCE, "voice": "alloy", "format": "wav"})
    .named("AudioRequest")
)
_SPEECH_FIELDS: Fields = {
    "input": input_text(SPEECH_LENGTH, "The text to speak; not blank."),
    **_SPOKEN,
    "response_format": _FORMAT.about("`mp3` by default, or `wav` if the server has no encoder for it."),
    "stream_format": one_of("audio", "sse").about(default="audio"),
}
SPEECH = (
    passed_on(_SPEECH_FIELDS, "OpenAI's format.", required=("input",))
    .about(example={"model": "builtin/voice", "input": _SENTENCE, "voice": "alloy", "response_format": "wav"})
    .named("SpeechRequest")
)
