"""Shapes of images and speech."""

from svc.routes.schemas.common import AUDIO_SECONDS_HEADER, AUDIO_TRUNCATED_HEADER, COST_HEADER, COUNT, SECONDS
from svc.routes.schemas.content import CONTENT_URL
from svc.server.error_schemas import ERROR
from svc.server.interface import Answer, Content, as_event, event_of
from svc.shapes import json_object, list_of, one_of, open_object, optional, string

_PROMPT = string.about(
    "The prompt as the model used it. The built-in painter describes the image here.",
    "A lighthouse by the sea under a stormy sky, with clouds and rain.",
)
IMAGE = json_object(
    "Image",
    b64_json=optional(string.about("The file in base64.")),
    url=optional(string.about("A link to the artifact's content that works for an hour without a token.")),
    revised_prompt=optional(_PROMPT),
)
IMAGE_LIST = open_object("ImageList", created=SECONDS, data=list_of(IMAGE), size=optional(string), output_format=optional(string))
_SPEECH_USAGE = json_object(
    "SpeechUsage", input_tokens=COUNT, output_tokens=COUNT.about(example=56), total_tokens=COUNT.about(example=56)
)
_SPEECH_DELTA = json_object(
    "SpeechDelta", type=one_of("speech.audio.delta"), audio=string.about("A chunk of the audio in base64.", "UklGRg==")
)
_SPEECH_DONE = json_object("SpeechDone", type=one_of("speech.audio.done"), usage=_SPEECH_USAGE)
_SPEECH_EVENT = event_of(
    "SpeechStreamEvent", "A chunk, the end, or the error that ends the stream.", _SPEECH_DELTA, _SPEECH_DONE, ERROR
)
_AUDIO = Content(string.about("The audio. `Content-Type` names its format.", format="binary"))
_AUDIO_HEADERS = {
    "x-audio-seconds": AUDIO_SECONDS_HEADER,
    "x-audio-truncated": AUDIO_TRUNCATED_HEADER,
    "x-service-cost-micros": COST_HEADER,
}


def _images(field: str, value: str) -> dict[str, object]:
    image = {field: value, "revised_prompt": _PROMPT.example}
    return {"created": SECONDS.example, "data": [image], "output_format": "png", "size": "512x512"}


IMAGES_ANSWER = Answer(
    "The images.",
    contents={
        "application/json": Content(
            IMAGE_LIST, {"b64_json": _images("b64_json", "iVBORw0KGgo="), "url": _images("url", CONTENT_URL)}
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
