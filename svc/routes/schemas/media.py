"""Schemas of pictures and speech."""

from svc.builtin.voice import LANGUAGES, VOICES
from svc.routes.schemas.content import CONTENT_URL
from svc.routes.schemas.headers import AUDIO_SECONDS_HEADER, AUDIO_TRUNCATED_HEADER, COST_HEADER
from svc.server.interface import Answer, Content, array, as_event, choice, integer, or_null, record, string
from svc.server.openapi import ERROR

IMAGE_REQUEST = record(
    "ImageRequest",
    {
        "prompt": string("What the picture is to show; not blank.", minLength=1, maxLength=32000),
        "model": or_null(string("An image model of `GET /v1/models`; null: the operator's first, else the built-in.")),
        "n": or_null(integer(minimum=1, maximum=10, default=1)),
        "size": or_null(
            string(
                "`WIDTHxHEIGHT` or `auto`; the built-in painter: 64 to 1024 a side, 1536x1024, 1024x1536, 1792x1024, 1024x1792.",
                pattern="^([1-9][0-9]{0,4}x[1-9][0-9]{0,4}|auto)$",
            )
        ),
        "response_format": or_null(
            string(
                "`url` keeps each picture as an artifact and answers with its `content_url`.",
                enum=["b64_json", "url"],
                default="b64_json",
            )
        ),
        "output_format": or_null(string("The built-in painter makes `png`.")),
    },
    required=("prompt",),
    description="OpenAI's format. Other fields go to the model server.",
    example={"prompt": "A lighthouse in a storm", "size": "512x512"},
)
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
_VOICE_NAME = string(minLength=1, maxLength=200)
_VOICE = {
    "description": f"The name of a voice, in any case; null: `alloy`. Built in are {', '.join(VOICES)}, and languages by "
    f"their codes, such as {', '.join(LANGUAGES)}. A model server knows others.",
    "anyOf": [
        _VOICE_NAME,
        {"type": "null"},
        {"type": "object", "required": ["id"], "properties": {"id": _VOICE_NAME}},
    ],
    "examples": [*VOICES, *LANGUAGES],
}
AUDIO_REQUEST = record(
    "AudioRequest",
    {
        "input": string(
            "What is to be said; not blank. For a provider of the caller's own at most 4,096 characters.",
            minLength=1,
            maxLength=100000,
        ),
        "model": or_null(string("A speech model of `GET /v1/models`; null: the operator's first, else the built-in.")),
        "voice": _VOICE,
        "speed": {"type": ["number", "null"], "minimum": 0.25, "maximum": 4, "default": 1},
        "tts_max_tokens": or_null(
            integer("The most audio tokens of the answer: 4096 are 180 seconds. Clamped to 256..32768.", default=4096)
        ),
        "format": or_null(
            string(
                "`wav` if left out; which others there are depends on the model and on the encoders of the server.",
                pattern="^[a-z0-9_-]{1,32}$",
            )
        ),
    },
    required=("input",),
    example={"input": "The train leaves at ten past seven.", "voice": "alloy", "format": "wav"},
)
SPEECH_REQUEST = record(
    "SpeechRequest",
    {
        "input": string("What is to be said; not blank.", minLength=1, maxLength=4096),
        "model": or_null(string("A speech model of `GET /v1/models`; null: the operator's first, else the built-in.")),
        "voice": _VOICE,
        "speed": {"type": ["number", "null"], "minimum": 0.25, "maximum": 4, "default": 1},
        "tts_max_tokens": or_null(
            integer("The most audio tokens of the answer: 4096 are 180 seconds. Clamped to 256..32768.", default=4096)
        ),
        "response_format": or_null(
            string(
                "If left out mp3, and where the voice has no encoder for it WAV, labelled as such.", pattern="^[a-z0-9_-]{1,32}$"
            )
        ),
        "stream_format": or_null(string(enum=["audio", "sse"], default="audio")),
    },
    required=("input",),
    description="OpenAI's format.",
    example={
        "model": "builtin/voice",
        "input": "The train leaves at ten past seven.",
        "voice": "alloy",
        "response_format": "wav",
    },
)
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
