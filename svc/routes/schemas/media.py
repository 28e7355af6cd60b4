"""Schemas of pictures and speech."""

from svc.routes.schemas.content import CONTENT_URL
from svc.routes.schemas.headers import AUDIO_SECONDS_HEADER, AUDIO_TRUNCATED_HEADER, COST_HEADER
from svc.server.error_schemas import ERROR
from svc.server.interface import Answer, Content, array, as_event, choice, integer, record, string

IMAGE = record(
    "Image",
    {
        "b64_json": string("The file in base64."),
        "url": string("Where the artifact's content is for an hour, without a token."),
        "revised_prompt": string("What the model made of the prompt; the built-in painter says what it drew."),
    },
    required=(),
)
IMAGE_LIST = record(
    "ImageList",
    {"created": integer("Unix seconds."), "data": array(IMAGE), "size": string(), "output_format": string()},
    required=("created", "data"),
    additionalProperties=True,
    example={"created": 1790000000, "data": [{"b64_json": "iVBORw0KGgo="}], "output_format": "png", "size": "512x512"},
)
_DRAWN = "A lighthouse by the sea under a stormy sky, with clouds and rain."
SPEECH_DELTA = record("SpeechDelta", {"type": choice("speech.audio.delta"), "audio": string("A piece of the audio in base64.")})
SPEECH_DONE = record(
    "SpeechDone",
    {
        "type": choice("speech.audio.done"),
        "usage": {
            "type": "object",
            "required": ["input_tokens", "output_tokens", "total_tokens"],
            "properties": {
                "input_tokens": integer(minimum=0),
                "output_tokens": integer(minimum=0),
                "total_tokens": integer(minimum=0),
            },
        },
    },
)
SPEECH_STREAM_EVENT = record(
    "SpeechStreamEvent",
    {
        "data": string(
            "A piece, the end, or the error that ends the stream.",
            contentMediaType="application/json",
            contentSchema={"anyOf": [SPEECH_DELTA, SPEECH_DONE, ERROR]},
        )
    },
    description="One event: a line `data: …` and an empty line.",
    example=as_event({"type": "speech.audio.delta", "audio": "UklGRg=="}),
)
_SOUND = Content(string("The audio, labelled with its own type.", format="binary"))
_AUDIO_HEADERS = {
    "x-audio-seconds": AUDIO_SECONDS_HEADER,
    "x-audio-truncated": AUDIO_TRUNCATED_HEADER,
    "x-service-cost-micros": COST_HEADER,
}
IMAGES_ANSWER = Answer(
    "The pictures.",
    contents={
        "application/json": Content(
            IMAGE_LIST,
            {
                "b64_json": {
                    "created": 1790000000,
                    "data": [{"b64_json": "iVBORw0KGgo=", "revised_prompt": _DRAWN}],
                    "output_format": "png",
                    "size": "512x512",
                },
                "url": {
                    "created": 1790000000,
                    "data": [{"url": CONTENT_URL, "revised_prompt": _DRAWN}],
                    "output_format": "png",
                    "size": "512x512",
                },
            },
        )
    },
    headers={"x-service-cost-micros": COST_HEADER},
)
AUDIO_ANSWER = Answer(
    "The audio.",
    contents={
        "audio/wav": _SOUND,
        "*/*": _SOUND,
    },
    headers=_AUDIO_HEADERS,
)
SPEECH_ANSWER = Answer(
    "The audio, or with `stream_format: sse` events that carry it.",
    contents={
        "audio/mpeg": _SOUND,
        "text/event-stream": Content(
            SPEECH_STREAM_EVENT,
            {
                "delta": ("delta", as_event({"type": "speech.audio.delta", "audio": "UklGRg=="})),
                "done": (
                    "done",
                    as_event(
                        {
                            "type": "speech.audio.done",
                            "usage": {"input_tokens": 0, "output_tokens": 56, "total_tokens": 56},
                        }
                    ),
                ),
            },
        ),
        "*/*": _SOUND,
    },
    headers=_AUDIO_HEADERS,
)
